"""Arrays on disk: read without ever unpickling, written whole or not at all."""

import hashlib
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from prune4rel.atomic import FORMULA, check_writable, defuse, undo_defuse, write_text, write_together, write_whole
from prune4rel.contents import file_digest
from prune4rel.errors import InputError, in_a_line
from prune4rel.machine import threads
from prune4rel.provenance import fingerprint
from prune4rel.reading import (
    MOST_NAME,
    check_fits,
    parse_json,
    read_json,
    read_parquet,
    read_record,
    read_sealed,
    reading,
)
from prune4rel.text_arrays import TEXTS, read_text_array

__all__ = [
    "FORMATS",
    "FORMULA",
    "PARTS",
    "check_writable",
    "defuse",
    "from_column",
    "parse_digests",
    "read_array",
    "read_arrays",
    "read_columns",
    "read_signal",
    "to_json",
    "to_table",
    "undo_defuse",
    "write_arrays",
    "write_json",
    "write_parquet",
    "write_text",
    "write_together",
    "write_whole",
]

Array = NDArray[Any]
ASIDE = "prune4rel.arrays"
FORMATS = ".npy, .npz, .safetensors, .parquet or a folder of .npy files"
DIGESTS = "prune4rel.sha256"
"""Metadata of a file, and the name of a file in a folder, that hold fingerprints of what was written."""

DIGESTS_FILE, BESIDE = "_sha256.json", "(beside the columns)"
_STARTS = {".npy": b"\x93NUMPY", ".npz": b"PK"}
_PICKLED = (
    "holds pickled Python objects, which can run code when loaded and are refused; "
    "save a plain numeric or string array instead"
)

PARTS = "_signals.json"
"""Lists the Parquet files of a folder that are the parts of one set of signals."""


def read_arrays(path: str | Path) -> dict[str, Array]:
    """Read every array of a file or folder, by name.

    `.npy` files, alone or in a folder, are memory-mapped: nothing is read until it is used. A lone `.npy`
    has the name ``""``. Signals in parts are put together.
    """
    path = Path(path)
    if not os.path.lexists(path):
        raise InputError(f"{path}: no such file or folder")
    with reading(path, "arrays"):
        return _reader_of(path)(path)
    raise AssertionError


def _reader_of(path: Path) -> Callable[[Path], dict[str, Array]]:
    if path.is_dir():
        return _read_parts if (path / PARTS).is_file() else _read_folder
    readers: dict[str, Callable[[Path], dict[str, Array]]] = {
        ".npy": lambda file: {"": _read_npy(file)},
        ".npz": _read_npz,
        ".safetensors": _read_safetensors,
        ".parquet": _read_parquet,
    }
    if path.suffix not in readers:
        raise InputError(f"{path}: unknown format {path.suffix or '(no suffix)'!r}; use {FORMATS}")
    return readers[path.suffix]


def read_array(path: str | Path, name: str) -> Array:
    """Read one array from a file that holds it alone or under its `name`; from a text file, too."""
    if Path(path).suffix in TEXTS:
        return read_text_array(Path(path), name)
    arrays = read_arrays(path)
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    if name in arrays:
        return arrays[name]
    raise InputError(f"{path}: holds {', '.join(arrays)}, none of them named {name!r}")


def _check_start(path: Path, wanted: str) -> None:
    """Refuse a file that does not begin as the format its name says: empty, another one, a pickle, or nonsense."""
    with reading(path, f"{wanted} file"), path.open("rb") as file:
        start = file.read(max(map(len, _STARTS.values())))
    if not start:
        raise InputError(f"{path}: the file is empty")
    if start.startswith(_STARTS[wanted]):
        return
    for kind, magic in _STARTS.items():
        if start.startswith(magic):
            raise InputError(f"{path}: is a {kind} file by what it holds; rename it to {path.with_suffix(kind).name}")
    if re.match(rb"\x80[\x02-\x05]", start):
        raise InputError(f"{path}: {_PICKLED}")
    if _STARTS[wanted].startswith(start):
        raise InputError(f"{path}: the file is truncated: only {len(start)} bytes are there")
    raise InputError(f"{path}: not a readable {wanted} file: it is not in NumPy's format, whatever its name says")


def _read_folder(folder: Path, only: Collection[str] | None = None) -> dict[str, Array]:
    files = sorted(folder.glob("*.npy"))
    if not files:
        raise InputError(f"{folder}: no .npy file in this folder; expected labels.npy, embeddings.npy, ...")
    arrays = {file.stem: _read_npy(file) for file in files if only is None or file.stem in only}
    if (folder / DIGESTS_FILE).is_file():
        digests = parse_digests(read_json(folder / DIGESTS_FILE), folder / DIGESTS_FILE)
        wanted = {name: digest for name, digest in digests.items() if only is None or name in only}
        _check_digests(folder, wanted, arrays)
    return arrays


