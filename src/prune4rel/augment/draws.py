"""What was drawn at random for each example, apart from what is done with it.

Everything random is drawn on the CPU before any image is touched, so that applying it is a pure function: the same
result on every device and for any cut of the batch into chunks, and sizes of groups are known without waiting for a
GPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, Self

import torch
from torch import Tensor

ViewName = Literal["plain", "weak", "strong"]
"""How an example is shown: as it is, weakly or strongly changed."""


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


@dataclass(frozen=True)
class NoDraws(Draws):
    """Of B examples for which nothing is drawn: (B, 0)."""

    nothing: Tensor


class View(Protocol):
    """From a batch of inputs to what a network sees of them: drawn for all, applied to all or to some.

    A view of your own that names this class as its base needs `draw` and `apply` only.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Factors(Draws):
    ...     factors: Tensor
    >>> class Dim(View):
    ...     def draw(self, shape: Sequence[int], generator: torch.Generator) -> Factors:
    ...         return Factors(uniform((shape[0], 1), generator))
    ...     def apply(self, inputs: Tensor, drawn: Factors) -> Tensor:
    ...         return inputs * drawn.factors.to(inputs.device)
    >>> view, inputs = Dim(), torch.ones(5, 3)
    >>> drawn = view.draw(inputs.shape, torch.Generator().manual_seed(0))
    >>> torch.equal(view.apply(inputs[2:], drawn[2:]), view(inputs, torch.Generator().manual_seed(0))[2:])
    True
    """

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> Draws:
        """Parameters of inputs of the given shape, the example first."""
        ...

    def apply(self, inputs: Tensor, drawn: Any) -> Tensor:
        """Turn B inputs into what the network sees, with the parameters of the same B."""
        ...

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Draw and apply."""
        return self.apply(inputs, self.draw(inputs.shape, generator))


def uniform(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Numbers from 0 up to 1, float32, on the CPU whatever the generator's device."""
    return torch.rand(tuple(shape), generator=generator, device=generator.device).cpu()


def normal(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Numbers of mean 0 and standard deviation 1, float32, on the CPU whatever the generator's device."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device).cpu()


def integers(stop: int, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Integers from 0 up to `stop`, int64, on the CPU whatever the generator's device."""
    return torch.randint(stop, tuple(shape), generator=generator, device=generator.device).cpu()
