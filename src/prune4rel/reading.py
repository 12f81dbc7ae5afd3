"""The one way in: whatever a file holds, reading it ends in a value or in one line that names the file.

Every call of a parser stands inside ``with reading(path, kind):``, or is made by a function of this module, which looks
at sizes before anything is allocated. Nothing here runs what a file says.
"""

import errno
import json
import math
import os
import stat
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from prune4rel.errors import InputError, in_a_line
from prune4rel.machine import available_memory, format_bytes

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

MOST_TEXT = 256 * 2**20
"""Bytes of a text file that is read as a whole."""

MOST_YAML, MOST_NODES = 2**20, 100_000
"""Bytes of a configuration, and values in it once every alias is written out."""

MOST_NAME = 100_000
"""Letters of one name, label or id in an array, each of which takes the space of the longest."""

LARGEST = 2**63
BOMB, BOMB_RATIO = 2**29, 100
"""What unpacks to more bytes, and to more times its size, is taken for a trap."""

CHECK = "check"
"""Key of a sealed record that holds the SHA-256 of the others."""

AnyFloat = Annotated[float, "nan and infinity, too"]


@contextmanager
def reading(path: "str | Path | Any", kind: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into one line that names it.

    Parameters
    ----------
    path
        The file, or a name for where the bytes come from. A path to something that is neither a file nor a folder, a
        named pipe say, is refused before it is opened.
    kind
        What it should be, in words: ``"JSON"``, ``"Parquet file"``.

    Examples
    --------
    >>> with reading("card.json of the archive", "JSON"):
    ...     json.loads("[" * 100_000)
    Traceback (most recent call last):
    prune4rel.errors.InputError: card.json of the archive: not a readable JSON (it is nested too deeply)
    """
    where = in_a_line(path)
    try:
        if isinstance(path, Path):
            check_regular(path)
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{where}: no such file") from None
    except RecursionError:
        raise InputError(f"{where}: not a readable {kind} (it is nested too deeply)") from None
    except MemoryError:
        raise InputError(f"{where}: not a readable {kind} (it asks for more memory than there is)") from None
    except UnicodeError as error:
        raise InputError(
            f"{where}: not a readable {kind} (it is no UTF-8 text: {in_a_line(error)}); save it as UTF-8"
        ) from None
    except OSError as error:
        told = "cannot be read" if error.strerror else f"not a readable {kind}"
        raise InputError(f"{where}: {told} ({in_a_line(error.strerror or error)})") from None
    except Exception as error:  # noqa: BLE001 - a damaged file can make a parser raise nearly anything
        words = f"{type(error).__name__}: {error}" if isinstance(error, KeyError | AttributeError) else error
        raise InputError(f"{where}: not a readable {kind} ({in_a_line(words) or type(error).__name__})") from None


def check_regular(path: Path) -> int:
    """Return the size of a file; refuse what never begins or ends: devices, pipes, sockets, circles of links."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EACCES):
            raise InputError(f"{in_a_line(path)}: cannot be read ({error.strerror})") from None
        raise
    except ValueError as error:  # a zero byte in the name
        raise InputError(f"{in_a_line(path)}: is no name of a file ({in_a_line(error)})") from None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise InputError(f"{in_a_line(path)}: is no file, but a device, a pipe or a socket")
    return found.st_size


def check_fits(where: object, count: float, kept: float = 0) -> None:
    """Refuse what would take more memory than there is, before it is allocated.

    Parameters
    ----------
    where
        What asks for it.
    count
        Bytes it would take.
    kept
        Bytes it takes on disk, where it is compressed; 0 where it is not.
    """
    if kept and count > BOMB and count > BOMB_RATIO * kept:
        raise InputError(
            f"{in_a_line(where)}: {format_bytes(kept)} that would unpack to {format_bytes(count)} look like a trap; "
            "if they are right, save them without compression"
        )
    if count > (free := available_memory()):
        raise InputError(
            f"{in_a_line(where)}: would take {format_bytes(count)} of memory, and {format_bytes(free)} are free"
        )


def read_bytes(path: Path, kind: str, most: int = MOST_TEXT) -> bytes:
    """Read a file as a whole, if it is not too large for its kind."""
    with reading(path, kind):
        check_regular(path)
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise InputError(f"{in_a_line(path)}: is larger than {format_bytes(most)}, too large for {kind}")
        return content


def read_text(path: Path, kind: str, most: int = MOST_TEXT) -> str:
    """Read a text file in UTF-8, with or without a mark of it."""
    with reading(path, kind):
        return read_bytes(path, kind, most).decode("utf-8-sig")
    raise AssertionError


def parse_json(text: str | bytes, where: object) -> Any:
    """Parse JSON that comes from a file or a user.

    >>> parse_json('{"a": 1}', "a test")
    {'a': 1}
    """
    with reading(where if isinstance(where, str) else str(where), "JSON"):
        return json.loads(text)


def read_json(path: Path, kind: str = "JSON") -> Any:
    """Read a JSON file."""
    text = read_text(path, kind)
    with reading(path, kind):
        return json.loads(text)


def read_yaml(path: Path) -> Any:
    """Read a YAML file with texts, numbers, lists and mappings; aliases are refused where they would never end."""
    return parse_yaml(read_text(path, "YAML", MOST_YAML), str(path))


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML, as `read_yaml` does."""
    import yaml  # noqa: PLC0415 - not every command reads it

    with reading(where, "YAML"):
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            if _written_out(node, {}, set()) > MOST_NODES:
                raise InputError(f"{where}: has more than {MOST_NODES:,} values once aliases are written out")
            return loader.construct_document(node)
        finally:
            loader.dispose()


def _written_out(node: Any, known: dict[int, int], above: set[int]) -> int:
    """How many values a node of YAML stands for, every alias written out."""
    if id(node) in above:
        raise ValueError("an alias leads back to where it stands")
    if id(node) not in known:
        inside = node.value if isinstance(node.value, list) else []
        parts = [part for each in inside for part in (each if isinstance(each, tuple) else (each,))]
        known[id(node)] = 1 + sum(_written_out(part, known, above | {id(node)}) for part in parts)
    return known[id(node)]


def read_parquet(path: Path, columns: Sequence[str] | None = None, *, dictionaries: bool = True) -> "pa.Table":
    """Read a Parquet file, or some of its columns; texts come as dictionaries, each different one once, if so wanted.

    A name with a colon is a file like any other.
    """
    import pyarrow as pa  # noqa: PLC0415 - not every command reads it
    import pyarrow.parquet as pq  # noqa: PLC0415 - likewise

    with reading(path, "Parquet file"):
        size = check_regular(path)
        with pa.memory_map(os.fspath(path)) as source, pq.ParquetFile(source) as file:
            facts, schema = file.metadata, file.schema_arrow
            texts = [
                each.name for each in schema if pa.types.is_string(each.type) or pa.types.is_large_string(each.type)
            ]
            check_fits(path, _unpacked(facts, schema), size)
        with pa.memory_map(os.fspath(path)) as source:
            options = {"page_checksum_verification": True, "read_dictionary": texts if dictionaries else []}
            with pq.ParquetFile(source, **options) as file:
                table = file.read(columns=None if columns is None else list(columns))
        return whole(table)


def whole(table: "pa.Table") -> "pa.Table":
    """Return a table that a parser made, if it can be relied on: its values are what their types say, names are text.

    >>> import pyarrow as pa
    >>> whole(pa.table({"a": [1]})).num_rows
    1
    """
    table.validate(full=True)
    list(table.column_names)  # which are decoded here, and checked nowhere before
    return table


def _unpacked(facts: Any, schema: Any) -> int:
    """Bytes that a Parquet file takes in memory, as it says itself.

    Columns of a group are not looked at one by one: a damaged footer would end the process there.
    """
    groups = sum(max(0, int(facts.row_group(group).total_byte_size)) for group in range(facts.num_row_groups))
    wide = sum(8 * max(1, int(getattr(each.type, "list_size", 1))) for each in schema)
    return max(groups, wide * max(0, int(facts.num_rows)))


def seal(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON has them, with their fingerprint.

    >>> unseal(seal({"a": 1}), "it")
    {'a': 1}
    >>> unseal(seal({"a": 1}) | {"a": 2}, "it")
    Traceback (most recent call last):
    prune4rel.errors.InputError: it: changed since it was written
    """
    plain = json.loads(
        json.dumps({name: values[name] for name in values if name != CHECK}, default=lambda value: value.item())
    )
    return {**plain, CHECK: _print_of(plain)}


def unseal(values: object, where: object) -> dict[str, Any]:
    """Return sealed values without their fingerprint, if it is theirs; those that were never sealed pass."""
    if not isinstance(values, dict):
        raise InputError(f"{in_a_line(where)}: is not what this program wrote there")
    plain = {str(name): value for name, value in values.items() if name != CHECK}
    if CHECK in values and values[CHECK] != _print_of(plain):
        raise InputError(f"{in_a_line(where)}: changed since it was written")
    return plain


def read_sealed(path: Path, kind: str = "JSON") -> dict[str, Any]:
    """Read a JSON file that was sealed."""
    return unseal(read_json(path, kind), path)


def _print_of(values: Mapping[str, Any]) -> str:
    import hashlib  # noqa: PLC0415 - nothing that `--help` needs

    return hashlib.sha256(json.dumps(values, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def read_record(kind: type[T], values: object, where: object) -> T:
    """Make a dataclass from what a file of ours says, checked by the types of its fields.

    Numbers must be finite, unless a field is an `AnyFloat`; ``Annotated[int, (1, 9)]`` also has bounds. Keys that are
    no fields are passed over; what is missing or of another type is named.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Part:
    ...     name: str
    ...     rows: Annotated[int, (0, 10)] = 0
    >>> read_record(Part, {"name": "a", "rows": 3, "new": True}, "index.json")
    Part(name='a', rows=3)
    >>> read_record(Part, {"name": "a", "rows": -1}, "index.json")
    Traceback (most recent call last):
    prune4rel.errors.InputError: index.json: rows must be from 0 to 10, not -1
    """
    with reading(str(where), "what this program wrote"):
        made: T = _record(kind, values, "", in_a_line(where))
        return made
    raise AssertionError


def _record(kind: type[Any], values: object, path: str, where: str) -> Any:
    if not isinstance(values, Mapping):
        raise InputError(f"{where}: {path.rstrip('.') or 'it'} must be names and values, not {_short(values)}")
    hints = _hints_of(cast("Hashable", kind))
    found = {}
    for each in fields(kind):
        if not each.init:
            continue
        if each.name in values:
            found[each.name] = _fit(hints[each.name], values[each.name], f"{path}{each.name}", where)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise InputError(f"{where}: {path}{each.name} is missing; the file is damaged, or of another version")
    return kind(**found)


@cache
def _hints_of(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(cast("type[Any]", kind), include_extras=True)


def _fit(hint: Any, value: object, path: str, where: str) -> Any:  # noqa: PLR0911, PLR0912, C901 - one line a kind of type
    """Return a value of JSON as its field holds it, or refuse it."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return value
    if origin is Annotated:
        if hint == AnyFloat:
            return _fit_number(float, value, path, where, finite=False)
        found = _fit(inside[0], value, path, where)
        least, most = inside[1]
        if found is not None and not least <= found <= most:
            raise InputError(f"{where}: {path} must be from {least} to {most}, not {_short(value)}")
        return found
    if origin in (Union, UnionType):
        if value is None and NoneType in inside:
            return None
        *others, last = (each for each in inside if each is not NoneType)
        for each in others:
            with suppress(InputError):
                return _fit(each, value, path, where)
        return _fit(last, value, path, where)
    if origin is Literal:
        if value not in inside:
            raise InputError(f"{where}: {path} cannot be {_short(value)}")
        return value
    if is_dataclass(hint) and isinstance(hint, type):
        return _record(hint, value, f"{path}.", where)
    if origin in (tuple, list, Sequence) and isinstance(value, list):
        items = [_fit(inside[0], each, f"{path}[{place}]", where) for place, each in enumerate(value)]
        return tuple(items) if origin is tuple else items
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {name: _fit(inside[1], each, f"{path}.{name}", where) for name, each in value.items()}
    if hint in (int, float):
        return _fit_number(hint, value, path, where)
    if hint in (str, bool, dict, Mapping) and isinstance(value, hint):
        return value
    kind = getattr(origin or hint, "__name__", str(hint)).lower()
    raise InputError(f"{where}: {path} must be of type {kind}, not {_short(value)}")


def _fit_number(kind: type[Any], value: object, path: str, where: str, *, finite: bool = True) -> Any:
    is_number = isinstance(value, int | (NoneType if kind is int else float)) and not isinstance(value, bool)
    if not is_number or value is None or not (abs(value) < LARGEST or (kind is float and not finite)):  # type: ignore[arg-type]
        raise InputError(f"{where}: {path} must be a {'whole ' if kind is int else ''}number, not {_short(value)}")
    if finite and not math.isfinite(value):  # type: ignore[arg-type]
        raise InputError(f"{where}: {path} must be finite, not {value}")
    return kind(value)


def _short(value: object) -> str:
    text = in_a_line(repr(value))
    return text if len(text) <= 60 else f"{text[:57]}..."
