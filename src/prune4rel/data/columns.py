"""Which column is what: named by the user, or guessed and said aloud; columns of any kind as splits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from prune4rel.data.classes import number_together
from prune4rel.data.dataset import Array, Split
from prune4rel.data.files import is_image, require_files
from prune4rel.data.vectors import (
    LOOKED_AT,
    columns_of_numbers,
    is_list,
    is_words,
    is_written,
    vectors_of,
)
from prune4rel.errors import InputError, nearest
from prune4rel.labels import NUMBERS
from prune4rel.reading import read_bytes, reading
from prune4rel.storage import from_column
from prune4rel.text_arrays import is_numeral

USUAL: dict[str, tuple[str, ...]] = {
    "label": ("label", "labels", "given_label", "noisy_label", "target", "class", "category", "y", "coarse_label"),
    "clean_label": ("clean_label", "true_label", "gold_label"),
    "text": ("text", "texts", "sentence", "content", "document", "review", "body", "comment", "question", "title"),
    "path": ("path", "paths", "file", "file_path", "filepath", "filename", "file_name", "image_path", "url", "uri"),
    "image": ("image", "images", "img", "picture", "jpg", "png"),
    "embedding": ("embedding", "embeddings", "vector", "features", "feature", "emb"),
    "id": ("id", "ids", "uid", "key", "guid"),
    "split": ("split", "subset", "partition", "fold"),
}
"""Names a column of each role often has, likeliest first."""

CONTENT = ("path", "image", "text", "embedding")
SPLITS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
}
ALL = "*"
"""As the name of the column of vectors: every column of numbers that is nothing else, one number each."""


@dataclass(frozen=True)
class Columns:
    """Names of columns by what they hold; what is None is guessed.

    >>> Columns(label="sentiment").given()
    {'label': 'sentiment'}
    """

    label: str | None = None
    clean_label: str | None = None
    text: str | None = None
    path: str | None = None
    image: str | None = None
    embedding: str | None = None
    id: str | None = None
    split: str | None = None

    def given(self) -> dict[str, str]:
        """Those that are named."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) is not None}

    def content(self) -> tuple[str, str]:
        """Role and name of the column that holds the examples themselves."""
        return next((role, name) for role in CONTENT if (name := getattr(self, role)) is not None)


@dataclass(frozen=True)
class Opened:
    """A table whose columns are read when asked for.

    Parameters
    ----------
    table
        Its columns; those with images may lie on disk.
    where
        What to call it in messages.
    folder
        What paths in it are relative to.
    class_names
        Names of the classes of a column of numbers, where the file tells them.
    said
        What was guessed.
    """

    table: pa.Table
    where: str
    folder: Path
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    said: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        found: list[str] = self.table.column_names
        return found

    def values(self, name: str, most: int | None = None) -> list[Any]:
        """Return the cells of a column, or the first of them; what no Python value can be is refused, as year 10^9."""
        with reading(f"{self.where}: column {name!r}", "column"):
            found: list[Any] = self.table.column(name).slice(0, most).to_pylist()
            return found
        raise AssertionError

    def take(self, rows: Array) -> Self:
        """Return some of its rows."""
        return replace(self, table=self.table.take(pa.array(rows)))


