"""The operations of AutoAugment and RandAugment, by number, and how a batch goes through them.

Examples are sorted by operation, so that each operation sees its own as one block: all warps are one gather, all
point operations another, whatever the mixture.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto

import torch
from torch import Tensor

from prune4rel.augment import colour, geometry, tone
from prune4rel.augment.draws import Draws
from prune4rel.augment.pixels import check_images, from_levels, on_device_of, to_levels
from prune4rel.errors import InputError


class Operation(IntEnum):
    """What may happen to an image; each has one magnitude, whose meaning its function in this package explains."""

    SHEAR_X = 0
    SHEAR_Y = auto()
    TRANSLATE_X = auto()
    TRANSLATE_Y = auto()
    ROTATE = auto()
    AUTO_CONTRAST = auto()
    EQUALIZE = auto()
    INVERT = auto()
    SOLARIZE = auto()
    POSTERIZE = auto()
    BRIGHTNESS = auto()
    CONTRAST = auto()
    COLOR = auto()
    SHARPNESS = auto()
    IDENTITY = auto()


MatricesOf = Callable[[Tensor, int, int], Tensor]

_MATRICES: dict[Operation, MatricesOf] = {
    Operation.SHEAR_X: lambda slopes, _height, _width: geometry.shear_x_matrices(slopes),
    Operation.SHEAR_Y: lambda slopes, _height, _width: geometry.shear_y_matrices(slopes),
    Operation.TRANSLATE_X: lambda distances, _height, _width: geometry.translate_x_matrices(distances),
    Operation.TRANSLATE_Y: lambda distances, _height, _width: geometry.translate_y_matrices(distances),
    Operation.ROTATE: geometry.rotation_matrices,
}
_TABLES: dict[Operation, tone.TablesOf] = {
    Operation.AUTO_CONTRAST: tone.auto_contrast_tables,
    Operation.EQUALIZE: tone.equalize_tables,
    Operation.INVERT: tone.invert_tables,
    Operation.SOLARIZE: tone.solarize_tables,
    Operation.POSTERIZE: tone.posterize_tables,
    Operation.BRIGHTNESS: tone.brightness_tables,
    Operation.CONTRAST: tone.contrast_tables,
}
SIGNED = frozenset(_MATRICES)
"""Operations that go both ways: a policy draws the sign of their magnitude."""

_TOP_LEVEL = 10.0
_MAGNITUDES: dict[Operation, Callable[[float], float]] = {
    Operation.SHEAR_X: lambda level: 0.3 * level / _TOP_LEVEL,
    Operation.SHEAR_Y: lambda level: 0.3 * level / _TOP_LEVEL,
    Operation.TRANSLATE_X: lambda level: 10.0 * level / _TOP_LEVEL,
    Operation.TRANSLATE_Y: lambda level: 10.0 * level / _TOP_LEVEL,
    Operation.ROTATE: lambda level: 30.0 * level / _TOP_LEVEL,
    Operation.SOLARIZE: lambda level: 256 - int(256 * level / _TOP_LEVEL),
    Operation.POSTERIZE: lambda level: 4 - int(4 * level / _TOP_LEVEL),
    Operation.BRIGHTNESS: lambda level: 0.1 + 1.8 * level / _TOP_LEVEL,
    Operation.CONTRAST: lambda level: 0.1 + 1.8 * level / _TOP_LEVEL,
    Operation.COLOR: lambda level: 0.1 + 1.8 * level / _TOP_LEVEL,
    Operation.SHARPNESS: lambda level: 0.1 + 1.8 * level / _TOP_LEVEL,
}


def magnitude_of(operation: Operation, level: float) -> float:
    """Magnitude of a level from 0 to 10, as AutoAugment defines it; 0 for operations that have none.

    >>> magnitude_of(Operation.ROTATE, 7), magnitude_of(Operation.SOLARIZE, 2), magnitude_of(Operation.POSTERIZE, 7)
    (21.0, 205, 2)
    """
    if not 0 <= level <= _TOP_LEVEL:
        raise InputError(f"a level must be between 0 and 10, not {level}")
    return _MAGNITUDES[operation](level) if operation in _MAGNITUDES else 0.0


@dataclass(frozen=True)
class Operations(Draws):
    """What happens to each of B examples, one round after the other.

    Parameters
    ----------
    codes
        (B, rounds) int64, an `Operation` each.
    magnitudes
        (B, rounds) float64, signed.
    """

    codes: Tensor
    magnitudes: Tensor


def apply_operations(images: Tensor, operations: Operations) -> Tensor:
    """Put every example through its own operations.

    Parameters
    ----------
    images
        (B, 3, H, W) uint8, or floating point in 0 to 1: then rounded to grey levels first, and levels / 255 after.
    operations
        Of the same B examples.

    Examples
    --------
    >>> images = torch.tensor([[[[10, 20]]], [[[10, 20]]]], dtype=torch.uint8)
    >>> codes = torch.tensor([[Operation.INVERT], [Operation.TRANSLATE_X]])
    >>> apply_operations(images, Operations(codes, torch.tensor([[0.0], [1.0]])))[:, 0, 0]
    tensor([[245, 235],
            [ 20,   0]], dtype=torch.uint8)
    """
    check_images(images)
    if len(operations) != len(images):
        raise InputError(f"operations for {len(operations)} examples were given for {len(images)} images")
    if not images.numel() or not operations.codes.numel():
        return images.clone()
    all_codes, all_magnitudes = operations.codes.cpu(), operations.magnitudes.double().cpu()
    if all_codes.min() < 0 or all_codes.max() >= len(Operation):
        raise InputError(f"codes of operations go from 0 to {len(Operation) - 1}; see Operation")
    levels = to_levels(images)
    for codes, magnitudes in zip(all_codes.unbind(1), all_magnitudes.unbind(1), strict=True):
        levels = _apply_round(levels, codes, magnitudes)
    return from_levels(levels, like=images)


def _apply_round(levels: Tensor, codes: Tensor, magnitudes: Tensor) -> Tensor:
    order = torch.argsort(codes, stable=True)
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order), device=order.device)
    sizes = torch.bincount(codes, minlength=len(Operation)).tolist()
    groups = torch.split(levels.index_select(0, on_device_of(order, levels)), sizes)
    strengths = torch.split(magnitudes[order], sizes)
    done = [
        *_warp_groups(groups, strengths),
        *_look_up_groups(groups, strengths),
        colour.color_levels(groups[Operation.COLOR], strengths[Operation.COLOR]),
        colour.sharpness_levels(groups[Operation.SHARPNESS], strengths[Operation.SHARPNESS]),
        groups[Operation.IDENTITY],
    ]
    return torch.cat(done).index_select(0, on_device_of(places, levels))


def _warp_groups(groups: Sequence[Tensor], strengths: Sequence[Tensor]) -> list[Tensor]:
    present = [operation for operation in _MATRICES if len(strengths[operation])]
    if not present:
        return []
    height, width = groups[0].shape[2:]
    matrices = [_MATRICES[operation](strengths[operation], height, width) for operation in present]
    return [geometry.warp(torch.cat([groups[operation] for operation in present]), torch.cat(matrices))]


def _look_up_groups(groups: Sequence[Tensor], strengths: Sequence[Tensor]) -> list[Tensor]:
    present = [operation for operation in _TABLES if len(strengths[operation])]
    if not present:
        return []
    tables = [_TABLES[operation](groups[operation], strengths[operation]) for operation in present]
    return [tone.look_up(torch.cat([groups[operation] for operation in present]), torch.cat(tables))]
