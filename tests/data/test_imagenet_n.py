import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data import load_dataset


def test_labels_move_to_the_next_class_by_exact_counts(imagenet):
    data = load_dataset("imagenet-n", imagenet)
    assert data.class_names == ("n01440764", "n01443537", "n01484850")
    assert data.train.clean_labels.tolist() == [0] * 10 + [1] * 10 + [2] * 10
    moved = data.train.labels != data.train.clean_labels
    assert np.bincount(data.train.clean_labels[moved]).tolist() == [2, 2, 2]
    assert (data.train.labels[moved] == (data.train.clean_labels[moved] + 1) % 3).all()
    assert data.test.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.train.files[0].name == "n01440764_0.JPEG"


def test_seed_rate_and_the_official_way_of_counting(imagenet):
    first, again, other = (load_dataset("imagenet-n", imagenet, seed=seed).train.labels.tolist() for seed in (0, 0, 1))
    assert first == again != other
    assert load_dataset("imagenet-n", imagenet, noise=0.5).train.noise_rate == 0.5
    assert load_dataset("imagenet-n", imagenet, noise=0.3, per_class=False).train.noise_rate == pytest.approx(0.3)


def test_class_folders_that_differ_are_named(imagenet):
    (imagenet / "val" / "n99999999").mkdir()
    with pytest.raises(InputError, match=r"val: has the class folder 'n99999999', which .*train has not"):
        load_dataset("imagenet-n", imagenet)


def test_missing_folders(imagenet):
    (imagenet / "val").rename(imagenet / "validation")
    with pytest.raises(InputError, match="val: no such folder; expected train/ and val/"):
        load_dataset("imagenet-n", imagenet)
