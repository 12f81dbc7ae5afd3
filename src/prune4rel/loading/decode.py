"""Image files of any kind as RGB of one size."""

import struct
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from prune4rel.data.pixels import to_rgb

if TYPE_CHECKING:
    from PIL.Image import Image

Fit = Literal["crop", "stretch"]
Size = tuple[int, int]


class BrokenImageError(Exception):
    """An image file that cannot be read; the message says which and why."""


def read_image(path: str | Path, size: Size, fit: Fit = "crop") -> NDArray[np.uint8]:
    """Read an image file as RGB.

    Orientation by EXIF is undone, grey and CMYK and palettes are converted, 16 bits become 8 by scaling, and what is
    transparent lies on white. A JPEG that is much too large is decoded at a fraction of its size.

    Parameters
    ----------
    path
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
        The file is missing, no image, truncated, corrupt, or so large that it looks like a decompression bomb
        (``PIL.Image.MAX_IMAGE_PIXELS``).
    """
    from PIL import Image, ImageOps  # noqa: PLC0415 - an extra

    height, width = size
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                side = 2 * max(height, width)
                image.draft(None, (side, side))
                with suppress(SyntaxError, ValueError, KeyError, TypeError, struct.error):  # EXIF that makes no sense
                    ImageOps.exif_transpose(image, in_place=True)
                return np.asarray(_scale(to_rgb(image), size, fit))
    except Exception as error:  # noqa: BLE001 - a corrupt file can make a decoder raise nearly anything
        raise BrokenImageError(f"{path}: {_explain(error)}") from None


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
