"""`Signals` in shards: a folder of Parquet files and a small index, written part by part, by anybody.

The folder holds ``part-00000.parquet``, ``part-00001.parquet``, ... with the columns of `Signals`, one row an
example, and ``_signals.json`` with what is in them::

    {"format": 1, "n": 1000000, "classes": 10, "class_names": null, "columns": {"labels": [], "embeddings": [512]},
     "parts": [{"name": "part-00000.parquet", "rows": 250000, "sha256": "..."}, ...]}

Parts may be written by different processes in any order. The index is written last, so a folder without one is not
finished.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from prune4rel.atomic import make_folder
from prune4rel.errors import InputError, in_a_line
from prune4rel.reading import MOST_TEXT, parse_json, reading, seal, unseal
from prune4rel.shards import FileShard, Shards, absolute, opened
from prune4rel.signals import Signals
from prune4rel.storage import PARTS, to_table, write_json, write_parquet, write_whole

Array = NDArray[Any]
INDEX = PARTS
FORMAT = 1
ROW_GROUP_BYTES = 16 * 2**20
HASHED_AT_ONCE = 2**24


@dataclass(frozen=True)
class SignalShards:
    """An opened folder of signal shards: every array as `Shards`, and what the index says.

    Parameters
    ----------
    arrays
        The arrays by name, not read yet.
    classes
        Number of classes, None where it is not known.
    class_names
        Their names, where there are any.
    sha256
        Fingerprint of each file, by URL.
    """

    arrays: Mapping[str, Shards]
    classes: int | None
    class_names: tuple[str, ...] | None
    sha256: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.arrays["labels"])

    def load(self) -> Signals:
        """Read everything into this process, checked as ever."""
        return Signals(class_names=self.class_names, **{name: part.read() for name, part in self.arrays.items()})


def write_part(folder: str | Path, number: int, signals: Signals, *, force: bool = False) -> dict[str, Any]:
    """Write one part; returns its entry of the index, to be handed to `finish_signals`.

    Row groups are small, so that a reader that wants few rows reads little.
    """
    name = f"part-{number:05d}.parquet"
    table = to_table({name: array for name, array in signals.arrays().items() if name != "class_names"})
    rows = max(1, ROW_GROUP_BYTES * len(signals) // max(1, table.nbytes))
    path = Path(folder) / name

    def write(part: Path) -> None:
        write_parquet(table, part, row_group_size=rows)

    write_whole(path, write, force=force)
    return describe_part(folder, number, signals)


def describe_part(folder: str | Path, number: int, signals: Signals) -> dict[str, Any]:
    """Return the entry of the index for a part that lies there already and holds these signals."""
    name = f"part-{number:05d}.parquet"
    return {
        "name": name,
        "rows": len(signals),
        "sha256": sha256_of(str(Path(folder) / name)),
        "classes": signals.n_classes if signals.probabilities is not None or signals.class_names else None,
        "class_names": signals.class_names,
        "columns": {name: list(array.shape[1:]) for name, array in signals.arrays().items() if name != "class_names"},
    }


def finish_signals(folder: str | Path, entries: Sequence[Mapping[str, Any]], *, force: bool = False) -> None:
    """Write the index of parts that are all there; rows count in the order of the parts' names."""
    ordered = sorted(entries, key=lambda entry: str(entry["name"]))
    if not ordered:
        raise InputError(f"{folder}: no part was written")
    common = {name: ordered[0][name] for name in ("classes", "class_names", "columns")}
    for entry in ordered:
        for name, value in common.items():
            if entry[name] != value:
                raise InputError(
                    f"{folder}/{entry['name']}: its {name} are {entry[name]}, but {value} in {ordered[0]['name']}; "
                    "all parts need the same"
                )
    parts = [{name: entry[name] for name in ("name", "rows", "sha256")} for entry in ordered]
    index = {"format": FORMAT, "n": sum(part["rows"] for part in parts), **common, "parts": parts}
    write_json(Path(folder) / INDEX, seal(index), force=force)