def find_columns(opened: Opened, given: Columns) -> tuple[Columns, list[str]]:
    """Return which column is what, and what was guessed, in words.

    >>> table = pa.table({"Review": ["good", "bad"], "Sentiment": [1, 0]})
    >>> find_columns(Opened(table, "t.csv", Path()), Columns(label="Sentiment"))
    (Columns(label='Sentiment', ... text='Review', ...), ["texts from column 'Review'"])
    """
    found, said = given.given(), []
    for role, name in found.items():
        if name not in opened.names and not (role == "embedding" and vector_columns(opened, given)):
            raise InputError(f"{opened.where}: has no column {name!r}; {nearest(name, opened.names)}", f"{role}_column")
    free = [name for name in opened.names if name not in found.values()]
    for role, fits in _FITS.items():
        usual = _usual(role, free)
        if role not in found and usual is not None and fits(opened, usual):
            found[role] = usual
            free.remove(usual)
    said += [f"{_WORDS[role]} from column {found[role]!r}" for role in _FITS if role in found and role in _WORDS]
    if not any(role in found for role in CONTENT):
        role, name = _find_content(opened, free)
        found[role] = name
        free = [other for other in free if other != name]
        if name != ALL:
            said.append(f"{_WORDS[role]} from column {name!r}")
    if "label" not in found:
        found["label"] = _find_labels(opened, free)
        said.append(f"labels from column {found['label']!r}")
    if found.get("embedding") == ALL and given.embedding is None:
        numbers = vector_columns(opened, Columns(**found))
        if len(numbers) < 2:
            raise _no_content(opened)
        said.append(f"vectors from {len(numbers):,} columns of numbers, {numbers[0]!r} to {numbers[-1]!r}")
    known = [f"{_WORDS[role]} from column {name!r}" for role, name in given.given().items() if role in _WORDS]
    return Columns(**found), [words for words in said if words not in known]


def _find_labels(opened: Opened, free: list[str]) -> str:
    few = [name for name in free if _few_values(opened, name)]
    if len(few) != 1:
        raise InputError(
            f"{opened.where}: which column holds the labels? Name it: --label-column NAME (label=). There are: "
            f"{', '.join(opened.names)}",
            "label_column",
        )
    return few[0]


def _usual(role: str, free: list[str]) -> str | None:
    """Return the free column with the likeliest of the names that a role often has."""
    by_word = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in reversed(free)}
    return next((by_word[word] for word in USUAL[role] if word in by_word), None)


_WORDS = {
    "label": "labels",
    "clean_label": "true labels",
    "path": "paths of images",
    "image": "images",
    "text": "texts",
    "embedding": "vectors",
}


def _find_content(opened: Opened, free: list[str]) -> tuple[str, str]:
    kinds = {name: _kind(opened, name) for name in free}
    for role in ("image", "embedding", "path", "text"):
        usual = _usual(role, free)
        if usual is not None and kinds[usual] == role:
            return role, usual
    if set(NUMBERS) <= set(opened.names):
        raise InputError(
            f"{opened.where}: holds what was found out about labels (prune4rel.Labels), not the examples; give the "
            "folder that `prune4rel clean` wrote, or name the column of examples: --text-column or --path-column NAME"
        )
    for role in ("image", "embedding", "path"):
        if name := next((name for name in free if kinds[name] == role), None):
            return role, name
    words = {name: _mean_length(opened, name) for name in free if kinds[name] == "text"}
    if words and max(words.values()) > 0:
        return "text", max(words, key=lambda name: words[name])
    if len(columns_of_numbers(opened.table, ALL, set(opened.names) - set(free))) > 1:
        return "embedding", ALL
    raise _no_content(opened)


def _no_content(opened: Opened) -> InputError:
    return InputError(
        f"{opened.where}: which column holds the examples? Name it: --text-column, --path-column or "
        f"--embedding-column NAME. There are: {', '.join(opened.names)}"
    )


def vector_columns(opened: Opened, columns: Columns) -> list[str]:
    """Return the columns that vectors are read from: the one that is named, or all whose names match the pattern."""
    name = columns.embedding or ALL
    if name in opened.names:
        return [name]
    return columns_of_numbers(opened.table, name, set(columns.given().values()))


def _kind(opened: Opened, name: str) -> str:
    """Tell what a column looks like it holds: the name of a role, or nothing."""
    kind = opened.table.schema.field(name).type
    if pa.types.is_struct(kind) and any(kind.field(n).name == "bytes" for n in range(kind.num_fields)):
        return "image"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "image"
    if is_list(kind):
        return "embedding"
    return _kind_of_words(opened, name) if is_words(kind) else ""


def _kind_of_words(opened: Opened, name: str) -> str:
    some = [value for value in _some(opened, name) if value]
    if not some:
        return "text"
    if all(is_image(value.strip().rpartition("/")[2]) for value in some) or (
        _usual("path", [name]) and _is_there(opened, some[0])
    ):
        return "path"
    if all(map(is_written, some)):
        return "embedding"
    return "" if all(map(is_numeral, some)) else "text"


