"""Where a result came from: versions, machine, fingerprints of the inputs."""

import hashlib
import os
import platform
import subprocess  # nosec - git alone, asked about this package's own checkout
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel._version import __version__
from prune4rel.blocks import spans

PACKAGES = ("numpy", "numba", "torch", "scikit-learn", "pyarrow")


def versions() -> dict[str, str]:
    """Versions of Python, this package and what it computes with; nothing is imported for it."""
    found = {"prune4rel": __version__, "python": platform.python_version()}
    return found | {name: _installed(name) for name in PACKAGES}


@cache
def _installed(name: str) -> str:
    """Look it up once: a run asks a hundred times, and it takes milliseconds."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def commit() -> str | None:
    """Return the commit of this package, where it runs from a checkout, with ``+`` where files were changed since.

    What the variable PRUNE4REL_COMMIT says wins, for a copy that came without its history; None where nobody knows.
    """
    if told := os.environ.get("PRUNE4REL_COMMIT"):
        return told
    return _commit_at(Path(__file__).resolve().parents[2])


@cache
def _commit_at(place: Path) -> str | None:
    """Ask git once: what runs here was read when it began."""
    if not (place / ".git").exists():
        return None

    def git(*words: str) -> str:
        line = ["git", "-C", str(place), *words]
        done = subprocess.run(line, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603 - no shell # nosec
        return done.stdout.strip()

    try:
        head, changed = git("rev-parse", "HEAD"), git("status", "--porcelain", "--", "src")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}+" if changed else head


def fingerprint(array: NDArray[Any]) -> str:
    """SHA-256 of an array's type, shape and contents, read block by block.

    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3)), fingerprint(np.arange(3)) == fingerprint(np.arange(4))
    (True, False)
    """
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    whole = np.atleast_1d(array)
    rows = max(1, 2**24 // max(1, whole.nbytes // max(1, len(whole))))
    for start, stop in spans(len(whole), rows):
        digest.update(np.ascontiguousarray(whole[start:stop]).view(np.uint8).data)
    return digest.hexdigest()


def fingerprint_of_parts(prints: Iterable[str]) -> str:
    """Fingerprint of what was read in parts, from those of its parts in order."""
    return hashlib.sha256("".join(prints).encode()).hexdigest()


class Fingerprints:
    """Fingerprints of several arrays, taken in the background while the real work goes on."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._pool = ThreadPoolExecutor(max_workers=max(1, len(arrays)))
        self._pending: dict[str, Future[str]] = {
            name: self._pool.submit(fingerprint, array) for name, array in arrays.items()
        }

    def result(self) -> dict[str, str]:
        """Wait for them."""
        try:
            return {name: future.result() for name, future in self._pending.items()}
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Stop caring."""
        self._pool.shutdown(wait=False, cancel_futures=True)
