"""Point operations: every pixel goes through a table of 256 grey levels made for its image and channel.

The tables are Pillow's, number for number. Making them costs little beside the pixels, and all of a batch's go
through one gather whatever the operations were.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from prune4rel.augment.pixels import check_images, from_levels, on_device_of, per_example, to_levels, truncate

LEVELS = 256

TablesOf = Callable[[Tensor, Tensor], Tensor]
"""From (k, C, H, W) uint8 images and (k,) float64 magnitudes to (k, C, 256) uint8 tables."""


def auto_contrast(images: Tensor) -> Tensor:
    """Stretch each channel to the full range of levels; a channel of one level stays.

    >>> auto_contrast(torch.tensor([[[[100, 110, 120]]]], dtype=torch.uint8))
    tensor([[[[  0, 127, 255]]]], dtype=torch.uint8)
    """
    return _through_tables(images, auto_contrast_tables, 0.0)


def equalize(images: Tensor) -> Tensor:
    """Spread each channel's levels so that about equally many pixels have each.

    Images of fewer than 256 pixels stay as they are, as in Pillow.
    """
    return _through_tables(images, equalize_tables, 0.0)


def invert(images: Tensor) -> Tensor:
    """Turn level v into 255 - v.

    >>> invert(torch.tensor([[[[0, 100]]]], dtype=torch.uint8))
    tensor([[[[255, 155]]]], dtype=torch.uint8)
    """
    return _through_tables(images, invert_tables, 0.0)


def solarize(images: Tensor, thresholds: Tensor | float) -> Tensor:
    """Invert levels that reach the (B,) thresholds; 256 changes nothing, 0 inverts all.

    >>> solarize(torch.tensor([[[[0, 100, 200]]]], dtype=torch.uint8), 150)
    tensor([[[[  0, 100,  55]]]], dtype=torch.uint8)
    """
    return _through_tables(images, solarize_tables, thresholds)


def posterize(images: Tensor, bits: Tensor | float) -> Tensor:
    """Keep the highest (B,) bits of every level; 8 changes nothing, 0 is black.

    >>> posterize(torch.tensor([[[[37, 255]]]], dtype=torch.uint8), 3)
    tensor([[[[ 32, 224]]]], dtype=torch.uint8)
    """
    return _through_tables(images, posterize_tables, bits)


def brightness(images: Tensor, factors: Tensor | float) -> Tensor:
    """Multiply by (B,) factors: 0 is black, 1 changes nothing, above 1 is brighter.

    >>> brightness(torch.tensor([[[[10, 200]]]], dtype=torch.uint8), 1.5)
    tensor([[[[ 15, 255]]]], dtype=torch.uint8)
    """
    return _through_tables(images, brightness_tables, factors)


def contrast(images: Tensor, factors: Tensor | float) -> Tensor:
    """Multiply the distance to the mean luma by (B,) factors: 0 is one grey, 1 changes nothing.

    >>> contrast(torch.tensor([[[[10, 30]]]], dtype=torch.uint8), 0.5)
    tensor([[[[15, 25]]]], dtype=torch.uint8)
    """
    return _through_tables(images, contrast_tables, factors)


def auto_contrast_tables(images: Tensor, _magnitudes: Tensor) -> Tensor:
    """(k, C, 256) uint8; in double precision, where Pillow's last level may also come out as 254."""
    low, high = images.flatten(2).amin(2, keepdim=True).double(), images.flatten(2).amax(2, keepdim=True).double()
    scale = torch.full_like(low, 255.0).div_((high - low).clamp_(min=1.0))
    stretched = truncate(_levels(images).double() * scale - low * scale)
    return torch.where(high > low, stretched, _levels(images).to(torch.uint8))


def equalize_tables(images: Tensor, _magnitudes: Tensor) -> Tensor:
    """(k, C, 256) uint8, in integers."""
    pixels = images.flatten(2).long()
    counts = torch.zeros((*pixels.shape[:2], LEVELS), dtype=torch.int32, device=images.device)
    counts.scatter_add_(2, pixels, counts.new_ones(()).expand(pixels.shape))
    below = counts.cumsum(2, dtype=torch.int32).sub_(counts)
    step = below.gather(2, pixels.amax(2, keepdim=True)).div_(255, rounding_mode="trunc")
    spread = below.add_(step.div(2, rounding_mode="trunc")).div_(step.clamp(min=1), rounding_mode="trunc")
    return torch.where(step > 0, spread.clamp_(max=255), _levels(images)).to(torch.uint8)


def invert_tables(images: Tensor, _magnitudes: Tensor) -> Tensor:
    """(k, C, 256) uint8."""
    return _for_all_channels((255 - _levels(images)).view(1, 1, LEVELS), images)


def solarize_tables(images: Tensor, thresholds: Tensor) -> Tensor:
    """(k, C, 256) uint8."""
    levels = _levels(images)
    tables = torch.where(levels < _column(thresholds, images), levels, 255 - levels)
    return _for_all_channels(tables, images)


def posterize_tables(images: Tensor, bits: Tensor) -> Tensor:
    """(k, C, 256) uint8."""
    steps = torch.pow(2.0, 8.0 - bits).to(torch.int32)
    return _for_all_channels(_levels(images) & -_column(steps, images), images)


def brightness_tables(images: Tensor, factors: Tensor) -> Tensor:
    """(k, C, 256) uint8, in single precision."""
    tables = truncate(_levels(images).float() * _column(factors.float(), images))
    return _for_all_channels(tables, images)


def contrast_tables(images: Tensor, factors: Tensor) -> Tensor:
    """(k, C, 256) uint8, in single precision; the mean luma is rounded to a level."""
    shades = luma(images).flatten(1)
    count = shades.shape[1]
    mean = shades.sum(1).mul_(2).add_(count).div_(2 * count, rounding_mode="trunc").float().view(-1, 1, 1)
    tables = truncate((_levels(images).float() - mean).mul_(_column(factors.float(), images)).add_(mean))
    return _for_all_channels(tables, images)


def luma(images: Tensor) -> Tensor:
    """(k, H, W) int32 grey levels of (k, C, H, W) uint8 images: ITU-R 601 weights in 16 bits, rounded.

    >>> luma(torch.tensor([255, 0, 0], dtype=torch.uint8).view(1, 3, 1, 1)).item()
    76
    """
    if images.shape[1] == 1:
        return images[:, 0].int()
    red, green, blue = images.unbind(1)
    return (red.int() * 19595 + green.int() * 38470 + blue.int() * 7471 + 32768) >> 16


def look_up(images: Tensor, tables: Tensor) -> Tensor:
    """(k, C, H, W) uint8 images with every level replaced by its entry in (k, C, 256) tables."""
    return tables.gather(2, images.flatten(2).long()).view(images.shape)


def _through_tables(images: Tensor, tables_of: TablesOf, magnitudes: Tensor | float) -> Tensor:
    check_images(images)
    if not images.numel():
        return images.clone()
    levels = to_levels(images)
    return from_levels(look_up(levels, tables_of(levels, per_example(magnitudes, images))), like=images)


def _levels(images: Tensor) -> Tensor:
    return torch.arange(LEVELS, dtype=torch.int32, device=images.device)


def _column(numbers: Tensor, images: Tensor) -> Tensor:
    return on_device_of(numbers, images).view(-1, 1, 1)


def _for_all_channels(tables: Tensor, images: Tensor) -> Tensor:
    return tables.to(torch.uint8).expand(len(images), images.shape[1], LEVELS)