def _is_there(opened: Opened, text: str) -> bool:
    """Whether a text is the path of a file, whatever it is called."""
    try:
        return local_path(text.strip(), opened.folder, opened.where).is_file()
    except (InputError, OSError, ValueError):
        return False


def _some(opened: Opened, name: str) -> list[Any]:
    return opened.values(name, LOOKED_AT)


def _mean_length(opened: Opened, name: str) -> float:
    some = [len(value) for value in _some(opened, name) if value]
    return sum(some) / max(1, len(some))


def _few_values(opened: Opened, name: str) -> bool:
    """Whether a column could be labels: integers or words, far fewer different ones than rows."""
    kind = opened.table.schema.field(name).type
    if not (is_words(kind) or pa.types.is_integer(kind) or pa.types.is_dictionary(kind) or pa.types.is_boolean(kind)):
        return False
    values = _some(opened, name)
    return 2 <= len(set(values)) <= len(values) // 2


def _are_ids(opened: Opened, name: str) -> bool:
    kind, some = opened.table.schema.field(name).type, _some(opened, name)
    return (is_words(kind) or pa.types.is_integer(kind)) and len(set(some)) == len(some)


_FITS: dict[str, Callable[[Opened, str], bool]] = {
    "split": lambda opened, name: all(str(value).strip().lower() in SPLITS for value in _some(opened, name)),
    "id": _are_ids,
    "clean_label": lambda _opened, _name: True,
    "label": lambda _opened, _name: True,
}
"""Roles that a name alone may tell, and what has to be true of the column besides."""


def splits_of(
    tables: Mapping[str, Opened], columns: Columns, *, skip_missing: bool = False
) -> tuple[dict[str, Split], tuple[str, ...]]:
    """Turn tables by split into splits, labels numbered alike in all, and the class names.

    Files that are not there are refused, unless whoever reads them is to `skip_missing` ones.
    """
    given: dict[str, Array] = {}
    names: tuple[str, ...] | None = None

    def key(name: str | None, title: str) -> str:
        return f"{name} ({title})" if len(tables) > 1 else str(name)

    for title, opened in tables.items():
        for role in ("label", "clean_label"):
            if (name := getattr(columns, role)) is not None and name in opened.names:
                given[key(name, title)] = labels_of(opened, name)
                names = names or opened.class_names.get(name)
    where = next(iter(tables.values())).where
    numbers, class_names = number_together(given, where, names)
    splits = {}
    for title, opened in tables.items():
        splits[title] = Split(
            labels=numbers[key(columns.label, title)],
            clean_labels=numbers.get(key(columns.clean_label, title)),
            ids=_ids_of(opened, columns),
            **_content_of(opened, columns, skip_missing=skip_missing),
        )
    return splits, class_names


def rows_by_split(opened: Opened, name: str | None) -> dict[str, Opened]:
    """Cut a table by the words in its column of splits; all is ``"train"`` where there is none."""
    if name is None:
        return {"train": opened}
    words = [str(word).strip().lower() for word in opened.values(name)]
    for row, word in enumerate(words):
        if word not in SPLITS:
            raise InputError(f"{opened.where}: row {row} has the split {word!r}; {nearest(word, SPLITS)}")
    titles = np.array([SPLITS[word] for word in words])
    return {title: opened.take(np.flatnonzero(titles == title)) for title in np.unique(titles).tolist()}


