"""What a folder held when it was finished: size and SHA-256 of every file, so that damage shows and copies do not."""

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.errors import InputError, in_a_line
from prune4rel.machine import threads
from prune4rel.progress import Progress
from prune4rel.reading import LARGEST
from prune4rel.storage import file_digest, read_arrays, write_arrays


@dataclass(frozen=True)
class Content:
    """A file as it was written: its size, its fingerprint, and when it was changed last.

    The time decides nothing but whether the fingerprint has to be taken again.
    """

    bytes: Annotated[int, (0, LARGEST - 1)]
    sha256: str
    stamp: str = ""


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
    with ThreadPoolExecutor(max_workers=max(1, threads())) as pool:
        prints = list(pool.map(file_digest, paths))
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
    with ThreadPoolExecutor(max_workers=max(1, min(threads(), len(suspects)))) as pool:
        prints = pool.map(_print_since, *zip(*((path, stamp) for path, stamp, _ in suspects), strict=True))
        for (path, _, wanted_print), found_print in zip(suspects, prints if suspects else (), strict=True):
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


def as_plain(contents: Mapping[str, Content]) -> dict[str, dict[str, Any]]:
    """Return contents as values of JSON."""
    return {name: asdict(one) for name, one in contents.items()}


def prints_of(paths: Sequence[Path], kept: Path | None, progress: Progress, *, keep: bool = False) -> NDArray[np.uint8]:
    """Return the SHA-256 of every file, (n, 32); of those that nobody touched since, as it was kept.

    Parameters
    ----------
    paths
        A file that cannot be read has zeros.
    kept
        A file in which fingerprints are kept, with sizes and times, which only decide whether they are taken again.
    progress
        Told how far it is.
    keep
        Write that file.
    """
    stamps = np.array([_size_and_times(path) for path in paths], dtype=np.int64).reshape(len(paths), 3)
    names = hashlib.sha256("\n".join(map(str, paths)).encode("utf-8", "surrogateescape")).digest()
    whose = np.frombuffer(names, dtype=np.uint8)
    before, prints = _kept_prints(kept, len(paths), whose)
    stale = np.flatnonzero((before != stamps).any(axis=1) | (stamps[:, 0] < 0))
    with progress.task("comparing the data set", total=len(stale)) as advance:
        for start, stop in spans(len(stale), 1024):
            rows = stale[start:stop]
            with ThreadPoolExecutor(max_workers=max(1, threads())) as pool:
                found = pool.map(_bytes_of_print, [paths[row] for row in rows])
                prints[rows] = np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(rows), 32)
            advance(len(rows))
    if keep and kept is not None and len(stale):
        with suppress(InputError):  # it only saves time
            write_arrays(kept, {"names": whose, "stamps": stamps, "prints": prints}, force=True)
    return prints


def _size_and_times(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return -1, -1, -1
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _kept_prints(kept: Path | None, n: int, whose: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return what was kept of the same files; of others, stamps that no file has."""
    if kept is not None and kept.is_file():
        with suppress(InputError, KeyError):
            found = read_arrays(kept)
            stamps, prints = found["stamps"], found["prints"]
            whole = stamps.shape == (n, 3) and stamps.dtype == np.int64 and prints.shape == (n, 32)
            if whole and prints.dtype == np.uint8 and np.array_equal(found["names"], whose):
                return stamps, prints.copy()
    return np.full((n, 3), -2, dtype=np.int64), np.zeros((n, 32), dtype=np.uint8)


def _bytes_of_print(path: Path) -> bytes:
    try:
        return bytes.fromhex(file_digest(path))
    except InputError:
        return bytes(32)
