"""What a training loop gets, and what may be done to it on the way."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor

from prune4rel.augment.draws import Draws

Views: TypeAlias = Tensor | tuple[Tensor, ...]
"""One tensor, or one for each view, whose first axis is the example."""

Transform: TypeAlias = Callable[[Tensor, torch.Generator], Views]
"""Turns the inputs of a chunk into what the batches hold; draws from the CPU generator and from nothing else."""


@runtime_checkable
class DrawnTransform(Protocol):
    """A transform that draws for a whole chunk and can apply a part of that, as all views do."""

    def __call__(self, inputs: Tensor, generator: torch.Generator, /) -> Views:
        """Draw and apply."""
        ...

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> Draws:
        """Parameters of inputs of the given shape, the example first."""
        ...

    def apply(self, inputs: Tensor, drawn: Any) -> Views:
        """Turn B inputs into what batches hold, with the parameters of the same B."""
        ...


class Batch(NamedTuple):
    """Some examples, on the device.

    Parameters
    ----------
    indices
        (B,) int64, numbers of the examples in the split, whatever subset of it is gone over.
    inputs
        What the transform made of the inputs, a tuple where it made several views. Without a transform uint8
        (B, 3, H, W) for images and float32 (B, d) for features.
    labels
        (B,) int64 given labels.

    Examples
    --------
    >>> batch = Batch(torch.tensor([7, 3]), torch.zeros(2, 5), torch.tensor([1, 0]))
    >>> [view.shape for view in batch.views]
    [torch.Size([2, 5])]
    """

    indices: Tensor
    inputs: Views
    labels: Tensor

    @property
    def views(self) -> tuple[Tensor, ...]:
        """The inputs as a tuple, also where there is but one view."""
        return self.inputs if isinstance(self.inputs, tuple) else (self.inputs,)


def views_of(result: Views, rows: int) -> Views:
    """Check that a transform kept one row an example."""
    for view in result if isinstance(result, tuple) else (result,):
        if len(view) != rows:
            raise ValueError(f"the transform made {len(view)} rows of {rows} inputs; it must keep one row an example")
    return result


def cut(views: Views, start: int, stop: int) -> Views:
    """Return some rows of every view, without a copy."""
    return tuple(view[start:stop] for view in views) if isinstance(views, tuple) else views[start:stop]
