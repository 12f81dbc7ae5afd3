import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data import Dataset, Split, get, list_datasets, load_dataset, register_dataset
from prune4rel.data.reader import DATASETS

EXPECTED = {"digits", "cifar10n", "cifar100n", "webvision", "clothing1m", "imagenet-n", "folder", "arrays", "hf"}


def test_all_data_sets_are_listed_the_embedded_one_first():
    assert set(list_datasets()) >= EXPECTED
    assert list_datasets()[0] == "digits"
    assert list_datasets("cifar*") == ["cifar100n", "cifar10n"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_data_set_says_what_it_is_and_what_it_looks_for(name):
    reader = get(name)
    assert reader.summary.endswith(".")
    assert reader.layout
    for option, default in reader.options.items():
        assert option in reader.load.__doc__, (option, default)


def test_unknown_names_options_and_types_are_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'cifar10n'"):
        load_dataset("cifar10")
    with pytest.raises(InputError, match="did you mean 'noise'"):
        load_dataset("digits", noize=0.1)
    with pytest.raises(InputError, match="option noise takes a number or a whole number, not 'much'"):
        load_dataset("digits", noise="much")
    with pytest.raises(InputError, match="option seed takes a whole number, not True"):
        load_dataset("digits", seed=True)


def test_a_missing_folder_is_asked_for_or_named(tmp_path):
    with pytest.raises(InputError, match=r"(?s)'cifar10n' needs to know where it lies.*cifar-10-batches-py"):
        load_dataset("cifar10n")
    with pytest.raises(InputError, match="nowhere: no such file or folder"):
        load_dataset("cifar10n", tmp_path / "nowhere")


@pytest.fixture
def own():
    def load(_root, *, n=4):
        """Mine.

        More words.
        """
        return Dataset(name="own", train=Split(labels=np.arange(n) % 2, features=np.eye(n)), class_names=("a", "b"))

    register_dataset("own", embedded=True, citation="me")(load)
    yield load
    DATASETS.pop("own")


def test_a_user_can_add_a_data_set(own):
    assert "own" in list_datasets()
    assert get("own").summary == "Mine."
    assert get("own").load is own
    assert len(load_dataset("own", n=6).train) == 6


def test_a_data_set_without_words_is_a_mistake():
    with pytest.raises(ValueError, match="no docstring"):
        register_dataset("silent")(lambda _root: None)


@pytest.mark.usefixtures("own")
def test_other_labels_come_from_a_file(tmp_path):
    np.save(tmp_path / "y.npy", np.array([1, 1, 0, 1]))
    data = load_dataset("own", labels=tmp_path / "y.npy")
    assert data.train.labels.tolist() == [1, 1, 0, 1]
    assert data.train.clean_labels.tolist() == [0, 1, 0, 1]
