"""Tables of image files: CSV or Parquet with the columns path, label and, if you like, clean_label and split."""

import csv
from pathlib import Path

import numpy as np

from prune4rel.data.classes import number_together
from prune4rel.data.dataset import Array, Split
from prune4rel.data.files import require_file, require_files
from prune4rel.errors import InputError, nearest
from prune4rel.storage import read_arrays

SUFFIXES = (".csv", ".parquet")
NEEDED = ("path", "label")
LABELS = ("label", "clean_label")
SPLITS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "val": "val",
    "valid": "val",
    "validation": "val",
}


def read_table(path: Path) -> tuple[dict[str, Split], tuple[str, ...]]:
    """Read a table of files into its splits, by name, and the class names.

    Paths are relative to the table's folder, or absolute. Without a column `split` everything is ``"train"``.
    """
    columns = _read_csv(path) if path.suffix == ".csv" else _read_parquet(path)
    for name in NEEDED:
        if name not in columns:
            raise InputError(f"{path}: has no column {name!r}; {nearest(name, columns)}")
    paths = columns["path"]
    if paths.dtype.kind != "U":
        raise InputError(f"{path}: column 'path' has type {paths.dtype}; expected strings")
    numbers, names = number_together({name: columns[name] for name in LABELS if name in columns}, str(path))
    files = [path.parent / name for name in paths.tolist()]
    require_files(files, path)
    splits = {}
    for title, rows in _rows_by_split(columns.get("split"), len(paths), path).items():
        splits[title] = Split(
            labels=numbers["label"][rows],
            clean_labels=numbers["clean_label"][rows] if "clean_label" in numbers else None,
            files=tuple(files[row] for row in rows),
            ids=paths[rows],
        )
    if "train" not in splits:
        raise InputError(f"{path}: no row has the split 'train'")
    return splits, names


def _rows_by_split(column: Array | None, n: int, path: Path) -> dict[str, Array]:
    if column is None:
        return {"train": np.arange(n)}
    words = np.array([str(word).strip().lower() for word in column.tolist()])
    for word in np.unique(words).tolist():
        if word not in SPLITS:
            row = int(np.flatnonzero(words == word)[0])
            raise InputError(f"{path}: row {row} has the split {word!r}; {nearest(word, SPLITS)}")
    titles = np.array([SPLITS[word] for word in words.tolist()])
    return {title: np.flatnonzero(titles == title) for title in np.unique(titles).tolist()}


def _read_parquet(path: Path) -> dict[str, Array]:
    columns = read_arrays(require_file(path))
    if not columns or len(next(iter(columns.values()))) == 0:
        raise InputError(f"{path}: has no rows")
    return columns


def _read_csv(path: Path) -> dict[str, Array]:
    require_file(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a readable CSV file in UTF-8 ({error})") from None
    header = [name.strip() for name in rows[0]] if rows else []
    if len(rows) < 2:
        raise InputError(f"{path}: has no rows below the line of column names")
    for number, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise InputError(f"{path}: row {number} has {len(row)} fields, but there are {len(header)} columns")
    return {name: np.array([row[at].strip() for row in rows[1:]]) for at, name in enumerate(header)}
