"""The one way out: files and folders written whole or not at all, and there still after a power cut."""

import csv
import errno
import io
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prune4rel.errors import InputError

Write = Callable[[Path], object]

_HERE = re.sub(r"[^A-Za-z0-9-]", "-", platform.node())[:24]
_LEFT = re.compile(r"\.(?P<name>.+)\.(?P<process>\d+)(@(?P<machine>[A-Za-z0-9-]*))?\.(?P<kind>part|old)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


def check_writable(path: str | Path, *, force: bool = False, keep: Iterable[str | Path | None] = ()) -> None:
    """Fail now, before hours of work, if `path` could not be written later, or is one of those to `keep`."""
    path = Path(path)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(
                f"{path}: is a device, a pipe or a socket, so nothing is written there; choose another name"
            )
        if any(each is not None and path.exists() and Path(each).exists() and path.samefile(each) for each in keep):
            raise InputError(f"{path}: is read here, so it cannot be written, too; choose another name")
        if path.exists() and not force:
            raise InputError(f"{path}: exists already; choose another name or pass --force (force=True) to replace it")
        if not path.parent.is_dir():
            raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot write into {path.parent} ({error.strerror or error})") from None


def write_whole(path: str | Path, write: Write, *, force: bool = False) -> None:
    """Let `write` fill a temporary name beside `path`, then rename: all of it or nothing, and on the disk.

    What killed processes left half-written in the same folder is removed.
    """
    write_together({Path(path): write}, force=force)


def write_together(files: Mapping[Path, Write], *, force: bool = False, gone: Iterable[Path] = ()) -> None:
    """Write files of one folder that belong together; the last is their marker: without it, none of them counts.

    All are written under temporary names first. Then the old marker goes, the others take their places, and the new
    marker comes last, so that no moment shows some of the old beside some of the new.

    Parameters
    ----------
    files
        What fills each; a folder where it makes one.
    force
        Replace what is there.
    gone
        Files of what is replaced that have no successor.
    """
    *_, marker = files
    for path in files:
        check_writable(path, force=force)
    remove_dead(marker.parent)
    parts = {path: _beside(path, "part") for path in files}
    old = _beside(marker, "old")
    replaced = False
    try:
        for path, write in files.items():
            write(parts[path])
            sync_all(parts[path])
        if marker.exists() and (len(files) > 1 or (marker.is_dir() and parts[marker].is_dir())):
            marker.replace(old)  # a folder cannot be replaced in one step, nor can several files
            sync(marker.parent)
        for path in gone:
            path.unlink(missing_ok=True)
            replaced = True
        for path, part in parts.items():
            part.replace(path)
            replaced = True
        sync(marker.parent)
    except OSError as error:
        raise InputError(f"{marker}: writing failed ({error.strerror or error}); nothing was left behind") from None
    finally:
        with suppress(OSError):
            if old.exists() and not marker.exists() and not replaced:
                old.replace(marker)
            for left in (*parts.values(), old):
                remove(left)


def _beside(path: Path, kind: str) -> Path:
    """Return the name of what is not whole yet, or not any more; it says whose it is."""
    return path.with_name(f".{path.name}.{os.getpid()}@{_HERE}.{kind}")


def make_folder(path: Path) -> None:
    """Make a folder, and those it lies in, that are there still after a power cut."""
    if not path.is_dir():
        if path.parent != path:
            make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def sync(path: Path) -> None:
    """Have the system put a file, or the names in a folder, on the disk now."""
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that has no such thing
            raise
    finally:
        os.close(descriptor)


def sync_all(path: Path) -> None:
    """Put a file, or a folder and all there is in it, on the disk now."""
    if path.is_dir():
        for place, _, names in os.walk(path, topdown=False):
            for name in names:
                sync(Path(place, name))
            sync(Path(place))
    else:
        sync(path)


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as it can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def put_aside(path: Path) -> None:
    """Remove a folder so that, whenever this is killed, all of it is there or none."""
    if path.exists():
        aside = _beside(path, "part")
        path.replace(aside)
        sync(path.parent)
        remove(aside)


def remove_dead(folder: Path, *, held: bool = False) -> None:
    """Remove what killed processes left half-written in a folder; what one had just moved away comes back.

    Of a folder that is `held` (see `lock`), nobody else is at work on anything.
    """
    with suppress(OSError):
        for left in list(os.scandir(folder)):
            found = _LEFT.fullmatch(left.name)
            if found is None or not (held or _is_dead(found["machine"], int(found["process"]))):
                continue
            path, whole = Path(left.path), Path(folder, found["name"])
            if found["kind"] == "old" and not os.path.lexists(whole) and left.is_dir(follow_symlinks=False):
                path.replace(whole)
            else:
                remove(path)


def _is_dead(machine: str | None, process: int) -> bool:
    if machine not in (None, _HERE) or os.name == "nt":  # where there is no harmless way to ask
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False


def write_text(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write a text in UTF-8 as it is, whole or not at all."""
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8", newline=""), force=force)


def defuse(cell: object) -> object:
    """Put an apostrophe before text that a spreadsheet would take for a formula; every cell of a CSV file goes through.

    A number is no formula, also one that is written as text.

    >>> defuse("=1+1"), defuse("cat"), defuse(-1.5), defuse("-1.5")
    ("'=1+1", 'cat', -1.5, '-1.5')
    """
    is_formula = isinstance(cell, str) and cell.startswith(FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def csv_text(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    r"""Write rows below a header as CSV, every cell defused; None is nothing.

    >>> csv_text(("class", "share"), [("=1+1", 0.5), ("cat", None)])
    "class,share\n'=1+1,0.5\ncat,\n"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(defuse, row) for row in rows)
    return text.getvalue()


def undo_defuse(text: str) -> str:
    """Take off what `defuse` put before a text.

    >>> undo_defuse("'=1+1"), undo_defuse("''a'"), undo_defuse("cat")
    ('=1+1', "'a'", 'cat')
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text
