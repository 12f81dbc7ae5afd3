"""Which operations an example gets: AutoAugment's policy for CIFAR-10, and RandAugment."""

from dataclasses import dataclass
from functools import cache
from typing import Protocol

import torch
from torch import Tensor

from prune4rel.augment.draws import integers, uniform
from prune4rel.augment.operations import SIGNED, Operation, Operations, magnitude_of
from prune4rel.errors import InputError

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
