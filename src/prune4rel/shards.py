"""Long arrays in pieces: `.npy` and Parquet files in a folder or behind a URL, read by range of rows."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy
from numpy.typing import NDArray
from pyarrow import fs as arrow_fs

from prune4rel.errors import InputError
from prune4rel.reading import check_fits, check_regular, reading
from prune4rel.storage import PARTS, from_column, read_array

Array = NDArray[Any]
SUFFIXES = (".npy", ".parquet")


class Shard(Protocol):
    """One piece of an array."""

    @property
    def rows(self) -> int:
        """How many rows it has."""

    def read(self, start: int, stop: int) -> Array:
        """Rows `start` to `stop` of this piece."""


@dataclass(frozen=True)
class FileShard:
    """A file that holds some rows: all of a `.npy`, or one column of a Parquet file.

    `size` is its length in bytes when it was first seen; a file of another length is refused later.
    """

    url: str
    rows: int
    size: int
    column: str | None

    def read(self, start: int, stop: int) -> Array:
        """Rows `start` to `stop`; what cannot be read is named."""
        with opened(self.url, self.size) as file:
            if self.column is None:
                return _npy_rows(file, start, stop)
            return _parquet_rows(file, self.column, start, stop, f"{self.url}: column {self.column!r}")


@dataclass(frozen=True, eq=False)
class ShardRows:
    """Some rows of a piece, by their numbers (k,) in it, ascending."""

    part: Shard
    numbers: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """How many they are."""
        return len(self.numbers)

    def read(self, start: int, stop: int) -> Array:
        """Rows `start` to `stop` of them."""
        wanted = self.numbers[start:stop]
        found: Array = self.part.read(int(wanted[0]), int(wanted[-1]) + 1)[wanted - wanted[0]]
        return found


@dataclass(frozen=True)
class Shards:
    """An array whose rows lie in several pieces, one after the other. Nothing is read before `read`.

    Parameters
    ----------
    name
        What the array is, for messages.
    parts
        The pieces in the order of their rows.
    row_shape
        Shape of one row: ``()`` or ``(d,)``.
    dtype
        Type of the numbers as they are stored.
    """

    name: str
    parts: tuple[Shard, ...]
    row_shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self._ends[-1]

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(part.rows for part in self.parts))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""
        return (len(self), *self.row_shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array as it is stored; strings are not counted."""
        return len(self) * int(np.prod(self.row_shape, dtype=np.int64)) * self.dtype.itemsize

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """Rows `start` to `stop` as one array.

        Raises
        ------
        InputError
            A piece is gone, shorter than it was, or not readable; the message names it.
        """
        stop = len(self) if stop is None else stop
        pieces = []
        for k in range(bisect_right(self._ends, start), len(self.parts)):
            first = self._ends[k] - self.parts[k].rows
            if first >= stop:
                break
            pieces.append(self.parts[k].read(max(0, start - first), min(self.parts[k].rows, stop - first)))
        if len(pieces) == 1:
            return pieces[0]
        with reading(f"shards of {self.name}", "array in parts"):
            return np.concatenate(pieces)
        raise AssertionError


def read_whole(source: str | Path, name: str) -> Array:
    """Read one array from a file, or from a folder of `.npy` or `.parquet` parts, in the order of their names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(3):
    ...         np.save(f"{folder}/part-{k}.npy", np.full((2, 4), k, dtype=np.float32))
    ...     read_whole(folder, "embeddings")[:, 0].tolist()
    [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    """
    path = Path(source)
    if not path.is_dir() or (path / PARTS).is_file() or (path / f"{name}.npy").is_file():
        return read_array(path, name)
    parts = open_shards(path, name)
    check_fits(path, parts.nbytes)
    return parts.read()


def open_shards(source: str | Path, name: str) -> Shards:
    """Look at one file, or at all files of a folder, in the order of their names; only headers are read.

    Parameters
    ----------
    source
        A `.npy` or `.parquet` file, or a folder of such files, on this machine or at any URL that pyarrow or
        fsspec can read. On a cluster every node must see it under the same name. Names that begin with ``_`` or
        ``.`` are passed over.
    name
        Which array it is: the column of a Parquet file that has several.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(3):
    ...         np.save(f"{folder}/part-{k}.npy", np.full((2, 4), k, dtype=np.float32))
    ...     shards = open_shards(folder, "embeddings")
    ...     shards.shape, shards.read(3, 5)[:, 0].tolist()
    ((6, 4), [1.0, 2.0])
    """
    urls = list_files(source)
    found = [_look(url, name) for url in urls]
    parts, shapes, dtypes = zip(*found, strict=True)
    for url, shape in zip(urls, shapes, strict=True):
        if shape != shapes[0]:
            raise InputError(
                f"{url}: a row of {name} has shape {shape}, but {shapes[0]} in {urls[0]}; all shards need the same",
                name,
            )
    for url, dtype in zip(urls, dtypes, strict=True):
        if dtype != dtypes[0]:
            raise InputError(f"{url}: {name} is {dtype}, but {dtypes[0]} in {urls[0]}; all shards need the same", name)
    shards = Shards(name, parts, shapes[0], dtypes[0])
    if len(shards) == 0:
        raise InputError(f"{source}: no rows in it", name)
    return shards