def read_signal(folder: Path, name: str) -> Array | None:
    """Read one array of a folder that `write_arrays` wrote, or None where there is none of that name."""
    if not (folder / f"{name}.npy").is_file():
        return None
    with reading(folder, "arrays"):
        return _read_folder(folder, [name])[name]
    raise AssertionError


def _read_npy(path: Path) -> Array:
    _check_start(path, ".npy")
    with reading(path, ".npy file"):
        try:
            array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise InputError(f"{path}: {_explain_npy(path, error)}") from None
        _check_kind(path, array.dtype)
        return array
    raise AssertionError


def _check_kind(where: object, kind: np.dtype[Any]) -> None:
    """Refuse what nothing here computes with: complex numbers, records, numbers of more than eight bytes."""
    if kind.kind not in "biufSUMm" or (kind.kind == "f" and kind.itemsize > 8):
        raise InputError(f"{where}: holds values of type {kind}; save them as whole numbers, float64 or text")


def _explain_npy(path: Path, error: ValueError) -> str:
    text = str(error)
    if "Python objects in dtype" in text or "Object arrays" in text:
        return _PICKLED
    if "mmap length" in text or "greater than file size" in text:
        return f"the file is truncated: its header promises more than the {path.stat().st_size} bytes that are there"
    return f"not a readable .npy file ({in_a_line(text)})"


def _read_npz(path: Path) -> dict[str, Array]:
    _check_start(path, ".npz")
    arrays: dict[str, Array] = {}
    with reading(path, ".npz file, perhaps truncated"), path.open("rb") as opened, zipfile.ZipFile(opened) as whole:
        members = whole.infolist()
        check_fits(path, sum(each.file_size for each in members), path.stat().st_size)
        for member in members:
            with whole.open(member) as file:
                arrays[member.filename.removesuffix(".npy")] = _read_member(path, member, file)
    return arrays


def _read_member(path: Path, member: zipfile.ZipInfo, file: IO[bytes]) -> Array:
    """Read one array of a .npz file, which is as long as its header says before anything is made for it."""
    if not member.filename.endswith(".npy"):
        name = in_a_line(member.filename)
        raise InputError(f"{path}: {name!r} in it is not in NumPy's format; save arrays with np.savez")
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{in_a_line(member.filename)} is of a version of NumPy's format that is not known here")
    first = version == (1, 0)
    reader = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, fortran, kind = reader(file)
    if kind.hasobject:
        raise InputError(f"{path}: {_PICKLED}")
    _check_kind(f"{path}: {in_a_line(member.filename)}", kind)
    if kind.itemsize == 0:
        return np.zeros(shape, dtype=kind)
    wanted = math.prod(shape) * kind.itemsize
    if not 0 <= wanted <= member.file_size:
        raise ValueError(f"{in_a_line(member.filename)} promises {wanted:,} bytes, but holds {member.file_size:,}")
    content = bytearray(file.read(wanted))
    if len(content) != wanted or file.read(1):
        raise ValueError(f"{in_a_line(member.filename)} does not hold what its header says")
    return np.frombuffer(content, dtype=kind).reshape(shape, order="F" if fortran else "C")


def _read_safetensors(path: Path) -> dict[str, Array]:
    from safetensors import safe_open  # noqa: PLC0415 - only for this format

    with reading(path, ".safetensors file"), safe_open(path, framework="numpy") as file:
        arrays: dict[str, Array] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        metadata = file.metadata() or {}
    arrays |= _from_text(metadata.get(ASIDE), path)
    _check_digests(path, parse_digests(metadata.get(DIGESTS), path), arrays)
    return arrays


def _read_parquet(path: Path) -> dict[str, Array]:
    return read_columns(path)[0]


def read_columns(path: Path, columns: Sequence[str] | None = None) -> tuple[dict[str, Array], dict[bytes, bytes]]:
    """Read a Parquet file, or some of its columns, as arrays that are what was written; and its metadata."""
    table = read_parquet(path, columns)
    with reading(path, "table"):
        arrays = {name: from_column(table.column(name), f"{path}: column {name!r}") for name in table.column_names}
    metadata = dict(table.schema.metadata or {})
    arrays |= _from_text(metadata.get(ASIDE.encode()), path)
    digests = parse_digests(metadata.get(DIGESTS.encode()), path)
    if digests.pop(BESIDE, None) not in (None, _print_of_metadata(metadata)):
        raise InputError(f"{path}: what it says of itself is not what was written there: damaged; write it anew")
    _check_digests(path, digests if columns is None else {k: v for k, v in digests.items() if k in arrays}, arrays)
    return arrays, metadata


