"""The weak view's two moves: a random crop after padding with black, and a random mirror image."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from prune4rel.augment.draws import Draws, integers, uniform
from prune4rel.augment.geometry import pick
from prune4rel.augment.pixels import check_images, normalise, normalise_into, on_device_of
from prune4rel.errors import InputError
from prune4rel.machine import has_triton

PADDING = 4


@dataclass(frozen=True)
class Frames(Draws):
    """Which part of the padded image each of B examples shows, and whether mirrored.

    Parameters
    ----------
    rows, columns
        (B,) int64, upper left corner in the padded image, 0 to twice the padding.
    mirrored
        (B,) bool, left and right swapped after the crop.
    """

    rows: Tensor
    columns: Tensor
    mirrored: Tensor


def draw_frames(
    count: int, generator: torch.Generator, *, padding: int = PADDING, mirror_probability: float = 0.5
) -> Frames:
    """Draw every corner with equal probability, and mirror with `mirror_probability`.

    >>> frames = draw_frames(1000, torch.Generator().manual_seed(0))
    >>> frames.rows.unique().tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    """
    corners = integers(2 * padding + 1, (count, 2), generator)
    mirrored = uniform((count,), generator) < mirror_probability
    return Frames(rows=corners[:, 0], columns=corners[:, 1], mirrored=mirrored)


def crop_and_mirror(images: Tensor, frames: Frames, *, padding: int = PADDING) -> Tensor:
    """Pad with zeros, cut each example's frame out, mirror it where wanted.

    Parameters
    ----------
    images
        (B, C, H, W) of any type; values are moved, never changed.
    frames
        Of the same B examples, drawn with the same padding.

    Examples
    --------
    >>> images = torch.arange(1, 5, dtype=torch.uint8).view(1, 1, 2, 2)
    >>> frames = Frames(rows=torch.tensor([1]), columns=torch.tensor([2]), mirrored=torch.tensor([False]))
    >>> crop_and_mirror(images, frames, padding=1)[0, 0]
    tensor([[2, 0],
            [4, 0]], dtype=torch.uint8)
    """
    _check(images, frames)
    height, width = images.shape[2:]
    if not images.numel():
        return images.clone()
    stride = width + 2 * padding
    step = 1 - 2 * frames.mirrored.long()
    first_column = frames.columns + frames.mirrored * (width - 1)
    # three numbers an example go to the device, and a place for every pixel is worked out there
    numbers = torch.stack([frames.rows * stride, first_column, step])
    first_row, first_column, step = on_device_of(numbers, images)[:, :, None]
    rows = first_row + torch.arange(0, height * stride, stride, device=images.device)
    columns = first_column + step * torch.arange(width, device=images.device)
    places = rows[:, :, None] + columns[:, None, :]
    return pick(pad(images, (padding, padding, padding, padding)), places)


def crop_mirror_and_normalise_into(
    values: Tensor, images: Tensor, frames: Frames, mean: Sequence[float], std: Sequence[float], *, padding: int
) -> None:
    """Write what `normalise` makes of `crop_and_mirror` into values (B, C, H, W), whose type it takes.

    On a GPU levels go straight from where they lie to the numbers they become, in one operation; there are 256 of them
    a channel, so that the numbers are worked out beforehand, to the last bit as `normalise` has them.
    """
    _check(images, frames)
    if not (images.is_cuda and images.dtype == torch.uint8 and images.is_contiguous() and has_triton()):
        normalise_into(values, crop_and_mirror(images, frames, padding=padding), mean, std)
        return
    from prune4rel.gpu.frame_kernels import frame  # noqa: PLC0415 - needs Triton, which comes with PyTorch for GPUs

    if images.numel():
        places = torch.stack([frames.rows - padding, frames.columns - padding, frames.mirrored.long()])
        every_level = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(-1, images.shape[1], -1, -1)
        levels = normalise(every_level, mean, std, dtype=values.dtype)
        frame(values, images, on_device_of(places, images), on_device_of(levels, images))


def _check(images: Tensor, frames: Frames) -> None:
    check_images(images)
    if len(frames) != len(images):
        raise InputError(f"{len(frames)} frames were given for {len(images)} images")
