"""Pickles of arrays, lists, strings and numbers, read without letting them build anything else.

A pickle is a program: it may name any function of any installed package and call it. The data sets of the CIFAR
family are published as pickles, so they cannot be avoided. Here the few names that arrays need lead to small
stand-ins of our own, and every other name is an error. No function of NumPy, PyTorch or the standard library is ever
handed to the pickle, so there is nothing for it to call, and nothing of ours that it could change.
"""

import io
import pickle
import pickletools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.reading import check_fits, check_regular

Array = NDArray[Any]

TORCH_MAGIC: Final = 0x1950A86A20F9469CFC6C
"""First object of the file format of PyTorch before 1.6; the object itself is the fourth."""

NUMBER_KINDS = "biuf"
NATIVE_ARRAY_STATE = 5
DTYPE_STATE = 8


class _RefusedError(Exception):
    """What the pickle asks for is not on the list."""


class _Fixed:
    """A thing a pickle can hold but not change."""

    __slots__ = ()

    def __setstate__(self, state: object) -> NoReturn:
        raise _RefusedError(f"a change to {type(self).__name__.strip('_')}")


class _Builder(_Fixed):
    """A function a pickle may call."""

    __slots__ = ("_build",)

    def __init__(self, build: Callable[..., object]) -> None:
        self._build = build

    def __call__(self, *arguments: object) -> object:
        return self._build(*arguments)


class _Dtype:
    """Stand-in for a type of numbers: a kind, a width and a byte order."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        if len(code) < 2 or code[0] not in NUMBER_KINDS or not code[1:].isdecimal():
            raise _RefusedError(f"an array of type {code!r}")
        self.code = code
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        plain = isinstance(state, tuple) and len(state) >= DTYPE_STATE and state[2:5] == (None, None, None)
        if not plain or state[1] not in ("<", ">", "|", "="):
            raise _RefusedError("an array of structures or objects")
        self.order = state[1]

    def as_numpy(self) -> np.dtype[Any]:
        return np.dtype(f"{self.order}{self.code}")


class _Array:
    """Stand-in for an array, filled by the pickle and turned into a real one when all is read."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array: Array | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if not isinstance(state, tuple) or len(state) != NATIVE_ARRAY_STATE or not isinstance(state[2], _Dtype):
            raise _RefusedError("an array of something else than numbers")
        _, shape, dtype, column_major, data = state
        self.array = _from_bytes(data, dtype, shape, "F" if column_major else "C")


def _from_bytes(data: object, dtype: object, shape: object, order: object) -> Array:
    raw = data.encode("latin1") if isinstance(data, str) else data
    if not isinstance(raw, bytes | bytearray) or not isinstance(dtype, _Dtype) or not isinstance(shape, tuple):
        raise _RefusedError("an array of something else than numbers")
    if order not in ("C", "F"):
        raise _RefusedError(f"an array in the order {order!r}")
    flat: Array = np.frombuffer(raw, dtype=dtype.as_numpy())
    return flat.reshape(shape, order="F" if order == "F" else "C")


def _array_from_buffer(data: object, dtype: object, shape: object, order: object) -> _Array:
    stand_in = _Array()
    stand_in.array = _from_bytes(data, dtype, shape, order)
    return stand_in


def _dtype(code: object, *_align_and_copy: object) -> _Dtype:
    if not isinstance(code, str):
        raise _RefusedError(f"an array of type {code!r}")
    return _Dtype(code)


