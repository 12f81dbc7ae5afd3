"""Fingerprints of many files at once, kept until a file is touched: what a data set on disk is known by."""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.contents import file_digest
from prune4rel.errors import InputError
from prune4rel.machine import threads
from prune4rel.progress import Progress
from prune4rel.storage import read_arrays, write_arrays


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
