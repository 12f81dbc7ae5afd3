"""What the kernels do to whole images: batch normalisation with ReLU, forward and backward."""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from prune4rel.networks.norm_relu import kernels
from prune4rel.networks.norm_relu.cut import cut_for_changes, cut_for_sums


def counters(channels: int, device: torch.device) -> Tensor:
    """Return what a layer lends to `forward` and `backward`, in turn: zeros, and zeros again when they are done."""
    return torch.zeros(cut_for_sums(1, channels).across, dtype=torch.int32, device=device)


def _begins_early(*, overlap: bool) -> dict[str, bool]:
    """Return what a kernel is told that begins before the last one has ended; an older Triton does not know it."""
    return {"OVERLAP": True, "launch_pdl": True} if overlap else {"OVERLAP": False}


@cache
def can_overlap(device: torch.device) -> bool:
    """Whether a kernel may begin before the one it waits for has ended: from Hopper on."""
    known = kernels.wait_for_last is not None and torch.version.hip is None
    return known and torch.cuda.get_device_capability(device)[0] >= 9


class Statistics(NamedTuple):
    """The weights (C,) of a layer, and what it remembers: running mean and variance (C,), number of batches ()."""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor
    batches: Tensor


def forward(
    x: Tensor, also: Tensor | None, layer: Statistics, arrived: Tensor, eps: float, momentum: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise x, or x + also, and apply ReLU; move the running statistics, count the batch.

    Returns
    -------
    tuple
        The result, and for `backward` what was normalised and facts (4, C).
    """
    places, channels = x.numel() // x.shape[1], x.shape[1]
    adding, changing = cut_for_sums(places, channels), cut_for_changes(places, channels)
    parts = torch.empty((2, adding.parts, channels), dtype=torch.float32, device=x.device)
    facts = torch.empty((4, channels), dtype=torch.float32, device=x.device)
    whole = x if also is None else torch.empty_like(x)
    y = torch.empty_like(x)
    overlap, two = can_overlap(x.device), also is not None
    kernels.moments[(adding.parts, adding.across)](
        x,
        x if also is None else also,
        whole,
        parts,
        arrived,
        *layer,
        facts,
        places,
        channels,
        eps,
        momentum,
        TWO=two,
        OVERLAP=overlap,
        **adding.sizes_of_sums,
    )
    kernels.apply[(changing.down, changing.across)](
        whole, facts, y, places, channels, FRESH=two, **_begins_early(overlap=overlap), **changing.sizes
    )
    return y, whole, facts


def forward_remembered(x: Tensor, also: Tensor | None, layer: Statistics, eps: float) -> Tensor:
    """Return relu(x, or x + also, normalised by the running statistics)."""
    places, channels = x.numel() // x.shape[1], x.shape[1]
    changing = cut_for_changes(places, channels)
    y = torch.empty_like(x)
    kernels.apply_remembered[(changing.down, changing.across)](
        x,
        x if also is None else also,
        *layer[:-1],
        y,
        places,
        channels,
        eps,
        TWO=also is not None,
        **changing.sizes,
    )
    return y


def backward(
    x: Tensor, dy: Tensor, dy_too: Tensor | None, facts: Tensor, arrived: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of what was normalised, of weight and of bias, from that of the result or its two parts."""
    places, channels = x.numel() // x.shape[1], x.shape[1]
    adding, changing = cut_for_sums(places, channels), cut_for_changes(places, channels)
    parts = torch.empty((2, adding.parts, channels), dtype=torch.float32, device=x.device)
    gradients = torch.empty((4, channels), dtype=torch.float32, device=x.device)
    dx = torch.empty_like(x)
    overlap, two = can_overlap(x.device), dy_too is not None
    given = (x, dy, dy if dy_too is None else dy_too, facts)
    kernels.pulls[(adding.parts, adding.across)](
        *given, parts, arrived, gradients, places, channels, TWO=two, OVERLAP=overlap, **adding.sizes_of_sums
    )
    kernels.send_back[(changing.down, changing.across)](
        *given, gradients, dx, places, channels, TWO=two, **_begins_early(overlap=overlap), **changing.sizes
    )
    return dx, gradients[0], gradients[1]
