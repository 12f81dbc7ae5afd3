from pathlib import Path

import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data import Dataset, Split
from prune4rel.data.dataset import hold_out

IMAGES = np.zeros((3, 4, 5, 3), dtype=np.uint8)
LOOK = {"mean": (0.5, 0.5, 0.5), "std": (0.2, 0.2, 0.2), "image_size": 4}


def test_labels_become_int64_and_features_float32():
    split = Split(labels=np.array([0, 1], dtype=np.uint8), features=[[1, 2], [3, 4]])
    assert split.labels.dtype == np.int64
    assert split.features.dtype == np.float32
    assert split.kind == "features"


def test_noise_rate_is_known_only_with_clean_labels():
    assert Split(labels=[0, 1, 2], images=IMAGES).noise_rate is None
    assert Split(labels=[0, 1, 2], clean_labels=[0, 1, 1], images=IMAGES).noise_rate == pytest.approx(1 / 3)


def test_subset_keeps_everything_in_the_order_asked_for():
    split = Split(labels=[0, 1, 2], clean_labels=[0, 1, 1], files=["a.png", "b.png", "c.png"], ids=["a", "b", "c"])
    part = split.subset(np.array([2, 0]))
    assert part.labels.tolist() == [2, 0]
    assert part.clean_labels.tolist() == [1, 0]
    assert part.files == (Path("c.png"), Path("a.png"))
    assert part.ids.tolist() == ["c", "a"]
    images = np.arange(IMAGES.size, dtype=np.uint8).reshape(IMAGES.shape)
    assert (Split(labels=[0, 1, 2], images=images).subset([1]).images == images[1:2]).all()


def test_memory_maps_stay_on_disk(tmp_path):
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "features.npy", np.ones((3, 2), dtype=np.float32))
    images = np.load(tmp_path / "images.npy", mmap_mode="r")
    features = np.load(tmp_path / "features.npy", mmap_mode="r")
    assert isinstance(Split(labels=[0, 1, 2], images=images).images, np.memmap)
    assert isinstance(Split(labels=[0, 1, 2], features=features).features, np.memmap)


def test_texts_are_examples_like_any_other():
    split = Split(labels=[0, 1, 1], texts=["good", "bad", ""], ids=["a", "b", "c"])
    assert (split.kind, split.subset([2, 0]).texts) == ("texts", ("", "good"))
    data = Dataset(name="reviews", train=split, class_names=("good", "bad"))
    train, test = hold_out(data.train, 1 / 3, seed=0)
    assert sorted(train.texts + test.texts) == ["", "bad", "good"]
    with pytest.raises(InputError, match="leave them out with texts"):
        Dataset(name="reviews", train=split, class_names=("good", "bad"), **LOOK)


