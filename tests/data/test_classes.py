import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data import Dataset, Split
from prune4rel.data.classes import describe_difference, number_classes, relabel


def test_numbers_stay_and_names_are_sorted():
    assert number_classes(np.array([2, 0], dtype=np.uint8), "y")[0].tolist() == [2, 0]
    numbers, names = number_classes(np.array(["b", "a", "b"]), "y")
    assert (numbers.tolist(), names) == ([1, 0, 1], ("a", "b"))


def test_text_that_is_numbers_is_numbers_unless_classes_are_called_so():
    assert number_classes(np.array(["10", "2"]), "y")[1] == tuple(map(str, range(11)))
    assert number_classes(np.array(["1", "0"]), "y", ("cat", "dog"))[0].tolist() == [1, 0]
    assert number_classes(np.array(["7", "3"]), "y", ("3", "7"))[0].tolist() == [1, 0]


def test_long_numbers_are_names():
    assert len(number_classes(np.array(["12345678901234567890", "1"]), "y")[1]) == 2


@pytest.mark.parametrize(
    ("values", "names", "message"),
    [
        ([0.5], None, "type float64"),
        ([[0]], None, r"shape \(1, 1\)"),
        (np.array([], dtype=int), None, "is empty"),
        (["a", " "], None, "row 1 is empty"),
        ([0, -3], None, "row 1 is -3; labels must be 0 or more"),
        ([0, 5], ("a", "b"), "row 1 is 5; labels must be 0 to 1"),
        (["a", "c"], ("a", "b"), "row 1 is 'c', which is none of the 2 classes; Known"),
        (["a", "c"], tuple(map(str, range(99))), "none of the 99 classes$"),
        ([3, 4_000_000_000], None, "without gaps"),
    ],
)
def test_bad_labels_are_refused(values, names, message):
    with pytest.raises(InputError, match=message):
        number_classes(np.array(values), "y", names)


@pytest.fixture
def data():
    return Dataset(name="x", train=Split(labels=[0, 1, 0, 1], features=np.eye(4)), class_names=("cat", "dog"))


def test_names_are_understood_too(data, tmp_path):
    np.save(tmp_path / "y.npy", np.array(["dog", "dog", "cat", "cat"]))
    assert relabel(data, tmp_path / "y.npy").train.labels.tolist() == [1, 1, 0, 0]


def test_true_labels_that_are_known_stay(data, tmp_path):
    np.savez(tmp_path / "y.npz", labels=[1, 1, 1, 1], clean_labels=[0, 1, 0, 1])
    once = relabel(data, tmp_path / "y.npz")
    np.save(tmp_path / "z.npy", np.array([0, 0, 0, 0]))
    twice = relabel(once, tmp_path / "z.npy")
    assert twice.train.clean_labels.tolist() == [0, 1, 0, 1]


def test_wrong_length_order_class_or_name_is_refused(data, tmp_path):
    np.save(tmp_path / "short.npy", np.array([0, 1]))
    with pytest.raises(InputError, match=r"short.npy: labels: has shape \(2,\), but there are 4 training examples"):
        relabel(data, tmp_path / "short.npy")
    np.savez(tmp_path / "order.npz", labels=[0, 0, 1, 1], clean_labels=[0, 0, 1, 1])
    with pytest.raises(InputError, match=r"in 2 of 4 rows, first in row 1 \(0, expected 1\); the file is in another"):
        relabel(data, tmp_path / "order.npz")
    np.save(tmp_path / "three.npy", np.array([0, 1, 2, 0]))
    with pytest.raises(InputError, match="row 2 is 2; labels must be 0 to 1"):
        relabel(data, tmp_path / "three.npy")
    np.save(tmp_path / "cow.npy", np.array(["cat", "cow", "cat", "dog"]))
    with pytest.raises(InputError, match="row 1 is 'cow', which is none of the 2 classes"):
        relabel(data, tmp_path / "cow.npy")
    np.savez(tmp_path / "other.npz", y=[0, 1, 1, 0], z=[0, 1, 1, 0])
    with pytest.raises(InputError, match="holds y, z, but no 'labels'"):
        relabel(data, tmp_path / "other.npz")


def test_same_labels_differ_nowhere():
    assert describe_difference(np.array([1, 2]), np.array([1, 2])) == ""
