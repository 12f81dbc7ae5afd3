"""Two passes of one network at a time, where batch normalisation remembers them one after the other."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

Remember = Callable[[], None]


class Memory(NamedTuple):
    """What a layer remembers: running mean and variance (C,), number of batches (), and the share a new batch gets."""

    mean: Tensor
    variance: Tensor
    batches: Tensor
    share: float | None


@contextmanager
def noted_apart(network: nn.Module) -> Iterator[Remember]:
    """Have batch normalisations note the statistics of a batch apart, as long as another pass may change theirs.

    A network in training that is asked about a batch moves its running statistics. Two passes that run beside each
    other would move them at the same time. So one of them is made in this block, and remembered when both are done:
    the network then remembers the two as if this one had followed the other.

    Parameters
    ----------
    network
        Only layers in training mode are concerned; others change nothing.

    Yields
    ------
    Callable
        To be called after the block and after the other pass, once.

    Examples
    --------
    >>> layer, x = nn.BatchNorm1d(1, momentum=0.5), torch.tensor([[1.0], [3.0]])
    >>> with noted_apart(layer) as remember:
    ...     y = layer(x)
    >>> layer.running_mean, layer.num_batches_tracked
    (tensor([0.]), tensor(0))
    >>> remember()
    >>> layer.running_mean, layer.num_batches_tracked
    (tensor([1.]), tensor(1))
    """
    layers = [layer for layer in network.modules() if isinstance(layer, _BatchNorm) and _remembers(layer)]
    own = [_memory_of(layer) for layer in layers]
    notes = _blank(own) if own else []
    for layer, note in zip(layers, notes, strict=True):
        _give(layer, note)
    try:
        yield lambda: _remember(own, notes)
    finally:
        for layer, memory in zip(layers, own, strict=True):
            _give(layer, memory)


def _remembers(layer: _BatchNorm) -> bool:
    return layer.training and layer.running_mean is not None


def _memory_of(layer: _BatchNorm) -> Memory:
    return Memory(layer.running_mean, layer.running_var, layer.num_batches_tracked, layer.momentum)  # type: ignore[arg-type]


def _give(layer: _BatchNorm, memory: Memory) -> None:
    layer.running_mean, layer.running_var, layer.num_batches_tracked, layer.momentum = memory


def _blank(own: list[Memory]) -> list[Memory]:
    """Zeros for all layers, parts of two tensors, which a GPU fills in two operations.

    A batch gets all of them, so that what is noted are its statistics to the last bit.
    """
    sizes = [len(memory.mean) for memory in own]
    means, variances = own[0].mean.new_zeros((2, sum(sizes)))
    batches = own[0].batches.new_zeros(len(own))
    parts = zip(means.split(sizes), variances.split(sizes), batches.unbind(), strict=True)
    return [Memory(*part, share=1.0) for part in parts]


@torch.no_grad()
def _remember(own: list[Memory], notes: list[Memory]) -> None:
    """Move the statistics of all layers towards the noted ones."""
    by_share: dict[float | None, list[tuple[Memory, Memory]]] = {}
    for memory, note in zip(own, notes, strict=True):
        by_share.setdefault(memory.share, []).append((memory, note))
    for share, pairs in by_share.items():
        kept = [numbers for memory, _ in pairs for numbers in memory[:2]]
        noted = [numbers for _, note in pairs for numbers in note[:2]]
        batches = [memory.batches for memory, _ in pairs]
        torch._foreach_add_(batches, 1)
        if share is not None:
            torch._foreach_lerp_(kept, noted, share)
        else:  # the mean over all batches so far
            shares = [(1 / count).to(memory.mean) for count, (memory, _) in zip(batches, pairs, strict=True)]
            torch._foreach_lerp_(kept, noted, [each for each in shares for _ in range(2)])
