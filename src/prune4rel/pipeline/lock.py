"""One process a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prune4rel.errors import InputError

LOCK = ".lock"


@contextmanager
def only_one(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a folder for the length of a block; the system lets go when the process ends, however it ends.

    Parameters
    ----------
    folder
        Must exist.
    wait
        Wait for whoever holds it, rather than refuse.
    """
    path = folder / LOCK
    try:
        file = path.open("a+")
    except OSError as error:
        raise InputError(f"{folder}: cannot write there ({error.strerror})") from None
    with file:
        try:
            _take(file.fileno(), wait=wait)
        except OSError:
            file.seek(0)
            holder = file.read().strip()
            raise InputError(
                f"{folder}: another process{f' ({holder})' if holder else ''} is working there; wait for it to end, or "
                "choose another folder"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield


def _take(descriptor: int, *, wait: bool) -> None:
    if os.name == "nt":
        import msvcrt  # noqa: PLC0415 - only there

        mode = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK  # type: ignore[attr-defined]
        msvcrt.locking(descriptor, mode, 1)  # type: ignore[attr-defined]
        return
    import fcntl  # noqa: PLC0415 - only there

    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
