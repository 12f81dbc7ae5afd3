"""Pictures of examples, made small when they are asked for, and kept on disk."""

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prune4rel.data import Split
from prune4rel.data.decode import BrokenImageError, ImageFile, content_of, open_rgb
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

SIZES = (128, 640)
"""Longest side, in pixels, of a picture in a grid and alone."""

QUALITY = 85


class Thumbnails:
    """Small pictures of examples.

    What is served was decoded and encoded anew here, so that nothing but pixels gets from a file into a browser.

    Parameters
    ----------
    splits
        By name; with images in memory or in files.
    cache
        A folder to keep them in; None keeps none.
    """

    def __init__(self, splits: Mapping[str, Split], cache: Path | None) -> None:
        self.splits, self.cache = splits, cache

    def picture(self, row: int, size: int, split: str = "train") -> tuple[bytes, str]:
        """Return an encoded picture and its type; InputError says why there is none."""
        found = self.splits.get(split)
        if found is None or size not in SIZES or not 0 <= row < len(found):
            raise InputError(f"there is no picture {row} of size {size}")
        if found.images is not None:
            return self._of_array(found.images[row], size), "image/png"
        if found.files is None:
            raise InputError("these examples are no pictures")
        return self._of_file(found.files[row], size), "image/jpeg"

    def _of_array(self, pixels: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]", size: int) -> bytes:
        from PIL import Image  # noqa: PLC0415 - only with pictures

        picture = Image.fromarray(np.ascontiguousarray(pixels))
        if max(picture.size) > size:
            picture.thumbnail((size, size))
        return _encoded(picture, "PNG")

    def _of_file(self, file: ImageFile, size: int) -> bytes:
        try:
            content = content_of(file)
        except OSError as error:
            raise InputError(f"the file cannot be read ({error.strerror or error})") from None
        key = hashlib.sha256(content + size.to_bytes(4, "big")).hexdigest()
        kept = None if self.cache is None else self.cache / key[:2] / f"{key}.jpg"
        if kept is not None and kept.is_file():
            return kept.read_bytes()
        try:
            picture = open_rgb(content, "the file", 2 * size)
        except BrokenImageError as error:
            raise InputError(str(error)) from None
        picture.thumbnail((size, size))
        data = _encoded(picture, "JPEG")
        if kept is not None:
            _keep(kept, data)
        return data


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
