"""A folder of images, one folder a class."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from prune4rel.data import Split
from prune4rel.data.decode import content_of as bytes_of
from prune4rel.errors import InputError
from prune4rel.exporting.form import Corrected, register_export

Files = Literal["copy", "hardlink", "symlink"]


@register_export("folder")
def write_folders(corrected: Corrected, place: Path, *, files: Files = "copy") -> None:
    """Images sorted by their right class: CLASS/NAME, or train/CLASS/NAME beside test/CLASS/NAME.

    Parameters
    ----------
    files
        ``"copy"`` them, or link to where they lie: ``"hardlink"`` or ``"symlink"``.
    """
    ways: dict[str, Callable[[Path, Path], Any]] = {"hardlink": os.link, "symlink": os.symlink}
    if files not in ("copy", *ways):
        raise InputError(f"files: must be copy, hardlink or symlink, not {files!r}", "files")
    corrected.need("files", "images")
    dataset = corrected.dataset
    if dataset is None:
        raise AssertionError("checked by need")
    names = dataset.class_names
    if bad := [name for name in names if not name or name.startswith(".") or any(mark in name for mark in "/\\\0")]:
        raise InputError(f"the class {bad[0]!r} cannot be the name of a folder; export to csv or hf instead", "to")
    splits = dataset.splits()
    taken: set[str] = set()
    for title, rows, labels in corrected.parts():
        split = splits[title]
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            home = place / title / names[label] if "test" in splits else place / names[label]
            home.mkdir(parents=True, exist_ok=True)
            target = _free(home, _name_of(split, row), taken)
            file = None if split.files is None else split.files[row]
            if isinstance(file, Path) and files in ways:
                try:
                    ways[files](file.resolve(strict=True), target)
                except OSError as error:
                    raise InputError(
                        f"{file}: no {files} to it can be made ({error.strerror}); copy it", "files"
                    ) from None
            elif files in ways:
                raise InputError(f"{file or f'row {row}'}: lies in no file of its own; leave links out", "files")
            else:
                target.write_bytes(content_of(split, row))


def _name_of(split: Split, row: int) -> str:
    if split.files is None:
        return f"{row:06d}.png"
    return str(split.files[row]).replace("\\", "/").rpartition("/")[2]


def _free(home: Path, name: str, taken: set[str]) -> Path:
    """Return a path that nothing has yet, also where big and small letters are one."""
    stem, dot, suffix = name.rpartition(".")
    number = 1
    while (path := home / name).as_posix().casefold() in taken:
        number += 1
        name = f"{stem or suffix}-{number}{dot}{suffix if stem else ''}"
    taken.add(path.as_posix().casefold())
    return path


def content_of(split: Split, row: int) -> bytes:
    """Return the file of an image, byte by byte; one that lies in memory as PNG."""
    if split.files is not None:
        try:
            return bytes_of(split.files[row])
        except OSError as error:
            raise InputError(f"{split.files[row]}: cannot be read ({error.strerror or error})", "files") from None
    from io import BytesIO  # noqa: PLC0415 - only for images in memory

    from prune4rel.data.pixels import require_pillow  # noqa: PLC0415 - an extra

    if split.images is None:
        raise AssertionError("files or images")
    content = BytesIO()
    require_pillow("writing images").fromarray(split.images[row]).save(content, "PNG")
    return content.getvalue()
