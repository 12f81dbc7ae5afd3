"""Looking before reading: files that have to be there, whole, and as they were published."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from prune4rel.data.dataset import Labels
from prune4rel.errors import InputError
from prune4rel.reading import read_text

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