def write_signals(folder: str | Path, parts: Iterable[Signals], *, force: bool = False) -> None:
    """Write signals that come part by part into a new folder.

    Examples
    --------
    >>> import tempfile
    >>> halves = [Signals(labels=[0, 1], losses=[0.5, 0.1]), Signals(labels=[1], losses=[0.2])]
    >>> with tempfile.TemporaryDirectory() as name:
    ...     write_signals(f"{name}/signals", halves)
    ...     opened = open_signals(f"{name}/signals")
    ...     len(opened), opened.arrays["losses"].read(1, 3).tolist()
    (3, [0.1, 0.2])
    """
    make_folder(Path(folder))
    finish_signals(
        folder, [write_part(folder, number, part, force=force) for number, part in enumerate(parts)], force=force
    )


def open_signals(folder: str | Path) -> SignalShards:
    """Open what `write_signals` or `finish_signals` wrote, here or at a URL; only the index is read.

    Raises
    ------
    InputError
        There is no index, or it is not one.
    """
    root = absolute(folder).rstrip("/")
    index = _read_index(f"{root}/{INDEX}")
    try:
        for part in index["parts"]:
            name = str(part["name"])
            if PurePosixPath(name).name != name or name.startswith("."):
                raise InputError(f"{root}/{INDEX}: {in_a_line(name)!r} is no name of a file beside it")
        parts = [(f"{root}/{part['name']}", int(part["rows"]), str(part["sha256"])) for part in index["parts"]]
        sizes = {url: _size(url) for url, _, _ in parts}
        first = parts[0][0]
        arrays = {
            name: Shards(
                name,
                tuple(FileShard(url, rows, sizes[url], name) for url, rows, _ in parts),
                tuple(shape),
                _stored_type(first, name),
            )
            for name, shape in index["columns"].items()
        }
        names = index["class_names"]
        opened_shards = SignalShards(
            arrays,
            index["classes"],
            None if names is None else tuple(map(str, names)),
            {url: digest for url, _, digest in parts},
        )
        if len(opened_shards) != index["n"]:
            raise InputError(f"{root}/{INDEX}: says n = {index['n']}, but its parts have {len(opened_shards)} rows")
    except (AttributeError, KeyError, TypeError, IndexError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{root}/{INDEX}: not an index of signal shards ({error!r})") from None
    return opened_shards


def sha256_of(url: str) -> str:
    """SHA-256 of a file's bytes, read piece by piece."""
    digest = hashlib.sha256()
    with opened(url) as file:
        while content := file.read(HASHED_AT_ONCE):
            digest.update(content)
    return digest.hexdigest()


def check_file(url: str, sha256: str) -> None:
    """Compare a file with its fingerprint in the index.

    Raises
    ------
    InputError
        It is gone or holds something else.
    """
    if sha256_of(url) != sha256:
        raise InputError(
            f"{url}: the shard is not what {INDEX} says (its sha256 differs): it is damaged or was replaced. "
            "Write it anew, and the index with it"
        )


def _read_index(url: str) -> dict[str, Any]:
    with opened(url) as file:
        text = file.read(MOST_TEXT)
    index = unseal(parse_json(text, url), url)
    with reading(url, "index of signal shards"):
        newer = index["format"] > FORMAT
    if newer:
        raise InputError(f"{url}: written by a newer prune4rel (format {index['format']}); update to read it")
    return index


def _size(url: str) -> int:
    with opened(url) as file:
        return int(file.size())


def _stored_type(url: str, column: str) -> np.dtype[Any]:
    """Type of a column, from the first part; all parts were written from the same arrays."""
    with opened(url) as file, reading(url, "Parquet file"):
        kind = pq.ParquetFile(file).schema_arrow.field(column).type
        kind = getattr(kind, "value_type", kind)
        return np.dtype(np.str_) if str(kind) in {"string", "large_string"} else np.dtype(kind.to_pandas_dtype())
    raise AssertionError
