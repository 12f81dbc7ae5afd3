"""What was drawn at random for each example, apart from what is done with it.

Everything random is drawn on the CPU before any image is touched, so that applying it is a pure function: the same
result on every device and for any cut of the batch into chunks, and sizes of groups are known without waiting for a
GPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Draws:
    """Parameters of B examples; every field has the example as its first axis.

    Examples
    --------
    >>> from prune4rel.augment import draw_frames
    >>> frames = draw_frames(5, torch.Generator().manual_seed(0))
    >>> len(frames), len(frames[1:3])
    (5, 2)
    """

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def __getitem__(self, where: slice | Tensor) -> Self:
        """Return the parameters of some of the examples."""
        values: list[Any] = [getattr(self, field.name)[where] for field in fields(self)]
        return type(self)(*values)


def uniform(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Numbers from 0 up to 1, float32, on the CPU whatever the generator's device."""
    return torch.rand(tuple(shape), generator=generator, device=generator.device).cpu()


def integers(stop: int, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Integers from 0 up to `stop`, int64, on the CPU whatever the generator's device."""
    return torch.randint(stop, tuple(shape), generator=generator, device=generator.device).cpu()