def list_files(source: str | Path) -> list[str]:
    """URLs of the `.npy` or `.parquet` files that `source` names, in the order of their names."""
    url = absolute(source)
    system, path = filesystem(url)
    try:
        info = system.get_file_info(path)
        if info.type == arrow_fs.FileType.NotFound:
            raise InputError(f"{url}: no such file or folder")
        if info.type != arrow_fs.FileType.Directory:
            return [url]
        inside = system.get_file_info(arrow_fs.FileSelector(path))
    except OSError as error:
        raise InputError(f"{url}: cannot be listed ({error})") from None
    names = sorted(entry.base_name for entry in inside if entry.type == arrow_fs.FileType.File)
    names = [name for name in names if not name.startswith(("_", ".")) and name.endswith(SUFFIXES)]
    if not names:
        raise InputError(f"{url}: no .npy or .parquet file in this folder")
    if len({Path(name).suffix for name in names}) > 1:
        raise InputError(f"{url}: holds both .npy and .parquet files; keep shards of one kind in a folder")
    return [f"{url.rstrip('/')}/{name}" for name in names]


def absolute(source: str | Path) -> str:
    """Return a URL as it is, and a path from the root, so that it means the same on every node."""
    text = str(source)
    return text if "://" in text else str(Path(text).absolute())


def filesystem(url: str) -> tuple[arrow_fs.FileSystem, str]:
    """Who can read the URL, and what it calls the file: pyarrow itself, else fsspec."""
    if "://" not in url:
        return arrow_fs.LocalFileSystem(), url
    try:
        found: tuple[arrow_fs.FileSystem, str] = arrow_fs.FileSystem.from_uri(url)
    except pa.ArrowInvalid:
        pass
    except OSError as error:
        raise InputError(f"{url}: cannot be reached ({error})") from None
    else:
        return found
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - only for URLs that pyarrow does not know

        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InputError(f"{url}: neither pyarrow nor fsspec can read it ({error})") from None
    return arrow_fs.PyFileSystem(arrow_fs.FSSpecHandler(system)), path


@contextmanager
def opened(url: str, size: int | None = None) -> Iterator[pa.NativeFile]:
    """Open a file for reading; whatever goes wrong inside is told with its name."""
    system, path = filesystem(url)
    try:
        if "://" not in url:
            check_regular(Path(path))  # a pipe would never be opened
        with system.open_input_file(path) as file:
            if size is not None and file.size() != size:
                raise InputError(
                    f"{url}: the shard has {file.size()} bytes, but had {size} when it was first looked at; "
                    "shards must not change while they are in use"
                )
            yield file
    except FileNotFoundError:
        raise InputError(f"{url}: the shard is not there; put it back, on every node, and run again") from None
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{url}: the shard cannot be read, perhaps it is damaged ({error})") from None


def _look(url: str, name: str) -> tuple[FileShard, tuple[int, ...], np.dtype[Any]]:
    """Read a file's header: how many rows, of which shape and type."""
    with opened(url) as file, reading(url, "shard"):
        size = file.size()
        if url.endswith(".parquet"):
            return _look_at_parquet(url, size, file, name)
        if not url.endswith(".npy"):
            raise InputError(f"{url}: unknown format; shards are .npy or .parquet files", name)
        shape, dtype, offset = _npy_header(file)
        promised = offset + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if promised > size:
            raise InputError(f"{url}: the file is truncated: its header promises {promised} bytes, {size} are there")
        return FileShard(url, shape[0], size, None), shape[1:], dtype


def _npy_header(file: pa.NativeFile) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(file)
    if version not in readers:
        raise ValueError(f"version {version} of .npy")
    shape, columns_first, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects, which can run code when loaded and are refused")
    if columns_first and len(shape) > 1:
        raise ValueError("it is stored column by column; save it with np.ascontiguousarray first")
    if not shape:
        raise ValueError("it holds one number and no rows")
    return shape, dtype, file.tell()


def _npy_rows(file: pa.NativeFile, start: int, stop: int) -> Array:
    shape, dtype, offset = _npy_header(file)
    each = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
    content = file.read_at((stop - start) * each, offset + start * each)
    return np.frombuffer(content, dtype=dtype).reshape(stop - start, *shape[1:])


def _look_at_parquet(
    url: str, size: int, file: pa.NativeFile, name: str
) -> tuple[FileShard, tuple[int, ...], np.dtype[Any]]:
    with reading(url, "Parquet file"):
        table = pq.ParquetFile(file)
    names = table.schema_arrow.names
    column = names[0] if len(names) == 1 else name
    if column not in names:
        raise InputError(f"{url}: holds the columns {', '.join(names)}, none of them named {name!r}", name)
    kind = table.schema_arrow.field(column).type
    shape: tuple[int, ...] = ()
    if pa.types.is_fixed_size_list(kind):
        shape, kind = (kind.list_size,), kind.value_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        raise InputError(f"{url}: column {column!r} is a list of varying length; write it as a fixed-size list", name)
    words = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    dtype = np.dtype(np.str_) if words else np.dtype(kind.to_pandas_dtype())
    return FileShard(url, table.metadata.num_rows, size, column), shape, dtype


def _parquet_rows(file: pa.NativeFile, column: str, start: int, stop: int, where: str) -> Array:
    """Read only the row groups that hold the rows."""
    with reading(where, "Parquet file"):
        table = pq.ParquetFile(file, page_checksum_verification=True)
        sizes = [table.metadata.row_group(g).num_rows for g in range(table.metadata.num_row_groups)]
        ends = np.cumsum(sizes)
        early, late = np.searchsorted(ends, start, side="right"), np.searchsorted(ends, stop, side="left")
        groups = range(int(early), int(late) + 1)
        first = int(ends[groups[0]]) - sizes[groups[0]]
        rows = table.read_row_groups(list(groups), columns=[column]).column(column).slice(start - first, stop - start)
        found = from_column(rows, where)
        if len(found) != stop - start:
            raise ValueError(f"it has not the rows {start} to {stop}")
        return found
    raise AssertionError
