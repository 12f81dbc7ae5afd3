"""What a path or a thing in memory is: which reader reads it, with which options, and what was guessed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prune4rel.contents import refuse_damage
from prune4rel.data.arrow import BINARY, LINES, TEXT, is_frame, open_frame
from prune4rel.data.columns import Columns, find_columns, said_aloud
from prune4rel.data.dataset import Dataset
from prune4rel.data.embeddings import CARD
from prune4rel.data.files import is_image, list_classes
from prune4rel.data.reader import get, read_dataset
from prune4rel.data.table import open_parts, read_tables
from prune4rel.errors import InputError, refuse_unknown
from prune4rel.reading import check_regular
from prune4rel.storage import PARTS

CLEANED = "noise.json"
"""Lies in a folder that `clean` wrote, and says what else does."""

CLEAN_AGAIN = "put back what was there, or run `prune4rel clean` again"

FILES = {"table": (*TEXT, *LINES, *BINARY), "webdataset": (".tar",), "arrays": (".npz", ".safetensors")}
"""Readers by the suffixes of the files they read."""


@dataclass(frozen=True)
class Recognised:
    """A source that was recognised: ``load_dataset(dataset, data, **options)`` reads it.

    `said` is what was guessed, in lines for the user.
    """

    dataset: str
    data: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    said: tuple[str, ...] = ()


def recognise(
    place: str | Path,
    *,
    options: Mapping[str, Any] | None = None,
    skip_missing: bool = False,
    **columns: str | None,
) -> Recognised:
    r"""Tell what lies at a path, and how it is read.

    Parameters
    ----------
    place
        A folder of images, one folder a class; a table (CSV, TSV, JSON lines, Parquet, Arrow) of texts, paths, images
        or vectors; a folder of such parts; one that save_to_disk of the library datasets wrote; tar shards; arrays
        with labels; a folder that ``prune4rel embed`` or ``prune4rel clean`` wrote.
    options
        Further options of the reader.
    skip_missing
        Do not refuse a table of paths because some files are not there.
    **columns
        ``label``, ``clean_label``, ``text``, ``path``, ``image``, ``embedding``, ``id``, ``split``: names of columns.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     _ = Path(name, "t.csv").write_text("Review,Stars\nsuperb film,5\nno,1\n")
    ...     found = recognise(Path(name, "t.csv"), label="Stars")
    >>> found.dataset, found.options, found.said[0].rpartition("t.csv: ")[2]
    ('table', {'label': 'Stars', 'text': 'Review'}, "texts from column 'Review'")
    """
    path = Path(place).expanduser()
    given = Columns(**columns)
    if not path.exists():
        hint = "; URLs are not read, fetch the data first" if "://" in str(place) else ""
        raise InputError(f"{path}: no such file or folder{hint}", "source")
    path = signals_of_cleaned(path) or path
    name = _reader_of(path)
    wanted = given.given()
    if name == "hf" and (
        content := {role: wanted.pop(role) for role in ("text", "image", "embedding") if role in wanted}
    ):
        wanted["column"] = next(iter(content.values()))
    said: tuple[str, ...] = ()
    if name == "table":
        opened = open_parts(path)
        first = opened.get("train") or next(iter(opened.values()))
        found, guesses = find_columns(first, given)
        wanted = found.given() if found.path is None or found.image is None else wanted
        said = tuple(filter(None, [said_aloud(str(path), guesses)]))
    known = get(name).options
    for role in wanted:
        if role not in known:
            raise InputError(
                f"{path}: is read as {name!r}, which has no such column; leave --{role.replace('_', '-')}-column out",
                f"{role}_column",
            )
    more = dict(options or {})
    refuse_unknown(f"data set {name!r}", more, known)
    if skip_missing and "skip_missing" in known:
        more.setdefault("skip_missing", True)
    return Recognised(name, path, {**wanted, **more}, said)


def signals_of_cleaned(path: Path) -> Path | None:
    """Return the signals in a folder that `clean` wrote, which is whole; None where it is another one."""
    if not (path / CLEANED).is_file():
        return None
    refuse_damage(path, CLEANED, CLEAN_AGAIN)
    return path / "signals" if (path / "signals").is_dir() else None


def _reader_of(path: Path) -> str:
    check_regular(path)
    return _reader_of_file(path) if path.is_file() else _reader_of_folder(path)


def _reader_of_file(path: Path) -> str:
    suffix = path.suffix.lower()
    found = next((name for name, suffixes in FILES.items() if suffix in suffixes), None)
    if found is not None:
        return found
    if is_image(path.name):
        raise InputError(f"{path}: is one image; give the folder of all, one folder a class", "source")
    expected = ", ".join(one for suffixes in FILES.values() for one in suffixes)
    raise InputError(f"{path}: what is this? Expected a folder of images, or a file of one of {expected}", "source")


def _reader_of_folder(path: Path) -> str:
    names = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}
    if not names:
        raise InputError(f"{path}: the folder is empty", "source")
    marks = {"embeddings": {PARTS, CARD}, "hf": {"dataset_dict.json", "state.json"}, "arrays": {"labels.npy"}}
    for reader, marked_by in marks.items():
        if marked_by & names:
            return reader
    suffixes = {Path(name).suffix.lower() for name in names}
    if ".tar" in suffixes:
        return "webdataset"
    in_parts = bool({".parquet", ".arrow"} & suffixes) and "labels.parquet" not in names
    exported = (path / "data").is_dir() and any((path / "data").glob("*.parquet"))
    if in_parts or (exported and not set(TEXT) & suffixes):
        return "table"
    if not set(TEXT) & suffixes and "train" not in names and "labels.parquet" not in names:
        list_classes(path)  # says what is missing
    return "folder"


def dataset_of(
    source: Any, *, options: Mapping[str, Any] | None = None, **columns: str | None
) -> tuple[Dataset, tuple[str, ...]]:
    """Read any source, on disk or in memory: also tells what was guessed.

    Parameters
    ----------
    source
        A path, as `recognise` takes it; a frame of pandas or polars, a table of pyarrow, a data set of the library
        datasets; a `Dataset`, which is handed back.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame = pa.table({"text": ["red", "blue", "green"], "label": ["warm", "cold", "cold"]})
    >>> dataset, said = dataset_of(frame)
    >>> dataset.train.texts, dataset.class_names, said
    (('red', 'blue', 'green'), ('cold', 'warm'), ("the frame: labels from column 'label', texts from column 'text'",))
    """
    if isinstance(source, Dataset):
        return source, ()
    if isinstance(source, str | Path):
        found = recognise(source, options=options, skip_missing=False, **columns)
        return read_dataset(found.dataset, found.data, None, found.options), found.said
    if isinstance(source, Mapping) and all(is_frame(part) for part in source.values()):
        tables = {str(title): open_frame(part) for title, part in source.items()}
    elif is_frame(source):
        tables = {"": open_frame(source)}
    else:
        raise InputError(
            f"cannot read a {type(source).__name__}; expected a path, a frame of pandas or polars, a pyarrow table "
            "or a datasets.Dataset",
            "source",
        )
    dataset, guesses = read_tables(tables, Columns(**columns), name="frame", **(options or {}))
    where = next(iter(tables.values())).where
    return dataset, tuple(filter(None, [said_aloud(where, guesses)]))
