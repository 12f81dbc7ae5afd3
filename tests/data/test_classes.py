import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data.classes import number_classes


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
