"""Operations that mix a pixel with its own grey or with its neighbours."""

import torch
from torch import Tensor

from prune4rel.augment.pixels import check_images, from_levels, on_device_of, per_example, to_levels, truncate
from prune4rel.augment.tone import luma


def color(images: Tensor, factors: Tensor | float) -> Tensor:
    """Multiply the distance of every pixel to its own grey by (B,) factors: 0 is grey, 1 changes nothing.

    Parameters
    ----------
    images
        (B, 3, H, W) uint8, or floating point in 0 to 1; grey images come back as they are.

    Examples
    --------
    >>> red = torch.tensor([255, 0, 0], dtype=torch.uint8).view(1, 3, 1, 1)
    >>> color(red, 0.0).flatten()
    tensor([76, 76, 76], dtype=torch.uint8)
    """
    check_images(images)
    return from_levels(color_levels(to_levels(images), per_example(factors, images)), like=images)


def sharpness(images: Tensor, factors: Tensor | float) -> Tensor:
    """Multiply the distance of every pixel to its smoothed value by (B,) factors: 0 is smooth, 1 changes nothing.

    Parameters
    ----------
    images
        (B, C, H, W) uint8, or floating point in 0 to 1; the outermost pixels stay as they are.

    Examples
    --------
    >>> dot = torch.zeros(1, 1, 3, 3, dtype=torch.uint8)
    >>> dot[0, 0, 1, 1] = 130
    >>> sharpness(dot, 0.0)[0, 0, 1, 1]
    tensor(50, dtype=torch.uint8)
    """
    check_images(images)
    return from_levels(sharpness_levels(to_levels(images), per_example(factors, images)), like=images)


def color_levels(levels: Tensor, factors: Tensor) -> Tensor:
    """(k, C, H, W) uint8 from uint8 images and (k,) factors."""
    return _away_from(luma(levels).float().unsqueeze(1), levels.float(), factors)


def sharpness_levels(levels: Tensor, factors: Tensor) -> Tensor:
    """(k, C, H, W) uint8 from uint8 images and (k,) factors."""
    values = levels.float()
    return _away_from(_smooth(values), values, factors)


def _smooth(values: Tensor) -> Tensor:
    """Mean of 3 x 3 pixels, the middle one weighing 5 of 13, rounded; in float32, where all sums are exact."""
    smooth = values.clone()
    if min(values.shape[2:]) < 3:
        return smooth
    middle = values[:, :, 1:-1, 1:-1]
    rows = values[:, :, :-2] + values[:, :, 1:-1] + values[:, :, 2:]
    total = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:] + 4.0 * middle
    smooth[:, :, 1:-1, 1:-1] = total.mul_(1.0 / 13.0).add_(0.5).floor_()
    return smooth


def _away_from(base: Tensor, values: Tensor, factors: Tensor) -> Tensor:
    """Blend as Pillow does, in single precision, each step rounded; `values` is used up."""
    strengths = on_device_of(factors.to(torch.float32), values).view(-1, 1, 1, 1)
    return truncate(values.sub_(base).mul_(strengths).add_(base))
