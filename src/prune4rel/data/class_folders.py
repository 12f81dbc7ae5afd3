"""Images sorted into one folder a class."""

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from prune4rel.data.dataset import Split
from prune4rel.data.files import is_image
from prune4rel.errors import InputError

Who = tuple[int, int]
"""Which folder it is: its device, and its number there."""


def list_classes(folder: Path) -> tuple[str, ...]:
    """Return the names of the folders in `folder`, sorted: the classes, in order. Links back to it are none."""
    with os.scandir(folder) as entries:
        items = [
            (entry.name, entry.is_dir() and not leads_back(folder / entry.name))
            for entry in entries
            if not entry.name.startswith(".")
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
        found += [here / name for name in sorted(names) if is_image(name)]
    return found


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
