"""Looking before reading: files, and images sorted by class into folders."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from prune4rel.data.dataset import Labels, Split
from prune4rel.errors import InputError, in_a_line
from prune4rel.reading import read_text

Who = tuple[int, int]
"""Which folder it is: its device, and its number there."""


NO_CLASSES = ("__MACOSX", "lost+found", "@eaDir")
"""Folders that systems put beside one's own."""


def list_classes(folder: Path) -> tuple[str, ...]:
    """Return the names of the folders in `folder`, sorted: the classes, in order. Links back to it are none."""
    with os.scandir(folder) as entries:
        items = [
            (_in_letters(entry.name, folder), entry.is_dir() and not leads_back(folder / entry.name))
            for entry in entries
            if not entry.name.startswith(".") and entry.name not in NO_CLASSES
        ]
    names = tuple(sorted(name for name, is_folder in items if is_folder))
    if names:
        return names
    if any(is_image(name) for name, _ in items):
        raise InputError(f"{folder}: the images lie here directly; sort them into one folder a class")
    raise InputError(f"{folder}: no folder in it; expected one folder of images a class")


def read_class_folders(
    folder: Path, names: tuple[str, ...], *, relative_to: Path | None = None, apart: Sequence[Path] = ()
) -> Split:
    """List all images below the class folders `names`, class by class, sorted by path.

    Links are followed, but every folder is entered once: where it lies, if that is in the data set, so that no link
    gives an image a second label.

    Parameters
    ----------
    relative_to
        Also give every example an id: its path from there.
    apart
        Folders of other splits, which no link leads into.
    """
    homes = [folder / name for name in names]
    if any(home.is_symlink() for home in homes):
        _real_folders(homes)  # refuses two classes of one folder

    @cache
    def taken() -> set[Who]:
        return {who for home in (folder, *homes) for who in _above(home)} | _real_folders(homes) | _real_folders(apart)

    files: list[Path] = []
    counts = []
    for home in homes:
        found = _images_below(home, taken)
        if not found:
            raise InputError(f"{home}: no image in this folder; fill it or remove it")
        files += found
        counts.append(len(found))
    labels = np.repeat(np.arange(len(names)), counts)
    ids = None if relative_to is None else np.array([file.relative_to(relative_to).as_posix() for file in files])
    return Split(labels=labels, files=tuple(files), ids=ids)


def leads_back(path: Path) -> bool:
    """Whether a path is a link to a folder it lies in, however far above."""
    return path.is_symlink() and _who(path) in _above(path.parent)


def _who(path: Path) -> Who:
    """Tell which folder a path leads to, by whatever name."""
    found = path.stat()
    return found.st_dev, found.st_ino


def _above(folder: Path) -> set[Who]:
    """Return a folder and those it lies in."""
    real = Path(os.path.realpath(folder))
    return {_who(place) for place in (real, *real.parents)}


def _real_folders(homes: Sequence[Path]) -> set[Who]:
    """Return all folders that lie in some folders, no link followed; refuse one by two names."""
    found: dict[Who, str] = {}
    for home in homes:
        for place, folders, _ in os.walk(home):
            folders[:] = [name for name in folders if not name.startswith(".")]
            who = _who(Path(place))
            if who in found:
                raise InputError(
                    f"{found[who]} and {place}: are one folder by two names; its images would get two labels. Remove "
                    "one of them"
                )
            found[who] = place
    return set(found)


def _images_below(home: Path, taken: Callable[[], set[Who]]) -> list[Path]:
    """List the images of a folder, and of folders that links lead to and nobody has `taken`; those are taken then."""
    found = []
    beyond_a_link: set[Path] = set()

    def is_new(path: Path) -> bool:
        if path.parent not in beyond_a_link and not path.is_symlink():
            return True
        if (who := _who(path)) in taken():
            return False
        taken().add(who)
        beyond_a_link.add(path)
        return True

    for place, folders, names in os.walk(home, followlinks=True):
        here = Path(place)
        folders[:] = [name for name in sorted(folders) if not name.startswith(".") and is_new(here / name)]
        found += [here / _in_letters(name, here) for name in sorted(names) if is_image(name)]
    return found


def _in_letters(name: str, folder: Path) -> str:
    """Return a name that can be written down; one of bytes that are no letters is refused."""
    if name.isascii():
        return name
    try:
        name.encode()
    except UnicodeEncodeError:
        told = name.encode("utf-8", "surrogateescape")
        raise InputError(f"{folder}: holds the name {told!r}, which is not in UTF-8; rename it") from None
    return name


def check_same_classes(train: tuple[str, ...], test: tuple[str, ...], train_folder: Path, test_folder: Path) -> None:
    """Refuse splits whose class folders differ: their labels would not mean the same."""
    for here, there, other, folder in (
        (set(train), set(test), test_folder, train_folder),
        (set(test), set(train), train_folder, test_folder),
    ):
        if lonely := sorted(here - there):
            more = f" and {len(lonely) - 1} more" if len(lonely) > 1 else ""
            raise InputError(
                f"{folder}: has the class folder {lonely[0]!r}{more}, which {other} has not; "
                "train and test need the same classes"
            )