@dataclass(frozen=True)
class _Part:
    name: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class _Index:
    n: int
    parts: tuple[_Part, ...]
    class_names: tuple[str, ...] | None = None


def _read_parts(folder: Path) -> dict[str, Array]:
    """Put signals in parts together, each as its index says."""
    index = read_record(_Index, read_sealed(folder / PARTS), folder / PARTS)
    parts: list[dict[str, Array]] = []
    for each in index.parts:
        if Path(each.name).name != each.name or each.name.startswith("."):
            raise InputError(f"{folder / PARTS}: {in_a_line(each.name)!r} is no name of a file beside it")
        path = folder / each.name
        if not path.is_file():
            raise InputError(f"{path}: no such file, but {PARTS} lists it")
        if file_digest(path) != each.sha256:
            raise InputError(
                f"{path}: is not what {PARTS} says (its sha256 differs): damaged or replaced; write it anew"
            )
        part = _read_parquet(path)
        if parts and {name: array.shape[1:] for name, array in part.items()} != {
            name: array.shape[1:] for name, array in parts[0].items()
        }:
            raise InputError(f"{path}: its columns or their widths are not those of {index.parts[0].name}")
        if any(len(array) != each.rows for array in part.values()):
            raise InputError(f"{path}: has not the {each.rows} rows that {PARTS} says")
        parts.append(part)
    if not parts or sum(each.rows for each in index.parts) != index.n:
        raise InputError(f"{folder / PARTS}: its parts are not the {index.n} rows it says")
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if index.class_names is not None:
        arrays["class_names"] = np.array(index.class_names, dtype=np.str_)
    return arrays


def parse_digests(found: object, where: Path) -> dict[str, str]:
    """Return fingerprints by the names of arrays; none where none were written."""
    values = {} if found is None else parse_json(found, where) if isinstance(found, str | bytes) else found
    if not isinstance(values, dict) or not all(isinstance(each, str) for each in values.values()):
        raise InputError(f"{where}: its fingerprints cannot be read; write it anew")
    return values


def _check_digests(path: Path, wanted: Mapping[str, str], arrays: Mapping[str, Array]) -> None:
    """Compare arrays with what was written; files from elsewhere have no fingerprints."""
    shared = [name for name in wanted if name in arrays]
    if missing := [name for name in wanted if name not in arrays]:
        raise InputError(f"{path}: {missing[0]!r} was written there and is gone; write it anew")
    with ThreadPoolExecutor(max_workers=max(1, min(threads(), len(shared)))) as pool:
        for name, digest in zip(shared, pool.map(lambda name: fingerprint(arrays[name]), shared), strict=True):
            if digest != wanted[name]:
                how = f"remove {DIGESTS_FILE} beside it" if path.is_dir() else "save it with a tool of your own"
                raise InputError(
                    f"{path}: {name!r} is not what was written there: damaged or replaced; write it anew "
                    f"(or, if that was meant, {how})"
                )


def _to_text(arrays: Mapping[str, Array]) -> dict[str, str]:
    """Arrays a format has no place for, as one entry of its metadata."""
    return {ASIDE: json.dumps({name: array.tolist() for name, array in arrays.items()})} if arrays else {}


def _from_text(text: str | bytes | None, path: Path | str) -> dict[str, Array]:
    values = {} if text is None else parse_json(text, path)
    with reading(path, "array in its metadata"):
        return {str(name): np.array(each) for name, each in values.items()}
    raise AssertionError


