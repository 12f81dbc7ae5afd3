"""Images sorted into one folder a class."""

import os
from pathlib import Path

import numpy as np

from prune4rel.data.dataset import Split
from prune4rel.data.files import is_image
from prune4rel.errors import InputError


def list_classes(folder: Path) -> tuple[str, ...]:
    """Return the names of the folders in `folder`, sorted: the classes, in order."""
    with os.scandir(folder) as entries:
        items = [(entry.name, entry.is_dir()) for entry in entries if not entry.name.startswith(".")]
    names = tuple(sorted(name for name, is_folder in items if is_folder))
    if names:
        return names
    if any(is_image(name) for name, _ in items):
        raise InputError(f"{folder}: the images lie here directly; sort them into one folder a class")
    raise InputError(f"{folder}: no folder in it; expected one folder of images a class")


def read_class_folders(folder: Path, names: tuple[str, ...], *, relative_to: Path | None = None) -> Split:
    """List all images below the class folders `names`, class by class, sorted by path.

    Parameters
    ----------
    relative_to
        Also give every example an id: its path from there.
    """
    files: list[Path] = []
    counts = []
    for name in names:
        found = _images_below(folder / name)
        if not found:
            raise InputError(f"{folder / name}: no image in this folder; fill it or remove it")
        files += found
        counts.append(len(found))
    labels = np.repeat(np.arange(len(names)), counts)
    ids = None if relative_to is None else np.array([file.relative_to(relative_to).as_posix() for file in files])
    return Split(labels=labels, files=tuple(files), ids=ids)


def _images_below(folder: Path) -> list[Path]:
    found = []
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(place)
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
