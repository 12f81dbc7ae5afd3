"""Cutout: a square of zeros somewhere in the image."""

from dataclasses import dataclass

import torch
from torch import Tensor

from prune4rel.augment.draws import Draws, integers
from prune4rel.augment.pixels import check_images, on_device_of
from prune4rel.errors import InputError

SIZE = 16


@dataclass(frozen=True)
class Centres(Draws):
    """Where the squares of B examples lie: (B,) int64 row and column of the pixel right and below the middle."""

    rows: Tensor
    columns: Tensor


def draw_centres(count: int, height: int, width: int, generator: torch.Generator) -> Centres:
    """Draw every pixel with equal probability: squares near the edge are clipped there.

    >>> centres = draw_centres(1000, 32, 32, torch.Generator().manual_seed(0))
    >>> int(centres.rows.min()), int(centres.rows.max())
    (0, 31)
    """
    return Centres(rows=integers(height, (count,), generator), columns=integers(width, (count,), generator))


def cutout(images: Tensor, centres: Centres, *, size: int = SIZE) -> Tensor:
    """Set a square of each image to zero; after `normalise`, where zero is the mean colour.

    Parameters
    ----------
    images
        (B, C, H, W) of any type.
    centres
        Of the same B examples.
    size
        Side of the square in pixels, before it is clipped.

    Examples
    --------
    >>> cutout(torch.ones(1, 1, 3, 4), Centres(rows=torch.tensor([0]), columns=torch.tensor([2])), size=2)[0, 0]
    tensor([[1., 0., 0., 1.],
            [1., 1., 1., 1.],
            [1., 1., 1., 1.]])
    """
    return cutout_(images.clone(), centres, size=size)


def cutout_(images: Tensor, centres: Centres, *, size: int = SIZE) -> Tensor:
    """Do what `cutout` does in the images themselves."""
    check_images(images)
    if len(centres) != len(images):
        raise InputError(f"{len(centres)} centres were given for {len(images)} images")
    height, width = images.shape[2:]
    rows = on_device_of(_covered(centres.rows, height, size), images)
    columns = on_device_of(_covered(centres.columns, width, size), images)
    shown = ~(rows[:, None, :, None] & columns[:, None, None, :])
    return images.mul_(shown.to(images.dtype))


def _covered(middles: Tensor, length: int, size: int) -> Tensor:
    """(B, length) bool: which rows or columns the squares cover."""
    starts = middles[:, None] - size // 2
    places = torch.arange(length, device=middles.device)
    return (places >= starts) & (places < starts + size)
