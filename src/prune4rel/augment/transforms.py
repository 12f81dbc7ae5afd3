"""What happens to images, pixel for pixel as Pillow has it: moved, sent through tables, mixed with neighbours.

Shear, translate, rotate are one affine nearest-neighbour gather. Pillow maps the centre of every output pixel back into
the image, in 16.16 fixed point, and takes the pixel it falls into; what falls outside is black. A matrix
(a, b, c, d, e, f) says that output (x, y) comes from (a x + b y + c, d x + e y + f), as in
``Image.transform(size, Image.Transform.AFFINE, matrix)``. Pixels are moved, never mixed, so these functions take any
type and change no value.

In point operations every pixel goes through a table of 256 grey levels made for its image and channel. The tables are
Pillow's, number for number. Making them costs little beside the pixels, and all of a batch's go through one gather
whatever the operations were.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from prune4rel.augment.pixels import check_images, from_levels, on_device_of, per_example, to_levels, truncate

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
