"""Labels as users write them, numbers or names, turned into class numbers; other labels for a data set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from prune4rel.data.dataset import Array, Dataset, Labels
from prune4rel.errors import InputError, nearest
from prune4rel.storage import read_array, read_arrays
from prune4rel.text_arrays import TEXTS

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


def number_together(
    columns: Mapping[str, Array], where: str, names: Sequence[str] | None = None
) -> tuple[dict[str, Labels], tuple[str, ...]]:
    """Turn several columns of labels, such as given and true ones, into class numbers that mean the same in all.

    >>> number_together({"label": np.array(["dog", "dog"]), "clean_label": np.array(["cat", "dog"])}, "table")
    ({'label': array([1, 1]), 'clean_label': array([0, 1])}, ('cat', 'dog'))
    """
    for name, column in columns.items():
        if column.ndim != 1:
            raise InputError(f"{where}: {name} has shape {column.shape}; expected one label an example")
    if len({column.dtype.kind == "U" for column in columns.values()}) > 1:
        told = ", ".join(columns)
        raise InputError(f"{where}: some of {told} hold numbers and some hold names; use the same for all")
    numbers, names = number_classes(np.concatenate(list(columns.values())), f"{where}: labels", names)
    ends = np.cumsum([len(column) for column in columns.values()])
    return dict(zip(columns, np.split(numbers, ends[:-1]), strict=True)), names


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


def relabel(dataset: Dataset, path: str | Path) -> Dataset:
    """Give the training examples the labels in a file, one an example, in the same order.

    The file holds one array alone, or `labels` and, if the order is to be checked, `clean_labels`. Labels are
    numbers or names of the data set's classes.
    """
    arrays = {"labels": read_array(path, "labels")} if Path(path).suffix in TEXTS else read_arrays(path)
    given = next(iter(arrays.values())) if len(arrays) == 1 else arrays.get("labels")
    if given is None:
        raise InputError(f"{path}: holds {', '.join(arrays)}, but no 'labels'")
    train = dataset.train
    labels = _as_numbers(given, dataset, f"{path}: labels")
    known = train.labels if train.clean_labels is None else train.clean_labels
    if "clean_labels" in arrays:
        clean = _as_numbers(arrays["clean_labels"], dataset, f"{path}: clean_labels")
        if difference := describe_difference(clean, known):
            raise InputError(
                f"{path}: clean_labels differ from those of the data set {difference}; "
                "the file is in another order, or was made for another set"
            )
    return replace(dataset, train=replace(train, labels=labels, clean_labels=known))


def _as_numbers(values: Array, dataset: Dataset, where: str) -> Labels:
    if values.shape != (len(dataset.train),):
        raise InputError(
            f"{where}: has shape {values.shape}, but there are {len(dataset.train)} training examples; "
            "one label an example is needed"
        )
    numbers, _ = number_classes(values, where, dataset.class_names)
    return np.ascontiguousarray(numbers)


def describe_difference(found: Labels, expected: Labels) -> str:
    """Say where labels differ, or nothing where they are the same.

    >>> describe_difference(np.array([0, 2, 1]), np.array([0, 1, 1]))
    'in 1 of 3 rows, first in row 1 (2, expected 1)'
    """
    rows = np.flatnonzero(found != expected)
    if not rows.size:
        return ""
    first = rows[0]
    return f"in {rows.size} of {len(found)} rows, first in row {first} ({found[first]}, expected {expected[first]})"
