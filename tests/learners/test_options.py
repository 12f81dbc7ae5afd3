import math

import numpy as np
import pytest

from prune4rel.errors import InputError
from prune4rel.learners.learner import above, within


@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_bounds_are_within(value):
    assert within("kappa", value, 0, 1) == value


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_what_lies_outside_is_refused(value):
    with pytest.raises(InputError, match=f"kappa must be between 0 and 1, not {value}") as refused:
        within("kappa", value, 0, 1)
    assert refused.value.field == "kappa"


@pytest.mark.parametrize("value", ["much", True, None, [0.5]])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InputError, match="kappa must be between 0 and 1, not"):
        within("kappa", value, 0, 1)
    with pytest.raises(InputError, match="alpha must be above 0, not"):
        above("alpha", value)


def test_numbers_of_numpy_are_numbers():
    assert within("kappa", np.float32(0.5), 0, 1) == above("kappa", np.float32(0.5)) == 0.5


def test_without_an_upper_bound():
    assert within("rate", 1e9) == 1e9
    with pytest.raises(InputError, match="rate must be at least 0, not -1"):
        within("rate", -1)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_above_excludes_its_bound(value):
    with pytest.raises(InputError, match="alpha must be above 0, not"):
        above("alpha", value)
    assert above("alpha", 0.1) == 0.1
