"""Checks that options of methods share: each returns the option as it is to be used, or says what it must be."""

import math
from collections.abc import Collection
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.errors import InputError, nearest


def whole(value: int, name: str, *, least: int = 1) -> int:
    """Return a count.

    >>> whole(0, "k")
    Traceback (most recent call last):
    prune4rel.errors.InputError: k must be a whole number of at least 1, not 0
    """
    if not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def number(value: float, name: str) -> float:
    """Return a finite number of at least 0.

    >>> number(0.5, "gamma")
    0.5
    """
    if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value >= 0):
        raise InputError(f"{name} must be a number of at least 0, not {value!r}")
    return float(value)


def one_of(value: str, name: str, known: Collection[str]) -> str:
    """Return one of the known words.

    >>> one_of("means", "scale", ("mean", "none"))
    Traceback (most recent call last):
    prune4rel.errors.InputError: unknown scale 'means'; did you mean 'mean'? Known: mean, none
    """
    if not isinstance(value, str) or value not in known:
        raise InputError(f"unknown {name} {value!r}; {nearest(str(value), known)}")
    return value


def indices_below(value: ArrayLike, name: str, n: int) -> NDArray[np.int64]:
    """Return numbers of examples, of which there are n."""
    found = np.asarray(value)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InputError(f"{name} must be a list of indices")
    if found.size and (found.min() < 0 or found.max() >= n):
        raise InputError(f"{name} holds an index outside 0 to {n - 1}")
    return found.astype(np.int64)


def check_tau(tau: float | Literal["auto"]) -> float | Literal["auto"]:
    """Return a similarity from which two examples are neighbours; `Threshold` checks its range."""
    if tau == "auto":
        return "auto"
    if not isinstance(tau, int | float | np.number):
        raise InputError(f"tau must lie between 0 and 1, or be 'auto'; got {tau!r}")
    return float(tau)