def from_column(column: pa.ChunkedArray, where: str) -> Array:
    """Turn a column of a table into an array; a fixed-size list becomes a matrix."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(f"{where} has a missing value in row {row}; fill or drop it")
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _texts_of(column, where)
    if pa.types.is_fixed_size_list(kind):
        flat: Array = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(column), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        raise InputError(f"{where} is a list of varying length; write it as a fixed-size list, one length for all rows")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts_of(column.dictionary_encode(), where)
    plain: Array = column.to_numpy()
    return plain


def _texts_of(column: pa.ChunkedArray, where: str) -> Array:
    """Return texts as an array, in which each takes the space of the longest."""
    column = column.unify_dictionaries()
    parts = []
    longest = 1
    for chunk in column.chunks:
        if not pa.types.is_string(chunk.dictionary.type) and not pa.types.is_large_string(chunk.dictionary.type):
            return np.asarray(column.cast(chunk.dictionary.type).to_numpy())
        longest = max(longest, pc.max(pc.utf8_length(chunk.dictionary)).as_py() or 1)
        parts.append(chunk)
    if longest > MOST_NAME:
        raise InputError(f"{where} has a text of {longest:,} letters; at most {MOST_NAME:,} are taken")
    check_fits(where, 4.0 * longest * len(column))
    texts = [
        np.array(part.dictionary.to_pylist(), dtype=np.str_)[part.indices.to_numpy()] for part in parts if len(part)
    ]
    return np.concatenate(texts) if texts else np.empty(0, dtype=np.str_)


def to_table(arrays: Mapping[str, Array]) -> pa.Table:
    """Make a table whose two-dimensional arrays are fixed-size-list columns.

    The first array sets the number of rows; arrays of another length go into the metadata.
    """
    columns: dict[str, pa.Array] = {}
    rows = len(next(iter(arrays.values())))
    aside = {name: array for name, array in arrays.items() if len(array) != rows}
    for name, array in arrays.items():
        if name in aside:
            continue
        if array.ndim == 2:
            values = pa.array(np.ascontiguousarray(array).ravel())
            columns[name] = pa.FixedSizeListArray.from_arrays(values, array.shape[1])
        else:
            columns[name] = pa.array(array.tolist() if array.dtype.kind == "U" else array)
    return pa.table(columns, metadata=_to_text(aside))


def write_arrays(path: str | Path, arrays: Mapping[str, Array], *, force: bool = False) -> None:
    """Write arrays in the format the suffix names; no suffix means a folder of `.npy` files."""
    path = Path(path)

    def write(part: Path) -> None:
        if path.suffix == "":
            part.mkdir()
            for name, array in arrays.items():
                np.save(part / f"{name}.npy", array, allow_pickle=False)
            digests = {name: fingerprint(np.asanyarray(array)) for name, array in arrays.items()}
            (part / DIGESTS_FILE).write_text(to_json(digests, indent=1) + "\n", encoding="utf-8")
        elif path.suffix == ".npz":  # which has a checksum of every array by itself
            with zipfile.ZipFile(part, "w") as whole:
                for name, array in arrays.items():
                    with whole.open(f"{name}.npy", "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
        elif path.suffix == ".safetensors":
            _write_safetensors(part, arrays)
        elif path.suffix == ".parquet":
            write_parquet(to_table(arrays), part)
        else:
            raise InputError(f"{path}: unknown format {path.suffix!r}; use {FORMATS}")

    write_whole(path, write, force=force)


def _write_safetensors(part: Path, arrays: Mapping[str, Array]) -> None:
    from safetensors import SafetensorError  # noqa: PLC0415 - only for this format
    from safetensors.numpy import save_file  # noqa: PLC0415 - only for this format

    words = {name: np.array(array.tolist()) for name, array in arrays.items() if array.dtype.kind == "U"}
    numbers = {
        name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        for name, array in arrays.items()
        if name not in words
    }
    digests = {name: fingerprint(array) for name, array in {**numbers, **words}.items()}
    try:
        save_file(numbers, part, metadata={**_to_text(words), DIGESTS: to_json(digests)})
    except SafetensorError as error:  # also where the disk is full
        raise OSError(str(error)) from None


def write_parquet(table: pa.Table, part: Path, **options: Any) -> None:
    """Write a table with checksums of its pages and fingerprints of its columns, for `write_whole` to put in place.

    A name with a colon is a file like any other.
    """
    metadata = dict(table.schema.metadata or {})
    aside = metadata.get(ASIDE.encode())
    arrays = {
        name: from_column(table.column(name), name) for name in table.column_names if not table.column(name).null_count
    }
    if aside is not None:
        arrays |= _from_text(aside, "metadata")
    digests = {name: fingerprint(array) for name, array in arrays.items()} | {BESIDE: _print_of_metadata(metadata)}
    metadata[DIGESTS.encode()] = to_json(digests).encode()
    with part.open("wb") as file:
        pq.write_table(table.replace_schema_metadata(metadata), file, write_page_checksum=True, **options)


def _print_of_metadata(metadata: Mapping[bytes, bytes]) -> str:
    """Fingerprint of all there is in a file besides its columns."""
    told = sorted((name, text) for name, text in metadata.items() if name != DIGESTS.encode())
    return hashlib.sha256(repr(told).encode()).hexdigest()


def to_json(value: object, indent: int | None = None) -> str:
    """Write JSON; NumPy's numbers count as numbers.

    >>> to_json({"eta": np.float32(0.5)})
    '{"eta": 0.5}'
    """
    return json.dumps(value, indent=indent, ensure_ascii=False, default=lambda number: number.item())


def write_json(path: str | Path, value: object, *, force: bool = False) -> None:
    """Write a JSON document for people and programs."""
    write_text(path, to_json(value, indent=2) + "\n", force=force)
