"""A moving average of a network's weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average(nn.Module):
    """Follows a network's weights: average ← decay · average + (1 - decay) · weight, after every step.

    What is no floating-point number, such as a count of batches, is taken over as it is.

    Examples
    --------
    >>> network = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(network.weight)
    >>> average = Average(network, decay=0.75)
    >>> _ = nn.init.ones_(network.weight)
    >>> average.update()
    >>> with average.swapped():
    ...     network.weight.item()
    0.25
    >>> network.weight.item()
    1.0
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self._live = [*network.parameters(), *network.buffers()]
        self._kept = [tensor.detach().clone() for tensor in self._live]
        for number, tensor in enumerate(self._kept):
            self.register_buffer(f"average{number}", tensor)

    @torch.no_grad()
    def update(self) -> None:
        """Move a little towards the current weights."""
        floats = [tensor.is_floating_point() for tensor in self._live]
        kept = [tensor for tensor, yes in zip(self._kept, floats, strict=True) if yes]
        live = [tensor.detach() for tensor, yes in zip(self._live, floats, strict=True) if yes]
        torch._foreach_lerp_(kept, live, 1 - self.decay)
        for old, new, yes in zip(self._kept, self._live, floats, strict=True):
            if not yes:
                old.copy_(new)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Let the network have the averaged weights for a while."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for kept, live in zip(self._kept, self._live, strict=True):
            saved: Tensor = live.detach().clone()
            live.copy_(kept)
            kept.copy_(saved)
