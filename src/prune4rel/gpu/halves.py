"""Half-precision copies of a network's convolutions, made all at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Halves:
    """Lends bfloat16 copies of their weights to convolutions, and collects the gradients of these.

    In mixed precision, weights are rounded for every forward pass, and gradients widened in every backward pass.
    Autocast does so layer by layer; here it is one operation for all layers each time, with the same result. Whoever
    changes weights has to have them rounded again.

    Parameters
    ----------
    network
        Whose convolutions to look after; other layers are autocast's.

    Examples
    --------
    >>> layer = nn.Conv2d(1, 1, 1, bias=False)
    >>> halves = Halves(layer)
    >>> with halves.swapped():
    ...     y = layer(torch.ones(1, 1, 1, 1, dtype=torch.bfloat16))
    >>> y.sum().backward()
    >>> halves.collect()
    >>> layer.weight.grad.flatten(), layer.weight.dtype
    (tensor([1.]), torch.float32)
    """

    def __init__(self, network: nn.Module) -> None:
        layers = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
        self._layers = [layer for layer in layers if layer.weight.dtype == torch.float32]
        self._whole: list[nn.Parameter] = [layer.weight for layer in self._layers]  # type: ignore[misc]
        self._half: list[nn.Parameter] = [
            nn.Parameter(weight.detach().bfloat16(), requires_grad=weight.requires_grad) for weight in self._whole
        ]

    def pairs(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Return the weights that are trained, each with its rounded copy."""
        pairs = zip(self._whole, self._half, strict=True)
        return [(whole, half) for whole, half in pairs if whole.requires_grad]

    @torch.no_grad()
    def round(self) -> None:
        """Round the weights as they are now."""
        _copy_all(self._half, self._whole)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Let the network have the rounded weights for a while."""
        for half in self._half:
            half.grad = None
        self._give(self._half)
        try:
            yield
        finally:
            self._give(self._whole)

    @torch.no_grad()
    def collect(self) -> None:
        """Give the weights the gradients that their rounded copies got."""
        got = [(whole, torch.empty_like(whole), half.grad) for whole, half in self.pairs() if half.grad is not None]
        _copy_all([wide for _, wide, _ in got], [gradient for _, _, gradient in got])
        for whole, wide, _ in got:
            whole.grad = wide

    def _give(self, weights: list[nn.Parameter]) -> None:
        for layer, weight in zip(self._layers, weights, strict=True):
            layer.weight = weight


def _copy_all(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    if targets:
        torch._foreach_copy_(list(targets), list(sources))
