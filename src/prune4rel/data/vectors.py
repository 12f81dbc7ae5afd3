"""Vectors in tables: a list of numbers a cell, such a list written as text, or one column a number."""

from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.text_arrays import is_numeral

LOOKED_AT = 200
"""Rows that guesses look at."""

SOME = 3
ROW_NUMBERS = ("column 0", "unnamed: 0", "index", "row")
"""Names that a column which only counts the rows often has."""


def is_words(kind: pa.DataType) -> bool:
    """Whether a column holds strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column holds numbers."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds lists of numbers."""
    lists = pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(lists and is_number(kind.value_type))


def is_written(text: str) -> bool:
    """Whether a text is a list of numbers, as JSON or NumPy writes it.

    >>> is_written("[0.5, -1]"), is_written("[0.5 -1.]"), is_written("[sic]"), is_written("0.5")
    (True, True, False, False)
    """
    words = _words_in(text)
    return len(words) > 0 and all(map(is_numeral, words[:SOME]))


def _words_in(text: str) -> list[str]:
    text = text.strip()
    return text[1:-1].replace(",", " ").split() if text[:1] == "[" and text[-1:] == "]" else []


def columns_of_numbers(table: pa.Table, pattern: str, taken: set[str]) -> list[str]:
    """Return the columns whose names match a pattern, that hold a number each and are nothing else.

    >>> table = pa.table({"x1": [0.5, 1.5], "label": [0, 1], "x2": ["2", "3"], "note": ["a", "b"]})
    >>> columns_of_numbers(table, "*", {"label"})
    ['x1', 'x2']
    """
    return [
        name
        for name in table.column_names
        if name not in taken and fnmatchcase(name, pattern) and _are_numbers(table, name)
    ]


def _are_numbers(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    if not (is_number(kind) or is_words(kind)):
        return False
    some = [value for value in table.column(name).slice(0, LOOKED_AT).to_pylist() if value is not None and value != ""]
    if not some or not (is_number(kind) or all(map(is_numeral, some))):
        return False
    first = float(some[0])
    counts = first in (0, 1) and all(float(value) == first + row for row, value in enumerate(some))
    return not (counts and name.strip().lower() in ROW_NUMBERS)


def vectors_of(table: pa.Table, names: list[str], where: str) -> NDArray[np.float32]:
    """Return the vectors, (n, d) float32, in a column of lists of one length, or in several columns of numbers.

    >>> vectors_of(pa.table({"v": ["[1, 2]", "[3 4]"]}), ["v"], "t.csv")
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if len(names) > 1 or _are_numbers(table, names[0]):
        parts = [_numbers(table.column(name), f"{where}: column {name!r}") for name in names]
        return np.stack(parts, axis=1)
    column, where = table.column(names[0]), f"{where}: column {names[0]!r}"
    if column.null_count:
        raise InputError(f"{where} has a missing value in row {_first_null(column)}; fill or drop it")
    if is_words(column.type):
        return _read_written(column.to_pylist(), where)
    if not is_list(column.type):
        raise InputError(f"{where} holds {column.type}; expected vectors of numbers")
    return _from_lists(column, where)


def _first_null(column: pa.ChunkedArray) -> int:
    return int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])


def _from_lists(column: pa.ChunkedArray, where: str) -> NDArray[np.float32]:
    flat = column.combine_chunks()
    if isinstance(flat, pa.ChunkedArray):
        flat = pa.concat_arrays(flat.chunks)
    numbers = flat.flatten().to_numpy(zero_copy_only=False)
    if len(column) == 0 or len(numbers) % len(column):
        raise InputError(f"{where}: the vectors differ in length")
    width = len(numbers) // len(column)
    if not pa.types.is_fixed_size_list(column.type) and not np.all(np.diff(flat.offsets.to_numpy()) == width):
        raise InputError(f"{where}: the vectors differ in length")
    return np.asarray(numbers, dtype=np.float32).reshape(len(column), width)


def _read_written(cells: list[str], where: str) -> NDArray[np.float32]:
    width = len(_words_in(cells[0])) if cells else 0
    found = np.empty((len(cells), width), dtype=np.float32)
    for row, cell in enumerate(cells):
        words = _words_in(cell)
        if not words:
            raise InputError(f"{where}: row {row} holds {cell[:40]!r}; expected numbers in brackets, as [0.5, -1]")
        if len(words) != width:
            raise InputError(
                f"{where}: the vectors differ in length: {width} numbers in row 0, {len(words)} in row {row}"
            )
        try:
            found[row] = np.array(words, dtype=np.float32)
        except ValueError:
            bad = next(word for word in words if not is_numeral(word))
            raise InputError(f"{where}: row {row} holds {bad[:40]!r}; expected numbers alone") from None
    return found


def _numbers(column: pa.ChunkedArray, where: str) -> NDArray[np.float32]:
    if column.null_count:
        raise InputError(f"{where} has a missing value in row {_first_null(column)}; fill or drop it")
    if not is_words(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float32)
    cells = column.to_pylist()
    try:
        return np.array(cells, dtype=np.float32)
    except ValueError:
        row = next(row for row, cell in enumerate(cells) if not is_numeral(cell))
        raise InputError(f"{where}: row {row} holds {cells[row][:40]!r}; expected a number") from None
