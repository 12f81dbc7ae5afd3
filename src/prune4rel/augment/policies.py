"""The operations of AutoAugment and RandAugment by number, how a batch goes through them, and which an example gets.

Examples are sorted by operation, so that each operation sees its own as one block: all warps are one gather, all
point operations another, whatever the mixture.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cache
from typing import Protocol

import torch
from torch import Tensor

from prune4rel.augment.draws import Draws, integers, uniform
from prune4rel.augment.pixels import check_images, from_levels, on_device_of, to_levels
from prune4rel.augment.transforms import (
    TablesOf,
    auto_contrast_tables,
    brightness_tables,
    color_levels,
    contrast_tables,
    equalize_tables,
    invert_tables,
    look_up,
    posterize_tables,
    rotation_matrices,
    sharpness_levels,
    shear_x_matrices,
    shear_y_matrices,
    solarize_tables,
    translate_x_matrices,
    translate_y_matrices,
    warp,
)
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
    Operation.SHEAR_X: lambda slopes, _height, _width: shear_x_matrices(slopes),
    Operation.SHEAR_Y: lambda slopes, _height, _width: shear_y_matrices(slopes),
    Operation.TRANSLATE_X: lambda distances, _height, _width: translate_x_matrices(distances),
    Operation.TRANSLATE_Y: lambda distances, _height, _width: translate_y_matrices(distances),
    Operation.ROTATE: rotation_matrices,
}
_TABLES: dict[Operation, TablesOf] = {
    Operation.AUTO_CONTRAST: auto_contrast_tables,
    Operation.EQUALIZE: equalize_tables,
    Operation.INVERT: invert_tables,
    Operation.SOLARIZE: solarize_tables,
    Operation.POSTERIZE: posterize_tables,
    Operation.BRIGHTNESS: brightness_tables,
    Operation.CONTRAST: contrast_tables,
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
        color_levels(groups[Operation.COLOR], strengths[Operation.COLOR]),
        sharpness_levels(groups[Operation.SHARPNESS], strengths[Operation.SHARPNESS]),
        groups[Operation.IDENTITY],
    ]
    return torch.cat(done).index_select(0, on_device_of(places, levels))


def _warp_groups(groups: Sequence[Tensor], strengths: Sequence[Tensor]) -> list[Tensor]:
    present = [operation for operation in _MATRICES if len(strengths[operation])]
    if not present:
        return []
    height, width = groups[0].shape[2:]
    matrices = [_MATRICES[operation](strengths[operation], height, width) for operation in present]
    return [warp(torch.cat([groups[operation] for operation in present]), torch.cat(matrices))]


def _look_up_groups(groups: Sequence[Tensor], strengths: Sequence[Tensor]) -> list[Tensor]:
    present = [operation for operation in _TABLES if len(strengths[operation])]
    if not present:
        return []
    tables = [_TABLES[operation](groups[operation], strengths[operation]) for operation in present]
    return [look_up(torch.cat([groups[operation] for operation in present]), torch.cat(tables))]


Step = tuple[Operation, float, int]
"""An operation, the probability that it is applied, and its level."""

AUTO_AUGMENT_CIFAR10: tuple[tuple[Step, Step], ...] = (
    ((Operation.INVERT, 0.1, 7), (Operation.CONTRAST, 0.2, 6)),
    ((Operation.ROTATE, 0.7, 2), (Operation.TRANSLATE_X, 0.3, 9)),
    ((Operation.SHARPNESS, 0.8, 1), (Operation.SHARPNESS, 0.9, 3)),
    ((Operation.SHEAR_Y, 0.5, 8), (Operation.TRANSLATE_Y, 0.7, 9)),
    ((Operation.AUTO_CONTRAST, 0.5, 8), (Operation.EQUALIZE, 0.9, 2)),
    ((Operation.SHEAR_Y, 0.2, 7), (Operation.POSTERIZE, 0.3, 7)),
    ((Operation.COLOR, 0.4, 3), (Operation.BRIGHTNESS, 0.6, 7)),
    ((Operation.SHARPNESS, 0.3, 9), (Operation.BRIGHTNESS, 0.7, 9)),
    ((Operation.EQUALIZE, 0.6, 5), (Operation.EQUALIZE, 0.5, 1)),
    ((Operation.CONTRAST, 0.6, 7), (Operation.SHARPNESS, 0.6, 5)),
    ((Operation.COLOR, 0.7, 7), (Operation.TRANSLATE_X, 0.5, 8)),
    ((Operation.EQUALIZE, 0.3, 7), (Operation.AUTO_CONTRAST, 0.4, 8)),
    ((Operation.TRANSLATE_Y, 0.4, 3), (Operation.SHARPNESS, 0.2, 6)),
    ((Operation.BRIGHTNESS, 0.9, 6), (Operation.COLOR, 0.2, 6)),
    ((Operation.SOLARIZE, 0.5, 2), (Operation.INVERT, 0.0, 3)),
    ((Operation.EQUALIZE, 0.2, 0), (Operation.AUTO_CONTRAST, 0.6, 0)),
    ((Operation.EQUALIZE, 0.2, 8), (Operation.EQUALIZE, 0.6, 4)),
    ((Operation.COLOR, 0.9, 9), (Operation.EQUALIZE, 0.6, 6)),
    ((Operation.AUTO_CONTRAST, 0.8, 4), (Operation.SOLARIZE, 0.2, 8)),
    ((Operation.BRIGHTNESS, 0.1, 3), (Operation.COLOR, 0.7, 0)),
    ((Operation.SOLARIZE, 0.4, 5), (Operation.AUTO_CONTRAST, 0.9, 3)),
    ((Operation.TRANSLATE_Y, 0.9, 9), (Operation.TRANSLATE_Y, 0.7, 9)),
    ((Operation.AUTO_CONTRAST, 0.9, 2), (Operation.SOLARIZE, 0.8, 3)),
    ((Operation.EQUALIZE, 0.8, 8), (Operation.INVERT, 0.1, 3)),
    ((Operation.TRANSLATE_Y, 0.7, 9), (Operation.AUTO_CONTRAST, 0.9, 1)),
)
"""Cubuk et al. 2019: one of these pairs is drawn for each image, each with equal probability."""

RAND_AUGMENT = tuple(operation for operation in Operation if operation is not Operation.INVERT)
"""Cubuk et al. 2020: the fourteen operations, the one that does nothing among them."""


class Policy(Protocol):
    """Something that draws operations."""

    def draw(self, count: int, generator: torch.Generator) -> Operations:
        """Operations for `count` examples."""
        ...


@dataclass(frozen=True)
class AutoAugment:
    """AutoAugment: a pair of operations from a list, each applied with its own probability.

    Parameters
    ----------
    pairs
        (operation, probability, level) twice for each pair; CIFAR-10's by default.

    Examples
    --------
    >>> operations = AutoAugment().draw(100, torch.Generator().manual_seed(1))
    >>> [Operation(code).name for code in operations.codes[0].tolist()]
    ['IDENTITY', 'AUTO_CONTRAST']
    """

    pairs: tuple[tuple[Step, Step], ...] = AUTO_AUGMENT_CIFAR10

    def draw(self, count: int, generator: torch.Generator) -> Operations:
        """Operations for `count` examples, in two rounds."""
        codes, probabilities, magnitudes = _columns(self.pairs)
        pair = integers(len(self.pairs), (count,), generator)
        applied = uniform((count, 2), generator) < probabilities[pair]
        chosen = torch.where(applied, codes[pair], int(Operation.IDENTITY))
        return Operations(chosen, _signed(chosen, magnitudes[pair] * applied, generator))


@dataclass(frozen=True)
class RandAugment:
    """RandAugment: some operations after each other, each drawn from all, all at one level.

    Parameters
    ----------
    rounds
        How many operations an example gets (n in the paper).
    level
        From 0 to 10, whole or not (m in the paper, on its first scale), with AutoAugment's magnitudes.

    Examples
    --------
    >>> RandAugment(rounds=3, level=5).draw(4, torch.Generator().manual_seed(0)).codes.shape
    torch.Size([4, 3])
    """

    rounds: int = 2
    level: float = 9.0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise InputError(f"rounds must be 1 or more, not {self.rounds}")
        magnitude_of(Operation.IDENTITY, self.level)

    def draw(self, count: int, generator: torch.Generator) -> Operations:
        """Operations for `count` examples."""
        strength = torch.tensor(
            [magnitude_of(operation, self.level) for operation in Operation], dtype=torch.float64, device="cpu"
        )
        drawn = integers(len(RAND_AUGMENT), (count, self.rounds), generator)
        codes = torch.tensor(RAND_AUGMENT, device="cpu")[drawn]
        return Operations(codes, _signed(codes, strength[codes], generator))


@cache
def _columns(pairs: tuple[tuple[Step, Step], ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Codes, probabilities and magnitudes, (number of pairs, 2) each."""
    codes = torch.tensor([[int(operation) for operation, _, _ in pair] for pair in pairs], device="cpu")
    probabilities = torch.tensor([[probability for _, probability, _ in pair] for pair in pairs], device="cpu")
    magnitudes = [[magnitude_of(operation, level) for operation, _, level in pair] for pair in pairs]
    return codes, probabilities, torch.tensor(magnitudes, dtype=torch.float64, device="cpu")


def _signed(codes: Tensor, magnitudes: Tensor, generator: torch.Generator) -> Tensor:
    goes_both_ways = torch.tensor([operation in SIGNED for operation in Operation], device="cpu")[codes]
    turned = (uniform(codes.shape, generator) < 0.5) & goes_both_ways
    return torch.where(turned, -magnitudes, magnitudes)
