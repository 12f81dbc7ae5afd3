"""Labels as users write them, numbers or names, turned into class numbers."""

from collections.abc import Sequence

import numpy as np

from prune4rel.data.dataset import Array, Labels
from prune4rel.errors import InputError, nearest

MANY_CLASSES = 100_000
LONGEST_NUMBER = 18
FEW_ENOUGH_TO_LIST = 30


def number_classes(values: Array, where: str, names: Sequence[str] | None = None) -> tuple[Labels, tuple[str, ...]]:
    """Turn (n,) labels, integers or strings, into class numbers and the names of the classes.

    Strings that are all whole numbers are read as numbers. Without `names`, names are the sorted strings, or
    0, 1, ... up to the largest number.

    >>> number_classes(np.array(["dog", "cat", "dog"]), "labels")
    (array([1, 0, 1]), ('cat', 'dog'))
    >>> number_classes(np.array(["2", "0"]), "labels")
    (array([2, 0]), ('0', '1', '2'))
    """
    if values.ndim != 1 or values.dtype.kind not in "iuU":
        raise InputError(
            f"{where}: have shape {values.shape} and type {values.dtype}; expected (n,) integers or strings"
        )
    if values.size == 0:
        raise InputError(f"{where}: is empty; there is no example")
    if values.dtype.kind == "U":
        if (blank := np.flatnonzero(np.char.str_len(np.char.strip(values)) == 0)).size:
            raise InputError(f"{where}: row {blank[0]} is empty; every example needs one")
        if not _are_numbers(values, names):
            return _from_names(values, where, names)
        values = values.astype(np.int64)
    top = len(names) if names is not None else _count(values, where)
    if (bad := np.flatnonzero((values < 0) | (values >= top))).size:
        allowed = "0 or more" if names is None else f"0 to {top - 1}"
        raise InputError(f"{where}: row {bad[0]} is {values[bad[0]]}; labels must be {allowed}")
    return values.astype(np.int64), tuple(map(str, range(top) if names is None else names))


def _count(values: Array, where: str) -> int:
    largest = int(values.max())
    if largest >= max(MANY_CLASSES, len(values)):
        raise InputError(
            f"{where}: the largest is {largest}, which would make {largest + 1} classes; "
            "number the classes 0, 1, 2, ... without gaps, or name them"
        )
    return largest + 1


def _are_numbers(values: Array, names: Sequence[str] | None) -> bool:
    if names is not None and any(name in names for name in np.unique(values).tolist()):
        return False
    return bool(np.char.isdecimal(values).all()) and int(np.char.str_len(values).max()) <= LONGEST_NUMBER


def _from_names(values: Array, where: str, names: Sequence[str] | None) -> tuple[Labels, tuple[str, ...]]:
    present, numbers = np.unique(values, return_inverse=True)
    if names is None:
        return numbers.astype(np.int64), tuple(present.tolist())
    position = {name: number for number, name in enumerate(names)}
    for name in present.tolist():
        if name not in position:
            row = int(np.flatnonzero(values == name)[0])
            hint = f"; {nearest(name, names)}" if len(names) <= FEW_ENOUGH_TO_LIST else ""
            raise InputError(f"{where}: row {row} is {name!r}, which is none of the {len(names)} classes{hint}")
    return np.array([position[name] for name in present.tolist()], dtype=np.int64)[numbers], tuple(names)
