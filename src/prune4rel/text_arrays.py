"""Arrays in text files: labels, ids and other columns, and probabilities or vectors, as CSV, TSV or lines."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.reading import MOST_NAME, check_fits, read_text, reading

TEXTS = (".csv", ".tsv", ".txt")
MATRICES = ("probabilities", "embeddings", "features")
"""Arrays, by how their names end, that have several numbers a row."""

USUAL = {
    "labels": ("labels", "label", "given_label", "target", "class", "y"),
    "ids": ("ids", "id", "name", "path", "file", "key"),
    "subset": ("index", "indices"),
    "initial": ("index", "indices"),
}
"""Names that the column of an array often has, likeliest first."""

BESIDE = ("index", "row", "rank", *USUAL["ids"], *USUAL["labels"])
"""Columns that are no part of a matrix."""


def read_text_array(path: Path, name: str) -> NDArray[Any]:
    r"""Read one array from a text file: (n, d) numbers if its name is that of a matrix, else a column (n,).

    A first line that names columns is told from numbers by itself; among several columns the one of that name is taken.
    Fields are parted by the commas, semicolons or tabs of a table, in a ``.txt`` also by blanks between numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     file = Path(home, "y.csv")
    ...     _ = file.write_text("id,label\na.png,cat\nb.png,dog\n")
    ...     read_text_array(file, "labels")
    array(['cat', 'dog'], dtype='<U3')
    """
    matrix = name.endswith(MATRICES)
    rows = _rows(path, matrix=matrix)
    header = _header_of(rows, name, matrix=matrix)
    content = rows[1:] if header else rows
    if not content:
        raise InputError(f"{path}: has no rows", name)
    wide = len(rows[0])
    for number, row in enumerate(content):
        if len(row) != wide:
            raise InputError(f"{path}: row {number} has {len(row)} fields, but the first line has {wide}", name)
    if matrix:
        return _numbers(path, name, content, header)
    at = _place(path, name, header, wide)
    return _column(path, name, [row[at] for row in content])


def _rows(path: Path, *, matrix: bool) -> list[list[str]]:
    text = read_text(path, "text in UTF-8")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{path}: the file is empty")
    if path.suffix == ".txt":
        parted = r"[,;\s]\s*"
        return [re.split(parted, line.strip()) for line in lines] if matrix else [[line.strip()] for line in lines]
    delimiter = "\t" if path.suffix == ".tsv" else max(",;\t", key=lines[0].count)
    with reading(path, "CSV file in UTF-8"):
        found = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        return [[field.strip() for field in row] for row in found if row]
    raise AssertionError


def _header_of(rows: list[list[str]], name: str, *, matrix: bool) -> list[str]:
    """Return the names of the columns, in small letters, if the first row holds names."""
    first = [field.lower() for field in rows[0]]
    if not any(map(is_numeral, first)) and (matrix or set(first) & {name, *USUAL.get(_kind(name), ()), *BESIDE}):
        return first
    below = rows[1] if len(rows) > 1 else []
    named = any(is_numeral(there) and not is_numeral(here) for here, there in zip(first, below, strict=False))
    return first if named else []


def _kind(name: str) -> str:
    return "labels" if name.endswith("labels") else name


def _place(path: Path, name: str, header: list[str], wide: int) -> int:
    wanted = (name, *USUAL.get(_kind(name), (name.removesuffix("s"), name.removesuffix("es"))))
    found = next((header.index(word) for word in wanted if word in header), None)
    if found is None and wide > 1:
        there = f"the columns {', '.join(header)}" if header else f"{wide} columns without names"
        raise InputError(f"{path}: has {there}; expected one, or one that is called {' or '.join(wanted)}", name)
    return found or 0


def _numbers(path: Path, name: str, rows: list[list[str]], header: list[str]) -> NDArray[np.float64]:
    kept = [at for at in range(len(rows[0])) if not header or header[at] not in BESIDE]
    found = np.empty((len(rows), len(kept)))
    for number, row in enumerate(rows):
        try:
            found[number] = [float(row[at]) for at in kept]
        except ValueError:
            bad = next(row[at] for at in kept if not is_numeral(row[at]))
            raise InputError(f"{path}: row {number} holds {bad!r:.60}; expected numbers alone", name) from None
    return found


def _column(path: Path, name: str, fields: list[str]) -> NDArray[Any]:
    if all(re.fullmatch(r"[+-]?\d{1,18}", field) for field in fields):
        return np.array([int(field) for field in fields], dtype=np.int64)
    if _kind(name) not in USUAL and all(map(is_numeral, fields)):
        return np.array([float(field) for field in fields])
    longest = max(map(len, fields))
    if longest > MOST_NAME:
        raise InputError(f"{path}: holds a text of {longest:,} letters, where names are expected", name)
    check_fits(path, 4.0 * longest * len(fields))
    return np.array(fields, dtype=np.str_)


def is_numeral(text: str) -> bool:
    """Whether a text is a number.

    >>> is_numeral("1e-3"), is_numeral("one")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True