def labels_of(opened: Opened, name: str) -> Array:
    """Return a column of labels as (n,) integers or strings; what is both, or missing, is refused by row."""
    column, where = opened.table.column(name), f"{opened.where}: column {name!r}"
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(f"{where} has a missing value in row {row}; fill or drop it")
    kind = column.type
    if pa.types.is_dictionary(kind):
        with reading(where, "column of labels"):
            column, kind = column.cast(kind.value_type), kind.value_type
    if is_words(kind):
        return from_column(column, where)
    if pa.types.is_boolean(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
    with reading(where, "column of labels"):
        values: Array = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        if (odd := np.flatnonzero(values != np.round(values))).size:
            raise InputError(f"{where}: row {odd[0]} is {values[odd[0]]}; labels are whole numbers or names")
        return values.astype(np.int64)
    if values.dtype.kind not in "iu":
        raise InputError(f"{where} has type {kind}; labels are whole numbers or names")
    return values


def _ids_of(opened: Opened, columns: Columns) -> Array | None:
    name = columns.id or columns.path
    if name is None:
        return None
    values = opened.values(name)
    if any(value is None for value in values):
        raise InputError(f"{opened.where}: column {name!r} has a missing value in row {values.index(None)}")
    if not all(isinstance(value, int) and abs(value) < 2**62 for value in values):
        return from_column(pa.chunked_array([pa.array(list(map(str, values)))]), f"{opened.where}: column {name!r}")
    return np.array(values)


def _content_of(opened: Opened, columns: Columns, *, skip_missing: bool) -> dict[str, Any]:
    role, name = columns.content()
    where = f"{opened.where}: column {name!r}"
    if role == "embedding":
        with reading(where, "column of vectors"):
            return {"features": vectors_of(opened.table, vector_columns(opened, columns), opened.where)}
    if role == "image":
        return {"files": tuple(TableImage(opened.table, name, row, opened.where) for row in range(len(opened.table)))}
    if not is_words(kind := opened.table.schema.field(name).type):
        raise InputError(f"{where} has type {kind}; expected strings")
    values = opened.values(name)
    if any(value is None for value in values):
        raise InputError(f"{where} has a missing value in row {values.index(None)}; fill or drop it")
    if role == "text":
        return {"texts": tuple(values)}
    files = [local_path(value.strip(), opened.folder, where) for value in values]
    if not skip_missing:
        try:
            require_files(files, Path(opened.where))
        except InputError as error:
            raise InputError(f"{error}; paths are taken from the folder of the table") from None
    return {"files": tuple(files)}


def local_path(text: str, folder: Path, where: str) -> Path:
    """Return the file that a path or a ``file://`` URL names; others are refused.

    >>> local_path("file:///tmp/a%20b.png", Path("here"), "t.csv").as_posix()
    '/tmp/a b.png'
    """
    if "://" not in text:
        return folder / text
    parts = urlsplit(text)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise InputError(f"{where}: {text[:80]!r} is not on this machine; fetch the files and give their paths")
    return Path(unquote(parts.path))


@dataclass(frozen=True)
class TableImage:
    """An image file inside a table: read when it is asked for."""

    table: pa.Table = field(repr=False)
    column: str
    row: int
    where: str

    def read_bytes(self) -> bytes:
        """Return the image's bytes, or those of the file that the cell names."""
        if (file := self.file) is not None:
            return read_bytes(file, "an image")
        value = self.table.column(self.column)[self.row].as_py()
        value = value.get("bytes") if isinstance(value, dict) else value
        if value is None:
            raise OSError("the cell is empty")
        return bytes(value)

    @property
    def file(self) -> Path | None:
        """The file that the cell names, where it holds no image itself."""
        value = self.table.column(self.column)[self.row]
        if not isinstance(value, pa.StructScalar) or not value.is_valid:
            return None
        if "path" not in value or ("bytes" in value and value["bytes"].is_valid):
            return None
        named = value["path"].as_py()
        return Path(self.where).parent / named if named and isinstance(named, str) else None

    @property
    def homes(self) -> tuple[Path, ...]:
        """The files of its table."""
        return _files_at(self.where)

    @property
    def part(self) -> str:
        """Which cell it is."""
        return f"{self.column} {self.row}"

    def __str__(self) -> str:
        return f"{self.where}, row {self.row}"


@lru_cache(maxsize=64)
def _files_at(where: str) -> tuple[Path, ...]:
    """Return a file, or all files of a folder; none where a table is in memory."""
    path = Path(where)
    if path.is_dir():
        return tuple(sorted(each for each in path.rglob("*") if each.is_file() and not each.name.startswith(".")))
    return (path,) if path.is_file() else ()


def said_aloud(where: str, said: Sequence[str]) -> str:
    """Say in one line what was guessed; nothing where nothing was."""
    return f"{where}: {', '.join(said)}" if said else ""
