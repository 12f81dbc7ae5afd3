"""Arrays on disk: read without ever unpickling, written whole or not at all."""

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from prune4rel.atomic import FORMULA, check_writable, defuse, undo_defuse, write_together, write_whole
from prune4rel.errors import InputError

__all__ = [
    "FORMATS",
    "FORMULA",
    "PARTS",
    "check_writable",
    "defuse",
    "from_column",
    "read_array",
    "read_arrays",
    "to_json",
    "to_table",
    "undo_defuse",
    "write_arrays",
    "write_json",
    "write_together",
    "write_whole",
]

Array = NDArray[Any]
ASIDE = "prune4rel.arrays"
FORMATS = ".npy, .npz, .safetensors, .parquet or a folder of .npy files"
_STARTS = {".npy": b"\x93NUMPY", ".npz": b"PK"}
_BROKEN = (OSError, EOFError, OverflowError, MemoryError, TypeError, SyntaxError, TokenError)
"""What NumPy raises, besides ValueError, over a header that makes no sense."""

_BROKEN_ZIP = (*_BROKEN, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)
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
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.is_dir():
        if (path / PARTS).is_file():
            return _read_parts(path)
        files = sorted(path.glob("*.npy"))
        if not files:
            raise InputError(f"{path}: no .npy file in this folder; expected labels.npy, embeddings.npy, ...")
        return {file.stem: _read_npy(file) for file in files}
    readers: dict[str, Callable[[Path], dict[str, Array]]] = {
        ".npy": lambda file: {"": _read_npy(file)},
        ".npz": _read_npz,
        ".safetensors": _read_safetensors,
        ".parquet": _read_parquet,
    }
    if path.suffix not in readers:
        raise InputError(f"{path}: unknown format {path.suffix or '(no suffix)'!r}; use {FORMATS}")
    return readers[path.suffix](path)


def read_array(path: str | Path, name: str) -> Array:
    """Read one array from a file that holds it alone or under its `name`."""
    arrays = read_arrays(path)
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    if name in arrays:
        return arrays[name]
    raise InputError(f"{path}: holds {', '.join(arrays)}, none of them named {name!r}")


def _check_start(path: Path, wanted: str) -> None:
    """Refuse a file that does not begin as the format its name says: empty, another one, a pickle, or nonsense."""
    with path.open("rb") as file:
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


def _read_npy(path: Path) -> Array:
    _check_start(path, ".npy")
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise InputError(f"{path}: {_explain_npy(path, error)}") from None
    except _BROKEN as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    return array


def _explain_npy(path: Path, error: ValueError) -> str:
    text = str(error)
    if _is_of_objects(error):
        return _PICKLED
    if "mmap length" in text or "greater than file size" in text:
        return f"the file is truncated: its header promises more than the {path.stat().st_size} bytes that are there"
    return f"not a readable .npy file ({text})"


def _is_of_objects(error: Exception) -> bool:
    """Whether NumPy refused an array because its elements are pickled."""
    return "Python objects in dtype" in str(error) or "Object arrays" in str(error)


def _read_npz(path: Path) -> dict[str, Array]:
    _check_start(path, ".npz")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays: dict[str, Any] = {name: file[name] for name in file.files}
    except _BROKEN_ZIP as error:
        if _is_of_objects(error):
            raise InputError(f"{path}: {_PICKLED}") from None
        raise InputError(f"{path}: not a readable .npz file, perhaps truncated ({error})") from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"{path}: {name!r} in it is not in NumPy's format; save arrays with np.savez")
    return arrays


def _read_safetensors(path: Path) -> dict[str, Array]:
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - only for this format

    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            return arrays | _from_text((file.metadata() or {}).get(ASIDE))
    except (SafetensorError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a readable .safetensors file ({error})") from None


def _read_parquet(path: Path) -> dict[str, Array]:
    try:
        table = pq.read_table(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error})") from None
    arrays = {name: from_column(table.column(name), f"{path}: column {name!r}") for name in table.column_names}
    return arrays | _from_text((table.schema.metadata or {}).get(ASIDE.encode()))


def _read_parts(folder: Path) -> dict[str, Array]:
    try:
        index = json.loads((folder / PARTS).read_text(encoding="utf-8"))
        names = [str(part["name"]) for part in index["parts"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / PARTS}: not an index of parts ({error})") from None
    for name in names:
        if not (folder / name).is_file():
            raise InputError(f"{folder / name}: no such file, but {PARTS} lists it")
    parts = [_read_parquet(folder / name) for name in names]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if index.get("class_names") is not None:
        arrays["class_names"] = np.array(index["class_names"], dtype=np.str_)
    return arrays


def _to_text(arrays: Mapping[str, Array]) -> dict[str, str]:
    """Arrays a format has no place for, as one entry of its metadata."""
    return {ASIDE: json.dumps({name: array.tolist() for name, array in arrays.items()})} if arrays else {}


def _from_text(text: str | bytes | None) -> dict[str, Array]:
    return {name: np.array(values) for name, values in json.loads(text).items()} if text else {}


def from_column(column: pa.ChunkedArray, where: str) -> Array:
    """Turn a column of a table into an array; a fixed-size list becomes a matrix."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(f"{where} has a missing value in row {row}; fill or drop it")
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        flat: Array = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(column), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        raise InputError(f"{where} is a list of varying length; write it as a fixed-size list, one length for all rows")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.array(column.to_pylist(), dtype=np.str_)
    plain: Array = column.to_numpy()
    return plain


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
        elif path.suffix == ".npz":
            with zipfile.ZipFile(part, "w") as whole:
                for name, array in arrays.items():
                    with whole.open(f"{name}.npy", "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
        elif path.suffix == ".safetensors":
            from safetensors import SafetensorError  # noqa: PLC0415 - only for this format
            from safetensors.numpy import save_file  # noqa: PLC0415 - only for this format

            words = {name: array for name, array in arrays.items() if array.dtype.kind == "U"}
            numbers = {name: np.ascontiguousarray(array) for name, array in arrays.items() if name not in words}
            try:
                save_file(numbers, part, metadata=_to_text(words))
            except SafetensorError as error:  # also where the disk is full
                raise OSError(str(error)) from None
        elif path.suffix == ".parquet":
            pq.write_table(to_table(arrays), part)
        else:
            raise InputError(f"{path}: unknown format {path.suffix!r}; use {FORMATS}")

    write_whole(path, write, force=force)


def to_json(value: object, indent: int | None = None) -> str:
    """Write JSON; NumPy's numbers count as numbers.

    >>> to_json({"eta": np.float32(0.5)})
    '{"eta": 0.5}'
    """
    return json.dumps(value, indent=indent, ensure_ascii=False, default=lambda number: number.item())


def write_json(path: str | Path, value: object, *, force: bool = False) -> None:
    """Write a JSON document for people and programs."""
    text = to_json(value, indent=2) + "\n"
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8") and None, force=force)
