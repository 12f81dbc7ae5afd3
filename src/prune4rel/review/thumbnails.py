"""Pictures of examples, made small when they are asked for, and kept on disk."""

import hashlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prune4rel.data import Split
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

SIZES = (128, 640)
"""Longest side, in pixels, of a picture in a grid and alone."""

MOST_PIXELS = 120_000_000
"""A file that says it is larger is not opened."""

QUALITY = 85


class Thumbnails:
    """Small pictures of a split's examples.

    What is served was decoded and encoded anew here, so that nothing but pixels gets from a file into a browser.

    Parameters
    ----------
    split
        Images in memory or in files.
    cache
        A folder to keep them in; None keeps none.
    """

    def __init__(self, split: Split, cache: Path | None) -> None:
        self.split, self.cache = split, cache

    def picture(self, row: int, size: int) -> tuple[bytes, str]:
        """Return an encoded picture and its type; InputError says why there is none."""
        if size not in SIZES or not 0 <= row < len(self.split):
            raise InputError(f"there is no picture {row} of size {size}")
        if self.split.images is not None:
            return self._of_array(self.split.images[row], size), "image/png"
        if self.split.files is None:
            raise InputError("these examples are no pictures")
        return self._of_file(self.split.files[row], size), "image/jpeg"

    def _of_array(self, pixels: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]", size: int) -> bytes:
        from PIL import Image  # noqa: PLC0415 - only with pictures

        picture = Image.fromarray(np.ascontiguousarray(pixels))
        if max(picture.size) > size:
            picture.thumbnail((size, size))
        return _encoded(picture, "PNG")

    def _of_file(self, file: Path, size: int) -> bytes:
        try:
            found = file.stat()
        except OSError as error:
            raise InputError(f"the file cannot be read ({error.strerror or error})") from None
        key = hashlib.sha256(f"{file.absolute()}\0{found.st_mtime_ns}\0{found.st_size}\0{size}".encode()).hexdigest()
        kept = None if self.cache is None else self.cache / key[:2] / f"{key}.jpg"
        if kept is not None and kept.is_file():
            return kept.read_bytes()
        data = _encoded(_shrunk(file, size), "JPEG")
        if kept is not None:
            _keep(kept, data)
        return data


def _shrunk(file: Path, size: int) -> "Image":
    from PIL import Image, ImageOps  # noqa: PLC0415 - only with pictures

    try:
        with Image.open(file) as opened:
            _check_size(opened.width, opened.height)
            opened.draft("RGB", (2 * size, 2 * size))
            picture = ImageOps.exif_transpose(opened)
            picture.thumbnail((size, size))
            if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
                ground = Image.new("RGBA", picture.size, "white")
                picture = Image.alpha_composite(ground, picture.convert("RGBA"))
            return picture.convert("RGB")
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a broken file may raise anything, and none of it may stop a review
        raise InputError(f"the file is no picture that can be read ({type(error).__name__})") from None


def _check_size(width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise InputError(f"{width} x {height} pixels are too many to show")


def _encoded(picture: "Image", kind: str) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, quality=QUALITY)
    return out.getvalue()


def _keep(path: Path, data: bytes) -> None:
    """Keep a picture for next time; where that cannot be, it is made anew."""
    part = path.with_suffix(f".{os.getpid()}.{os.urandom(4).hex()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
