"""Checks of learners' options."""

import math
from numbers import Real

from prune4rel.errors import InputError


def within(name: str, value: float, low: float = 0.0, high: float = math.inf) -> float:
    """Return a number if it lies between `low` and `high`, both included, and refuse it otherwise.

    >>> within("beta", 0.7, 0, 1)
    0.7
    >>> within("beta", 7, 0, 1)
    Traceback (most recent call last):
    prune4rel.errors.InputError: beta must be between 0 and 1, not 7
    """
    if not _is_number(value) or not low <= value <= high:
        bounds = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
        raise InputError(f"{name} must be {bounds}, not {value!r}", name)
    return value


def above(name: str, value: float, low: float = 0.0) -> float:
    """Return a finite number if it lies above `low`, and refuse it otherwise.

    >>> above("temperature", 0.0)
    Traceback (most recent call last):
    prune4rel.errors.InputError: temperature must be above 0, not 0.0
    """
    if not _is_number(value) or not low < value < math.inf:
        raise InputError(f"{name} must be above {low:g}, not {value!r}", name)
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