def _encode(text: object, encoding: object) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise _RefusedError(f"text in the encoding {encoding!r}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """Return what old protocols write as a call of bytes without arguments."""
    return b""


_ALLOWED: Final[dict[tuple[str, str], _Fixed]] = {("numpy", "ndarray"): _Fixed(), ("numpy", "dtype"): _Builder(_dtype)}
_ALLOWED[("_codecs", "encode")] = _Builder(_encode)
_ALLOWED[("__builtin__", "bytes")] = _Builder(_no_bytes)
for _core in ("numpy.core", "numpy._core"):
    _ALLOWED[(f"{_core}.multiarray", "_reconstruct")] = _Builder(lambda _kind, _shape, _code: _Array())
    _ALLOWED[(f"{_core}.multiarray", "scalar")] = _Builder(
        lambda dtype, data: _from_bytes(data, dtype, (1,), "C")[0].item()
    )
    _ALLOWED[(f"{_core}.numeric", "_frombuffer")] = _Builder(_array_from_buffer)


def _printable(words: str) -> str:
    """Keep what a file says from doing things to a terminal."""
    return ascii(words[:100])[1:-1]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _RefusedError(_printable(f"{module}.{name}")) from None

    def persistent_load(self, pid: Any, /) -> NoReturn:
        raise _RefusedError(f"something stored elsewhere ({_printable(str(pid))})")


def unpickle(path: str | Path) -> Any:
    """Read a pickle, or what `torch.save` wrote, that holds nothing but arrays, lists, strings and numbers.

    Parameters
    ----------
    path
        A plain pickle, also one of Python 2 (binary), or a file of `torch.save` in its old or its zip form. Tensors are
        refused: convert them to arrays.

    Returns
    -------
    object
        Dictionaries, lists and tuples of arrays, strings, bytes and numbers.

    Raises
    ------
    InputError
        The file is damaged, or names a class that none of these needs; the message says which.

    Examples
    --------
    >>> import pickle, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.pkl")
    ...     _ = path.write_bytes(pickle.dumps({"labels": np.arange(3), "names": ["a", "b", "c"]}))
    ...     read = unpickle(path)
    >>> read["labels"], read["names"]
    (array([0, 1, 2]), ['a', 'b', 'c'])
    """
    path = Path(path)
    try:
        size = check_regular(path)
        check_fits(path, size)
        content = _read_zip(path) if zipfile.is_zipfile(path) else path.read_bytes()
        return _resolve(_load(io.BytesIO(content)), {})
    except _RefusedError as refused:
        raise InputError(
            f"{path}: asks for {refused}, which is refused: a pickle can run code when it is loaded, so only arrays, "
            "lists, strings and numbers are read"
        ) from None
    except InputError:
        raise
    except OSError as error:  # it is not there, it is a folder, or nobody may read it
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except Exception as error:  # noqa: BLE001 - a damaged pickle can fail in any way at all
        raise InputError(
            f"{path}: not a readable pickle, perhaps truncated ({type(error).__name__}: {error})"
        ) from None


def _read_zip(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        inside = [name for name in archive.namelist() if name.endswith("/data.pkl") or name == "data.pkl"]
        if len(inside) != 1:
            raise ValueError("a zip file without the one data.pkl that torch.save writes")
        check_fits(path, archive.getinfo(inside[0]).file_size, path.stat().st_size)
        return archive.read(inside[0])


def _load(stream: io.BytesIO) -> Any:
    first = _load_next(stream)
    if first != TORCH_MAGIC:
        return first
    for _format_and_system in range(2):
        _load_next(stream)
    return _load_next(stream)


def _load_next(stream: io.BytesIO) -> Any:
    start = stream.tell()
    _scan(stream)
    end = stream.tell()
    stream.seek(start)
    value = _Unpickler(stream, encoding="latin1").load()
    stream.seek(end)
    return value


def _scan(stream: io.BytesIO) -> None:
    """Walk through a pickle without doing what it says: lengths beyond its end would take memory before they fail."""
    size = len(stream.getbuffer())
    for count, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > count:
            raise ValueError(f"place {argument} is filled after only {count} steps")
        if opcode.name == "FRAME" and int(argument or 0) > size:
            raise ValueError(f"a frame of {argument} bytes in a file of {size}")


def _resolve(value: Any, known: dict[int, Any]) -> Any:
    """Put real arrays into the places of their stand-ins; what is shared stays shared."""
    if value is None or isinstance(value, bool | int | float | str | bytes | bytearray):
        return value
    if id(value) not in known:
        known[id(value)] = _resolve_new(value, known)
    return known[id(value)]


def _resolve_new(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, _Array):
        if value.array is None:
            raise ValueError("an array without content")
        return value.array
    if isinstance(value, dict):
        return {_resolve(key, known): _resolve(item, known) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_resolve(item, known) for item in value)
    raise _RefusedError(f"an object of type {type(value).__name__}")
