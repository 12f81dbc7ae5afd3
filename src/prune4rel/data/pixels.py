"""Pixels in the one form the rest relies on: uint8, red, green and blue last."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import rows_per_block, spans
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

Pixels = NDArray[np.uint8]
Colour = tuple[float, float, float]

IMAGENET_MEAN: Colour = (0.485, 0.456, 0.406)
IMAGENET_STD: Colour = (0.229, 0.224, 0.225)

MEASURED_IMAGES = 10_000
SMALLEST_STD = 1e-3
SIXTEEN_TO_EIGHT_BITS = 257
MOST_IN_SIXTEEN_BITS = 65_535


def as_rgb(images: NDArray[Any], where: str) -> Pixels:
    """Turn a stack of images, grey, RGB or RGBA, of 8 or 16 bits, into (n, height, width, 3) uint8.

    Parameters
    ----------
    images
        (n, height, width) or (n, height, width, 1, 3 or 4), uint8 or uint16. What is (n, height, width, 3) uint8
        already, a memory map too, is returned as it is. What is transparent lies on white.
    where
        What to call them in a message.

    Examples
    --------
    >>> as_rgb(np.zeros((5, 8, 8), dtype=np.uint8), "images").shape
    (5, 8, 8, 3)
    """
    if images.dtype not in (np.uint8, np.uint16):
        raise InputError(
            f"{where}: have type {images.dtype}; expected uint8. Floats between 0 and 1 become that by "
            "(255 * images).round().astype('uint8')",
            where,
        )
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        hint = ""
        if images.ndim == 4 and images.shape[1] in (1, 3, 4):
            hint = "; the channels come last: images.transpose(0, 2, 3, 1)"
        raise InputError(f"{where}: have shape {images.shape}; expected (n, height, width, 3){hint}", where)
    if images.dtype == np.uint8 and images.shape[3] == 3:
        return images
    whole = np.empty((*images.shape[:3], 3), dtype=np.uint8)
    for start, stop in spans(len(images), rows_per_block(math.prod(images.shape[1:]))):
        block = _to_eight_bits(images[start:stop])
        whole[start:stop] = _on_white(block) if block.shape[3] == 4 else block
    return whole


def _to_eight_bits(values: NDArray[Any]) -> Pixels:
    """Scale 16 bits down to 8; what has 8 stays."""
    if values.dtype == np.uint8:
        return values
    return ((values.astype(np.uint32) + SIXTEEN_TO_EIGHT_BITS // 2) // SIXTEEN_TO_EIGHT_BITS).astype(np.uint8)


def _on_white(images: Pixels) -> Pixels:
    colours, opacity = images[..., :3].astype(np.uint16), images[..., 3:].astype(np.uint16)
    return ((colours * opacity + 255 * (255 - opacity) + 127) // 255).astype(np.uint8)


def measure_colours(images: Pixels) -> tuple[Colour, Colour]:
    """Mean and standard deviation of red, green and blue, between 0 and 1, over up to ten thousand of the images."""
    rows = np.unique(np.linspace(0, len(images) - 1, min(len(images), MEASURED_IMAGES)).astype(np.int64))
    sums, squares = np.zeros(3), np.zeros(3)
    for row in rows:
        image = images[row].astype(np.float64) / 255
        sums += image.mean(axis=(0, 1))
        squares += np.square(image).mean(axis=(0, 1))
    mean = sums / len(rows)
    std = np.maximum(SMALLEST_STD, np.sqrt(np.maximum(0.0, squares / len(rows) - mean**2)))
    return _three(mean), _three(std)


def look_of(images: Pixels) -> dict[str, Any]:
    """Return what a `Dataset` says of images in memory: mean and std as measured, and their own size."""
    mean, std = measure_colours(images)
    return {"mean": mean, "std": std, "image_size": min(images.shape[1:3])}


def _three(values: NDArray[np.float64]) -> Colour:
    red, green, blue = values.round(4).tolist()
    return red, green, blue


def require_pillow(purpose: str) -> Any:
    """Return Pillow's module `Image`, or say how to get it."""
    try:
        from PIL import Image  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError(
            f"{purpose} needs Pillow, which cannot be imported here ({error}); "
            "install it with: pip install 'prune4rel[vision]'"
        ) from None
    return Image


def to_rgb(image: "Image.Image") -> "Image.Image":
    """Turn an image of any kind that Pillow opens into 8-bit RGB.

    16 bits are scaled, not cut off; what is transparent lies on white.

    Raises
    ------
    ValueError
        The pixels are floats or have more than 16 bits, so that nobody knows what is bright.
    """
    from PIL import Image  # noqa: PLC0415 - an extra

    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers, whose range is anyone's guess; save 8 or 16 bits")
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > MOST_IN_SIXTEEN_BITS:
            raise ValueError("its pixels have more than 16 bits; save 8 or 16")
        image = Image.fromarray(_to_eight_bits(values.astype(np.uint16)))
    if image.has_transparency_data:
        return Image.fromarray(_on_white(np.asarray(image.convert("RGBA"))))
    return image if image.mode == "RGB" else image.convert("RGB")