IMAGE_SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})


def is_image(name: str) -> bool:
    """Whether a file's name is that of an image.

    >>> is_image("n01440764_18.JPEG"), is_image(".hidden.png"), is_image("labels.csv")
    (True, False, False)
    """
    return not name.startswith(".") and name[name.rfind(".") :].lower() in IMAGE_SUFFIXES


def require_file(path: Path, what: str = "") -> Path:
    """Return `path` if a file is there that is not empty; `what` says where to get it."""
    if not path.is_file():
        raise InputError(f"{path}: no such file{what and '; ' + what}")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; fetch it again")
    return path


def require_folder(path: Path, what: str = "") -> Path:
    """Return `path` if it is a folder."""
    if not path.is_dir():
        raise InputError(f"{path}: no such folder{what and '; ' + what}")
    return path


def first_existing(candidates: Sequence[Path], what: str) -> Path:
    """Return the first path that is there, or say where was looked."""
    for path in candidates:
        if path.exists():
            return path
    others = "".join(f" (nor {path})" for path in candidates[1:])
    raise InputError(f"{candidates[0]}: not found{others}; {what}")


def check_md5(path: Path, expected: str) -> None:
    """Compare a public file's MD5 sum with the published one: a check against damage, not against malice."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != expected:
        raise InputError(
            f"{path}: its md5 is {found}, but the public file's is {expected}; it is damaged, truncated or another "
            "version. Fetch it again, or pass md5=False (--option md5=false) to read it all the same"
        )


def told_outside(files: Sequence[object], data: object) -> str:
    """Say that examples are files outside of the folder of the table that lists them; nothing where none are.

    In a table of one's own that is as it should be. Whoever looks at a folder of somebody else wants to know.

    >>> told_outside([Path("a/x.png"), Path("/secret/y.png")], "a/t.csv")
    'a/t.csv lists files outside of its folder, which may be shown: /secret/y.png'
    >>> told_outside([Path("a/x.png")], "a/t.csv")
    ''
    """
    table, here = Path(str(data)), Path.cwd()
    home = os.path.normpath(here / (table if table.is_dir() else table.parent)).rstrip(os.sep) + os.sep
    paths = (each if isinstance(each, Path) else getattr(each, "file", None) for each in files)
    outside = next((each for each in paths if each and not os.path.normpath(here / each).startswith(home)), None)
    if outside is None:
        return ""
    return f"{in_a_line(data)} lists files outside of its folder, which may be shown: {in_a_line(outside)}"


def require_files(files: Sequence[Path], listed_in: Path) -> None:
    """Check that all files are there by listing each folder once, which is fast also for a million."""
    wanted: dict[str, list[str]] = defaultdict(list)
    for file in files:
        folder, name = os.path.split(file)
        wanted[folder].append(name)
    missing = [Path(folder, name) for folder, names in wanted.items() for name in _absent(folder, names)]
    if missing:
        raise InputError(
            f"{min(missing)}: no such file; {len(missing):,} of the {len(files):,} files in {listed_in} are missing"
        )


def _absent(folder: str, names: Sequence[str]) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            present = {entry.name for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return list(names)
    return [name for name in names if name not in present]


def read_lines(path: Path, what: str = "") -> list[str]:
    """Read a text file's lines, without their ends and without blank ones at the end."""
    require_file(path, what)
    lines = read_text(path, "list").splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError(f"{path}: holds nothing but blank lines")
    return lines


def read_labelled_paths(path: Path, n_classes: int, what: str = "") -> tuple[list[str], Labels]:
    """Read lines of "path label", as public lists have them: the paths, and (n,) labels of at least 0.

    Paths may hold spaces. Labels from `n_classes` on are refused.
    """
    names, labels = [], []
    for number, line in enumerate(read_lines(path, what), start=1):
        name, _, label = line.strip().rpartition(" ")
        if not name or not label.isdecimal():
            raise InputError(f"{path}: line {number} is {line[:80]!r}; expected a path, a space and a label")
        if int(label) >= n_classes:
            raise InputError(f"{path}: line {number} has the label {label}; labels must be 0 to {n_classes - 1}")
        names.append(name.strip())
        labels.append(int(label))
    return names, np.array(labels, dtype=np.int64)


def join_all(folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
    """Put a folder before every relative path."""
    return tuple(folder / name for name in names)


def look_up(keys: Sequence[str], labels: Mapping[str, int], keys_in: Path, labels_in: Path) -> Labels:
    """Return the (n,) label of every key, or name the first that has none."""
    try:
        return np.array([labels[key] for key in keys], dtype=np.int64)
    except KeyError as error:
        raise InputError(f"{labels_in}: no label for {error.args[0]!r}, which {keys_in} lists") from None
