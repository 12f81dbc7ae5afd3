"""Shear, translate, rotate: one affine nearest-neighbour gather, pixel for pixel Pillow's.

Pillow maps the centre of every output pixel back into the image, in 16.16 fixed point, and takes the pixel it falls
into; what falls outside is black. A matrix (a, b, c, d, e, f) says that output (x, y) comes from
(a x + b y + c, d x + e y + f), as in ``Image.transform(size, Image.Transform.AFFINE, matrix)``. Pixels are moved, never
mixed, so these functions take any type and change no value.
"""

import torch
from torch import Tensor

from prune4rel.augment.pixels import check_images, on_device_of, per_example

FIXED_POINT = 65536.0


def shear_x(images: Tensor, slopes: Tensor | float) -> Tensor:
    """Slant each image: row y moves left by slope times y + 1/2, to the nearest pixel.

    Parameters
    ----------
    images
        (B, C, H, W).
    slopes
        (B,) pixels a row, or one number for all.

    Examples
    --------
    >>> shear_x(torch.eye(3).view(1, 1, 3, 3), 0.5)[0, 0]
    tensor([[1., 0., 0.],
            [1., 0., 0.],
            [0., 1., 0.]])
    """
    return warp(images, shear_x_matrices(per_example(slopes, images)))


def shear_y(images: Tensor, slopes: Tensor | float) -> Tensor:
    """Slant each image: column x moves up by slope times x + 1/2, to the nearest pixel.

    Parameters are those of `shear_x`, with pixels a column.
    """
    return warp(images, shear_y_matrices(per_example(slopes, images)))


def translate_x(images: Tensor, distances: Tensor | float) -> Tensor:
    """Move each image left by (B,) distances in pixels, to the nearest pixel.

    >>> translate_x(torch.tensor([[[[1, 2, 3]]]], dtype=torch.uint8), 1)
    tensor([[[[2, 3, 0]]]], dtype=torch.uint8)
    """
    return warp(images, translate_x_matrices(per_example(distances, images)))


def translate_y(images: Tensor, distances: Tensor | float) -> Tensor:
    """Move each image up by (B,) distances in pixels, to the nearest pixel."""
    return warp(images, translate_y_matrices(per_example(distances, images)))


def rotate(images: Tensor, degrees: Tensor | float) -> Tensor:
    """Turn each image counter-clockwise about its centre by (B,) degrees.

    >>> rotate(torch.tensor([[[[1, 2], [3, 4]]]], dtype=torch.uint8), 90)[0, 0]
    tensor([[2, 4],
            [1, 3]], dtype=torch.uint8)
    """
    check_images(images)
    return warp(images, rotation_matrices(per_example(degrees, images), *images.shape[2:]))


def shear_x_matrices(slopes: Tensor) -> Tensor:
    """(k, 6) float64 from (k,) slopes."""
    return _matrices(slopes, b=slopes)


def shear_y_matrices(slopes: Tensor) -> Tensor:
    """(k, 6) float64 from (k,) slopes."""
    return _matrices(slopes, d=slopes)


def translate_x_matrices(distances: Tensor) -> Tensor:
    """(k, 6) float64 from (k,) distances in pixels."""
    return _matrices(distances, c=distances)


def translate_y_matrices(distances: Tensor) -> Tensor:
    """(k, 6) float64 from (k,) distances in pixels."""
    return _matrices(distances, f=distances)


def rotation_matrices(degrees: Tensor, height: int, width: int) -> Tensor:
    """(k, 6) float64 from (k,) degrees, about the centre of the image."""
    angles = -torch.deg2rad(torch.remainder(degrees, 360.0))
    cos, sin = torch.cos(angles).round(decimals=15), torch.sin(angles).round(decimals=15)
    x, y = width / 2, height / 2
    return _matrices(degrees, a=cos, b=sin, c=-cos * x - sin * y + x, d=-sin, e=cos, f=sin * x - cos * y + y)


def _matrices(like: Tensor, **entries: Tensor) -> Tensor:
    identity = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0], dtype=torch.float64, device="cpu")
    matrices = identity.repeat(len(like), 1)
    for name, values in entries.items():
        matrices[:, "abcdef".index(name)] = values
    return matrices


def warp(images: Tensor, matrices: Tensor) -> Tensor:
    """Send each image through its affine map, nearest pixel, black outside.

    Parameters
    ----------
    images
        (B, C, H, W) of any type.
    matrices
        (B, 6) float64, from output to input coordinates.

    Examples
    --------
    >>> images = torch.arange(1, 5, dtype=torch.uint8).view(1, 1, 2, 2)
    >>> warp(images, torch.tensor([[0.0, 1.0, 0.0, 1.0, 0.0, 0.0]]))[0, 0]
    tensor([[1, 3],
            [2, 4]], dtype=torch.uint8)
    """
    check_images(images)
    height, width = images.shape[2:]
    if not images.numel():
        return images.clone()
    a, b, c, d, e, f = on_device_of(_fixed_point(matrices), images).unbind(1)
    x = torch.arange(width, dtype=torch.int32, device=images.device)
    y = torch.arange(height, dtype=torch.int32, device=images.device)
    source_x = _along(c, b, y, a, x) >> 16
    source_y = _along(f, e, y, d, x) >> 16
    near_x, near_y = source_x.clamp(0, width - 1), source_y.clamp(0, height - 1)
    inside = (near_x == source_x) & (near_y == source_y)
    return pick(images, near_y.mul_(width).add_(near_x)).mul_(inside[:, None])


def _along(start: Tensor, per_row: Tensor, y: Tensor, per_column: Tensor, x: Tensor) -> Tensor:
    """(B, H, W) int32 coordinates in fixed point."""
    rows = start[:, None] + per_row[:, None] * y
    return rows[:, :, None] + (per_column[:, None] * x)[:, None, :]


def _fixed_point(matrices: Tensor) -> Tensor:
    """(k, 6) int32: entries times 65536, the offsets at the centre of the first pixel.

    A plain translation is not rounded to fixed point before it is rounded to pixels, as Pillow has it.
    """
    a, b, c, d, e, f = matrices.double().cpu().unbind(1)
    offset_x, offset_y = c + a * 0.5 + b * 0.5, f + d * 0.5 + e * 0.5
    scaled = torch.stack([a, b, offset_x, d, e, offset_y], dim=1).mul_(FIXED_POINT).add_(0.5).floor_()
    moves_only = (a == 1) & (b == 0) & (d == 0) & (e == 1)
    whole_pixels = torch.stack([offset_x, offset_y], dim=1).floor_().mul_(FIXED_POINT)
    scaled[:, [2, 5]] = torch.where(moves_only[:, None], whole_pixels, scaled[:, [2, 5]])
    return scaled.to(torch.int32)


def pick(images: Tensor, places: Tensor) -> Tensor:
    """(B, C, H', W'): pixels of (B, C, H, W) images at (B, H', W') places counted row by row."""
    count, channels = images.shape[:2]
    index = places.view(count, 1, -1).long().expand(-1, channels, -1)
    return images.flatten(2).gather(2, index).view(count, channels, *places.shape[1:])
