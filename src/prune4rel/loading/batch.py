"""What a training loop gets, and what may be done to it on the way."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

Views: TypeAlias = Tensor | tuple[Tensor, ...]
"""One tensor, or one for each view, whose first axis is the example."""

Transform: TypeAlias = Callable[[Tensor, torch.Generator], Views]
"""Turns the inputs of a chunk into what the batches hold; draws from the generator and from nothing else."""


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
