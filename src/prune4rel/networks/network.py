"""What every network here is: an embedding, and a linear classifier on top of it."""

import math
from abc import ABC, abstractmethod
from typing import TypeAlias

import torch
from torch import Tensor, nn

from prune4rel.errors import InputError

Shape: TypeAlias = tuple[int, ...]

IMAGE: Shape = (3, 32, 32)
"""Shape of one input where none is given: channels, height, width."""


class Network(nn.Module, ABC):
    """A network whose last layer is linear, so that what it knows of an input is one vector.

    A network of your own says how to `embed`; the rest is here.

    Parameters
    ----------
    dim
        Length d of an embedding.
    n_classes
        Number of classes C.

    Attributes
    ----------
    head
        The classifier, ``nn.Linear(dim, n_classes)``.

    Examples
    --------
    >>> import torch
    >>> class Flat(Network):
    ...     def embed(self, x):
    ...         return x.flatten(1)
    >>> network = Flat(12, 5)
    >>> x = torch.zeros(2, 3, 2, 2)
    >>> network.embed(x).shape, network(x).shape, network.dim, network.n_classes
    (torch.Size([2, 12]), torch.Size([2, 5]), 12, 5)
    """

    def __init__(self, dim: int, n_classes: int) -> None:
        super().__init__()
        self.dim = positive(dim, "dim")
        self.n_classes = positive(n_classes, "n_classes")
        self.head = nn.Linear(dim, n_classes)

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into embeddings (B, d)."""

    def classify(self, z: Tensor) -> Tensor:
        """Turn embeddings (B, d) into logits (B, C), in full precision also where the rest is mixed."""
        with torch.autocast(z.device.type, enabled=False):
            logits: Tensor = self.head(z.to(self.head.weight.dtype))
        return logits

    def forward(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into logits (B, C)."""
        return self.classify(self.embed(x))


def positive(number: int, name: str) -> int:
    """Refuse a count below one."""
    if number < 1:
        raise InputError(f"{name} must be 1 or more, not {number}")
    return number


def channels_of(shape: Shape, network: str) -> int:
    """Return the number of channels of an image shape, and refuse any other shape.

    >>> channels_of((3, 32, 32), "small-cnn")
    3
    >>> channels_of((64,), "small-cnn")
    Traceback (most recent call last):
    prune4rel.errors.InputError: network 'small-cnn' takes images (channels, height, width), not ...
    """
    if len(shape) != 3 or min(shape) < 1:
        raise InputError(
            f"network {network!r} takes images (channels, height, width), not inputs of shape {tuple(shape)}; "
            "use 'mlp' for features"
        )
    return shape[0]


def numbers_in(shape: Shape) -> int:
    """Return how many numbers an input of this shape holds."""
    return positive(math.prod(shape), "the size of an input") if shape else 1