BAD_SPLITS = [
    ({"labels": [0, 1], "texts": "no"}, "texts: expected one text an example, not a single string"),
    ({"labels": [0, 1], "texts": ["yes", 1.5]}, "texts: row 1 is a float; expected a string"),
    ({"labels": [0, 1], "texts": ["yes"]}, "texts: has 1 rows, but labels has 2"),
    ({"labels": [0, 1, 2]}, "exactly one"),
    ({"labels": [0, 1, 2], "images": IMAGES, "features": np.eye(3)}, "not images and features"),
    ({"labels": [[0], [1]], "features": np.eye(2)}, r"labels: has shape \(2, 1\)"),
    ({"labels": [], "features": np.empty((0, 2))}, "labels: is empty"),
    ({"labels": [0.0, 1.0], "features": np.eye(2)}, "labels: has type float64"),
    ({"labels": [0, -1], "features": np.eye(2)}, "labels: row 1 is -1"),
    ({"labels": [0, 1], "clean_labels": [0], "features": np.eye(2)}, "clean_labels: has 1 rows, but labels has 2"),
    ({"labels": [0, 1], "images": IMAGES}, "images: has 3 rows, but labels has 2"),
    ({"labels": [0, 1, 2], "images": IMAGES.astype(float)}, "images: have shape .* and type float64"),
    ({"labels": [0, 1, 2], "images": IMAGES[..., :1]}, "images: have shape"),
    ({"labels": [0, 1, 2], "images": IMAGES[:, 0]}, "images: have shape"),
    ({"labels": [0], "files": ["a", "b"]}, "files: has 2 rows, but labels has 1"),
    ({"labels": [0], "files": "a.png"}, "not the single path a.png"),
    ({"labels": [0, 1], "features": [[1.0], [np.nan]]}, "features: row 1 holds NaN"),
    ({"labels": [0, 1], "features": [[1.0], [1e300]]}, "features: row 1 holds .* too large"),
    ({"labels": [0, 1], "features": [1.0, 2.0]}, "features: have shape"),
    ({"labels": [0, 1], "features": [["a"], ["b"]]}, "features: have shape .* type <U1"),
    ({"labels": [0, 1], "features": np.eye(2), "ids": [1.5, 2.5]}, "ids: have shape"),
    ({"labels": [0, 1], "features": np.eye(2), "ids": ["a"]}, "ids: has 1 rows"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_SPLITS)
def test_a_bad_split_is_refused_by_name(arguments, message):
    with pytest.raises(InputError, match=message):
        Split(**arguments)


@pytest.mark.parametrize(
    ("indices", "message"),
    [([3], "3 is not a row of the 3"), ([-1], "-1 is not"), ([0.5], "integers"), ([[0]], "shape")],
)
def test_bad_indices_are_refused(indices, message):
    with pytest.raises(InputError, match=message):
        Split(labels=[0, 1, 2], images=IMAGES).subset(indices)


def test_a_dataset_knows_its_kind_classes_and_splits():
    train = Split(labels=[0, 1, 2], images=IMAGES)
    data = Dataset(name="x", train=train, test=train, class_names=["a", "b", "c"], **LOOK)
    assert (data.kind, data.n_classes, list(data.splits())) == ("images", 3, ["train", "test"])
    assert data.class_names == ("a", "b", "c")
    assert data.mean == (0.5, 0.5, 0.5)


FEATURES = Split(labels=[0, 1, 1], features=np.eye(3))
PICTURES = Split(labels=[0, 1, 2], images=IMAGES)
NAMES = ("a", "b", "c")
BAD_DATASETS = [
    ({"train": FEATURES}, "class_names: is empty"),
    ({"train": PICTURES, "class_names": ("a", "b"), **LOOK}, "labels row 2 is 2, but there are only 2 classes"),
    ({"train": PICTURES, "test": FEATURES, "class_names": NAMES, **LOOK}, "test: holds features, but train holds"),
    ({"train": PICTURES, "class_names": NAMES}, "needed with images"),
    ({"train": PICTURES, "class_names": NAMES, **LOOK, "mean": (0.5,)}, "mean: expected three numbers"),
    ({"train": PICTURES, "class_names": NAMES, **LOOK, "std": (0.0, 1.0, 1.0)}, "above 0"),
    ({"train": PICTURES, "class_names": NAMES, **LOOK, "image_size": 0}, "above 0"),
    ({"train": FEATURES, "class_names": NAMES, "image_size": 3}, "are for images"),
    (
        {"train": FEATURES, "test": Split(labels=[0], features=[[1.0]]), "class_names": NAMES},
        "test: has 1 features an example, but train has 3",
    ),
    (
        {"train": Split(labels=[0], clean_labels=[7], features=[[1.0]]), "class_names": NAMES},
        "clean_labels row 0 is 7",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_DATASETS)
def test_a_bad_dataset_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Dataset(name="x", **arguments)


SPLIT = Split(labels=np.arange(20) % 3, clean_labels=np.arange(20) % 2, features=np.eye(20), ids=np.arange(20))


def test_every_example_is_on_one_side_in_order_and_the_seed_decides():
    train, test = hold_out(SPLIT, 0.25, seed=1)
    assert len(test) == 5
    assert sorted([*train.ids, *test.ids]) == list(range(20))
    assert train.ids.tolist() == sorted(train.ids)
    assert hold_out(SPLIT, 0.25, seed=1)[1].ids.tolist() == test.ids.tolist()
    assert hold_out(SPLIT, 0.25, seed=2)[1].ids.tolist() != test.ids.tolist()


def test_tests_use_true_labels_where_they_are_known():
    _, test = hold_out(SPLIT, 0.25, seed=0)
    assert test.noise_rate == 0
    assert test.labels.tolist() == (test.ids % 2).tolist()


def test_nothing_held_out():
    assert hold_out(SPLIT, 0.0, seed=0) == (SPLIT, None)


@pytest.mark.parametrize(("share", "seed"), [(1.0, 0), (-0.1, 0), (0.99, 0), (0.5, -1)])
def test_impossible_shares_are_refused(share, seed):
    with pytest.raises(InputError):
        hold_out(SPLIT, share, seed)


def test_a_test_split_that_is_there_stays():
    test = Split(labels=[0], features=np.eye(1, 20))
    assert hold_out(SPLIT, 0.0, seed=0, test=test) == (SPLIT, test)
    with pytest.raises(InputError, match="has a test split already; leave test_share out"):
        hold_out(SPLIT, 0.25, seed=0, test=test)
