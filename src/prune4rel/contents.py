"""What a folder held when it was finished: size and SHA-256 of every file, so that damage shows and copies do not."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from prune4rel.errors import InputError, in_a_line
from prune4rel.machine import threads
from prune4rel.reading import LARGEST, read_record, read_sealed, reading

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Content:
    """A file as it was written: its size, its fingerprint, and when it was changed last.

    The time decides nothing but whether the fingerprint has to be taken again.
    """

    bytes: Annotated[int, (0, LARGEST - 1)]
    sha256: str
    stamp: str = ""


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    import hashlib  # noqa: PLC0415 - nothing that `--help` needs

    with reading(path, "file"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    raise AssertionError


def _each(function: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """Call a function of every item, in threads; results in order."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - nothing that `--help` needs

    with ThreadPoolExecutor(max_workers=max(1, min(threads(), len(items)))) as pool:
        return list(pool.map(function, items))


def stamp_of(found: os.stat_result) -> str:
    """When a file was changed last: what it holds, and what is known of it."""
    return f"{found.st_mtime_ns}-{found.st_ctime_ns}"


def contents_of(
    folder: Path, *, only: Collection[str] | None = None, without: Collection[str] = ()
) -> dict[str, Content]:
    """Return every file of a folder by its path in it, or some; hidden ones are none, nor those named in `without`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     _ = Path(name, "a.txt").write_text("a")
    ...     {name: one.bytes for name, one in contents_of(Path(name)).items()}
    {'a.txt': 1}
    """
    names = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        names += [Path(place, each) for each in sorted(files) if not each.startswith(".")]
    paths = [
        path
        for path in names
        if (name := path.relative_to(folder).as_posix()) not in without and (only is None or name in only)
    ]
    prints = _each(file_digest, paths)
    found = [path.stat() for path in paths]
    return {
        path.relative_to(folder).as_posix(): Content(known.st_size, print_of_it, stamp_of(known))
        for path, known, print_of_it in zip(paths, found, prints, strict=True)
    }


def damage_of(folder: Path, contents: Mapping[str, Content], *, thorough: bool = False) -> str | None:
    """Say in words what is not as it was written, or None.

    Sizes are compared; fingerprints only of files that were touched since, or of all if `thorough`.
    """
    suspects = []
    for name, wanted in contents.items():
        path = folder / name
        try:
            found = path.stat()
        except OSError:
            return f"{in_a_line(path)}: is gone"
        if found.st_size != wanted.bytes:
            return f"{in_a_line(path)}: has {found.st_size:,} bytes, but {wanted.bytes:,} were written"
        if thorough or stamp_of(found) != wanted.stamp:
            suspects.append((path, stamp_of(found), wanted.sha256))
    prints = _each(lambda suspect: _print_since(*suspect[:2]), suspects)
    for (path, _, wanted_print), found_print in zip(suspects, prints, strict=True):
        if found_print != wanted_print:
            return f"{in_a_line(path)}: changed since it was written"
    return None


@lru_cache(maxsize=2**16)
def _print_since(path: Path, _stamp: str) -> str | None:
    """Fingerprint of a file, taken once as long as nobody touches it; None where it cannot be read."""
    try:
        return file_digest(path)
    except InputError:
        return None


def stamped(folder: Path, contents: Mapping[str, Content]) -> dict[str, Content]:
    """Return contents that are undamaged with the times their files have now, as after the folder was copied."""
    return {name: replace(one, stamp=stamp_of((folder / name).stat())) for name, one in contents.items()}


@dataclass(frozen=True)
class _Record:
    contents: Mapping[str, Content] = field(default_factory=dict)


def refuse_damage(folder: Path, mark: str, mend: str) -> None:
    """Refuse a folder that is not as the record in it says; one without a record was put together by its owner.

    Parameters
    ----------
    mark
        Name of the record: a sealed file whose ``contents`` are those of `contents_of`.
    mend
        What to do, in words.
    """
    path = folder / mark
    if not path.is_file():
        return
    known = read_record(_Record, read_sealed(path), path)
    if (trouble := damage_of(folder, known.contents)) is not None:
        raise InputError(f"{trouble}; {mend}")


def as_plain(contents: Mapping[str, Content]) -> dict[str, dict[str, Any]]:
    """Return contents as values of JSON."""
    return {name: asdict(one) for name, one in contents.items()}
