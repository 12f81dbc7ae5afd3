"""Image files as RGB, whatever they are; what cannot be read is named."""

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from prune4rel.data.pixels import to_rgb
from prune4rel.errors import InputError, in_a_line
from prune4rel.reading import check_regular, read_bytes, reading

if TYPE_CHECKING:
    from PIL.Image import Image

Fit = Literal["crop", "stretch"]
Size = tuple[int, int]
MOST_BYTES = 2**30
"""Of one image file."""


class ImageFile(Protocol):
    """A `Path`, or an `InnerFile`: whatever gives its bytes, and its name as a string."""

    def read_bytes(self) -> bytes:
        """Return the file's content."""


class InnerFile(ImageFile, Protocol):
    """A file inside others."""

    @property
    def homes(self) -> tuple[Path, ...]:
        """The files it lies in."""

    @property
    def part(self) -> str:
        """Which part of them it is."""


class BrokenImageError(Exception):
    """An image file that cannot be read; the message says which and why."""


def read_image(file: "str | ImageFile", size: Size, fit: Fit = "crop") -> NDArray[np.uint8]:
    """Read an image file as RGB of one size.

    A JPEG that is much too large is decoded at a fraction of its size; `open_rgb` says what else is done.

    Parameters
    ----------
    file
        Any format Pillow knows; of an animation, the first frame.
    size
        Height and width of the result. An image of just that size is not touched.
    fit
        ``"crop"``: the largest centred part of the right proportions, scaled; ``"stretch"``: all of it, scaled.

    Returns
    -------
    (height, width, 3) uint8

    Raises
    ------
    BrokenImageError
        See `open_rgb`.
    """
    with no_warnings(), _told_of(file):
        return np.asarray(_scale(_open(_opened(file), 2 * max(size)), size, fit))


def open_rgb(content: bytes, name: str, side: int | None = None) -> "Image":
    """Open the content of an image file as 8-bit RGB.

    Orientation by EXIF is undone, grey and CMYK and palettes are converted, 16 bits become 8 by scaling, and what is
    transparent lies on white.

    Parameters
    ----------
    content
        The file's bytes.
    name
        What to call it in a message.
    side
        A JPEG whose sides are twice as long or more is decoded at a fraction of its size; whole unless told.

    Raises
    ------
    BrokenImageError
        The file is missing, no image, truncated, corrupt, or so large that it looks like a decompression bomb
        (``PIL.Image.MAX_IMAGE_PIXELS``).
    """
    with _told_of(name):
        return _open(BytesIO(content), side)


def content_of(file: "ImageFile") -> bytes:
    """Return the bytes of an image file; OSError says why there are none.

    Pipes and devices, which never end, are not opened.
    """
    try:
        if isinstance(file, Path):
            return read_bytes(file, "an image", MOST_BYTES)
        with reading(str(file), "image"):
            return file.read_bytes()
    except InputError as error:
        raise OSError(str(error).removeprefix(f"{in_a_line(file)}: ")) from None
    raise AssertionError


@contextmanager
def no_warnings() -> Iterator[None]:
    """Keep Pillow's remarks on odd files to itself; what is decoded in threads needs it around all of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _told_of(file: object) -> Iterator[None]:
    """Say of which file it is that it cannot be read, and why."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a corrupt file can make a decoder raise nearly anything
        raise BrokenImageError(f"{file}: {_explain(error)}") from None


def _opened(file: "str | ImageFile") -> "str | Path | BytesIO":
    """Return what Pillow can open: paths as they are, of others the content."""
    if not isinstance(file, str | Path):
        return BytesIO(file.read_bytes())
    check_regular(Path(file))
    return file


def _open(file: "str | Path | BytesIO", side: int | None) -> "Image":
    from PIL import Image, ImageOps  # noqa: PLC0415 - an extra

    with Image.open(file) as image:
        if Image.MAX_IMAGE_PIXELS is not None and image.width * image.height > Image.MAX_IMAGE_PIXELS:
            raise Image.DecompressionBombError
        if side is not None:
            image.draft(None, (side, side))
        with suppress(SyntaxError, ValueError, KeyError, TypeError, struct.error):  # EXIF that makes no sense
            ImageOps.exif_transpose(image, in_place=True)
        whole = to_rgb(image)
        whole.load()
        return whole


def _scale(image: "Image", size: Size, fit: Fit) -> "Image":
    from PIL import Image  # noqa: PLC0415 - an extra

    height, width = size
    if image.size == (width, height):
        return image
    box = (0.0, 0.0, float(image.width), float(image.height))
    if fit == "crop":
        scale = min(image.width / width, image.height / height)
        left, top = (image.width - scale * width) / 2, (image.height - scale * height) / 2
        box = (left, top, left + scale * width, top + scale * height)
    return image.resize((width, height), Image.Resampling.BILINEAR, box=box)


def _explain(error: Exception) -> str:
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - an extra

    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, UnidentifiedImageError):
        return "not an image, or of a kind that Pillow does not know"
    if isinstance(error, Image.DecompressionBombWarning | Image.DecompressionBombError):
        return f"has more than {Image.MAX_IMAGE_PIXELS} pixels, so many that it could be a decompression bomb"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return f"cannot be decoded ({error})"
