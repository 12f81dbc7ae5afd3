"""Which class is mistaken for which: the maps behind asymmetric noise."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.errors import InputError, nearest

Labels = NDArray[np.int64]

CIFAR10_STANDARD = (0, 1, 0, 5, 7, 3, 6, 7, 8, 1)
"""Where each class of CIFAR-10 goes; classes that go to themselves keep their labels."""

CIFAR10_OFFICIAL = (2, 9, 0, 5, 7, 3, 8, 4, 6, 1)

# fmt: off
CIFAR100_SUPERCLASSES = (
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15, 0, 11, 1, 10,
    12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12, 12, 16,
    12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14,
    13,
)
# fmt: on
"""Superclass of every class of CIFAR-100."""


def resolve_mapping(mapping: str | ArrayLike, n_classes: int) -> Labels:
    """Return where each of C classes goes, (C,), for a mapping that is given by name or as numbers.

    >>> resolve_mapping("next", 4)
    array([1, 2, 3, 0])
    """
    if isinstance(mapping, str):
        if mapping == "next":
            return np.roll(np.arange(n_classes), -1)
        named = {"cifar10": CIFAR10_STANDARD, "cifar10-official": CIFAR10_OFFICIAL, "cifar100": _next_in_superclass()}
        if mapping not in named:
            raise InputError(f"unknown mapping {mapping!r}; {nearest(mapping, ['next', *named])}")
        goal = np.array(named[mapping], dtype=np.int64)
    else:
        goal = np.asarray(mapping)
    if goal.ndim != 1 or goal.dtype.kind not in "iu" or goal.min() < 0 or goal.max() >= len(goal):
        raise InputError("a mapping needs one whole number a class, from 0 to the number of classes - 1")
    if len(goal) < n_classes:
        raise InputError(f"there are {n_classes} classes, but the mapping {mapping!r} has only {len(goal)}")
    return goal.astype(np.int64)


def _next_in_superclass() -> Labels:
    superclass = np.array(CIFAR100_SUPERCLASSES)
    goal = np.empty(len(superclass), dtype=np.int64)
    for group in range(superclass.max() + 1):
        members = np.flatnonzero(superclass == group)
        goal[members] = np.roll(members, -1)
    return goal
