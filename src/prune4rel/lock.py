"""One command a folder, and no worker of an earlier one."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from prune4rel.atomic import make_folder
from prune4rel.errors import InputError

LOCK, WORKERS = ".lock", ".workers"
TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
UNKNOWN_HERE = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
MOST_READ = 100
"""Letters of a lock file that are looked at."""


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold a folder for the length of a block; the system lets go when the process ends, however it ends.

    Workers that a killed process left behind are waited for: they end by themselves at once. The folder is made where
    there is none, and goes again if nothing came into it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name, only_one(Path(name)):
    ...     print("all mine")
    all mine
    """
    new = not folder.exists()
    try:
        make_folder(folder)
        file = _locked(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot write there ({error.strerror or error})") from None
    with file:
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        _wait_for_workers(folder)
        try:
            yield
        finally:
            with suppress(OSError):  # while it is held, so that nobody else's goes
                (folder / LOCK).unlink()
                if new:
                    folder.rmdir()


def _locked(folder: Path) -> TextIO:
    """Return the open lock file of a folder, held; one that its holder has just removed does not count."""
    while True:
        file = (folder / LOCK).open("a+", encoding="utf-8", errors="replace")
        try:
            _take(file.fileno())
        except OSError as error:
            with file:
                raise _refusal(folder, file, error) from None
        with suppress(FileNotFoundError):
            if (folder / LOCK).stat().st_ino == os.fstat(file.fileno()).st_ino:
                return file
        file.close()


def _refusal(folder: Path, file: TextIO, error: OSError) -> InputError:
    """Say why a folder cannot be held: somebody else holds it, or nobody can."""
    if error.errno in TAKEN:
        file.seek(0)
        holder = file.read(MOST_READ).strip()
        who = f" ({holder})" if re.fullmatch(r"process \d+", holder) else ""
        return InputError(
            f"{folder}: another process{who} is working there; wait for it to end, or choose another folder"
        )
    if error.errno in UNKNOWN_HERE:
        return InputError(
            f"{folder}: its file system cannot lock ({error.strerror}), so that nothing would keep two commands from "
            "working there at once; choose a folder on another file system"
        )
    return InputError(f"{folder}: cannot be locked ({error.strerror or error}); choose another folder")


def _take(descriptor: int) -> None:
    if os.name == "nt":
        import msvcrt  # noqa: PLC0415 - only there

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    import fcntl  # noqa: PLC0415 - only there

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def join_workers(folder: Path) -> None:
    """Be counted, until this process ends, among those that work for whoever holds the folder."""
    if os.name == "nt":
        return
    import fcntl  # noqa: PLC0415 - only there

    with suppress(OSError):  # where nothing can be locked, nobody holds the folder either
        fcntl.flock(os.open(folder / WORKERS, os.O_RDONLY | os.O_CREAT, 0o644), fcntl.LOCK_SH)


def _wait_for_workers(folder: Path) -> None:
    if os.name == "nt" or not (folder / WORKERS).exists():
        return
    import fcntl  # noqa: PLC0415 - only there

    with (folder / WORKERS).open("rb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
