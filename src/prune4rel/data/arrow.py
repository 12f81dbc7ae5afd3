"""Tables in any format that people have, opened as Arrow tables: CSV, TSV, JSON lines, Parquet, Arrow, frames."""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json

from prune4rel.data.columns import Opened
from prune4rel.data.files import require_file
from prune4rel.errors import InputError
from prune4rel.reading import check_regular, parse_json, read_parquet, read_text, reading, whole

TEXT = {".csv": ",", ".tsv": "\t"}
BINARY = (".parquet", ".arrow", ".feather")
LINES = (".jsonl", ".ndjson", ".json")
SUFFIXES = (*TEXT, *BINARY, *LINES)
DELIMITERS = ",;\t|"
MOST_BYTES = 2**34
"""Of a table that is read as text."""

_csv_lock = Lock()


def open_table(path: Path) -> Opened:
    """Open a table by its suffix; Parquet and Arrow files stay on disk where they can."""
    require_file(path)
    suffix = path.suffix.lower()
    names: dict[str, tuple[str, ...]] = {}
    if suffix in TEXT:
        table = _read_delimited(path, TEXT[suffix])
    elif suffix in LINES:
        table = _read_lines(path)
    elif suffix in BINARY:
        table = read_binary([path])
        names = class_names_of(table.schema)
    else:
        raise InputError(f"{path}: is no table that can be read; expected {', '.join(SUFFIXES)}")
    if table.num_rows == 0:
        raise InputError(f"{path}: has no rows")
    return Opened(table, str(path), path.parent, names)


def read_binary(paths: list[Path]) -> pa.Table:
    """Read Parquet or Arrow files, one after the other, as one table; Arrow files are mapped into memory."""
    tables = []
    for path in paths:
        if path.suffix.lower() == ".parquet":
            tables.append(read_parquet(path, dictionaries=False))
            continue
        with reading(path, "Arrow file"):
            check_regular(path)
            mapped = pa.memory_map(str(path))
            try:
                table = pa.ipc.open_file(mapped).read_all()
            except pa.ArrowInvalid:
                mapped.seek(0)
                table = pa.ipc.open_stream(mapped).read_all()
            tables.append(whole(table))
    with reading(str(paths[0].parent), "table: its parts have different columns"):
        return pa.concat_tables(tables, promote_options="permissive")
    raise AssertionError


def class_names_of(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """Return the names of classes that the library datasets writes into a table, by column."""
    try:
        features = parse_json((schema.metadata or {})[b"huggingface"], "metadata")["info"]["features"]
        return {name: tuple(map(str, one["names"])) for name, one in features.items() if one.get("names")}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def _read_delimited(path: Path, usual: str) -> pa.Table:
    text = read_text(path, "CSV file in UTF-8", MOST_BYTES)
    first = next((line for line in text.splitlines() if line.strip()), "")
    outside_quotes = "".join(first.split('"')[::2])
    delimiter = max(DELIMITERS, key=lambda mark: (outside_quotes.count(mark), mark == usual))
    rows = _rows_of(text, delimiter, path)
    header = [name.strip() for name in rows[0]] if rows else []
    if len(rows) < 2:
        raise InputError(f"{path}: has no rows below the line of column names")
    for at, name in enumerate(header):
        if not name:
            header[at] = f"column {at}"
        elif name in header[:at]:
            raise InputError(f"{path}: has two columns named {name!r}; rename one")
    for number, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise InputError(f"{path}: row {number} has {len(row)} fields, but there are {len(header)} columns")
    return pa.table(
        {name: pa.array([row[at].strip() for row in rows[1:]], pa.large_string()) for at, name in enumerate(header)}
    )


def _rows_of(text: str, delimiter: str, path: Path) -> list[list[str]]:
    """Part a text into rows of fields. Between tabs a quote may be a mark as any other, as many a TSV has it."""
    with reading(path, "CSV file in UTF-8"), _long_fields():
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            return [row for row in lines if row]
        except csv.Error as error:
            if delimiter != "\t":
                raise InputError(f"{path}: not a readable CSV file (line {lines.line_num}: {error})") from None
        plain = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=csv.QUOTE_NONE)
        return [row for row in plain if row]
    raise AssertionError


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let a field of a CSV file be as long as it is."""
    with _csv_lock:
        before = csv.field_size_limit(2**31 - 1)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _read_lines(path: Path) -> pa.Table:
    with reading(path, "JSON, one object a line"):
        with path.open("rb") as file:
            start = file.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip()
        if start[:1] == b"[":
            return _read_list(path)
        options = pa_json.ReadOptions(block_size=min(2**30, max(2**20, check_regular(path) + 1)))
        return whole(pa_json.read_json(path, read_options=options))
    raise AssertionError


def _read_list(path: Path) -> pa.Table:
    """Read one list of objects, as pandas and others write it."""
    found = parse_json(read_text(path, "JSON", MOST_BYTES), path)
    if not found or not all(isinstance(one, dict) for one in found):
        raise InputError(f"{path}: holds no list of objects, each with the same names")
    return pa.Table.from_pylist(found)


def is_frame(thing: object) -> bool:
    """Whether a thing is a table in memory: of pandas, polars, pyarrow or datasets."""
    return isinstance(thing, pa.Table) or type(thing).__module__.partition(".")[0] in ("pandas", "polars", "datasets")


def open_frame(frame: Any) -> Opened:
    """Open a table in memory; of a data set that is streamed, or a lazy frame, all rows are fetched.

    >>> open_frame(pa.table({"text": ["a"], "label": [0]})).names
    ['text', 'label']
    """
    where, home = "the frame", Path()
    try:
        if isinstance(frame, pa.Table):
            table = frame
        elif hasattr(frame, "collect"):
            table = frame.collect().to_arrow()
        elif hasattr(frame, "to_arrow"):
            table = frame.to_arrow()
        elif hasattr(frame, "iloc"):
            twice = frame.columns[frame.columns.duplicated()]
            if len(twice):
                raise InputError(f"{where}: has two columns named {twice[0]!r}; rename one")
            table = pa.Table.from_pandas(frame, preserve_index=False)
        elif hasattr(frame, "with_format"):
            where, table = "the data set", _table_of(frame)
        else:
            raise InputError(f"{type(frame).__name__} is no table that can be read")
    except pa.ArrowException as error:
        raise InputError(f"{where}: a column mixes kinds of values ({str(error).splitlines()[0][:200]})") from None
    if table.num_rows == 0:
        raise InputError(f"{where}: has no rows")
    return Opened(table, where, home, class_names_of(table.schema))


def _table_of(dataset: Any) -> pa.Table:
    """Return the table of a data set of the library datasets: as it lies on disk, unless it was shuffled."""
    if not hasattr(dataset, "data"):  # a streamed one
        with reading("the data set", "stream of examples"):
            return pa.concat_tables(dataset.with_format("arrow").iter(batch_size=1000))
    if getattr(dataset, "_indices", None) is None:
        return dataset.data.table
    return dataset.with_format("arrow")[:]
