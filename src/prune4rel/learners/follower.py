"""A copy of a network that follows its weights at a distance."""

from copy import deepcopy
from typing import Self

import torch
from torch import Tensor, nn


class Follower(nn.Module):
    """The moving average of a network's weights, as a network of its own that is never trained.

    It is always in evaluation mode; running statistics are averaged like weights, counts are taken over.

    Parameters
    ----------
    network
        What to copy and, later, to follow.

    Examples
    --------
    >>> network = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.ones_(network.weight)
    >>> follower = Follower(network)
    >>> _ = nn.init.zeros_(network.weight)
    >>> follower.follow(network, torch.tensor(0.75))
    >>> follower(torch.ones(1, 1))
    tensor([[0.7500]])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = deepcopy(network).requires_grad_(requires_grad=False)
        self.network.eval()

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode, whatever is asked."""
        return super().train(mode and False)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into logits (B, C), without gradients."""
        logits: Tensor = self.network(x)
        return logits

    @torch.no_grad()
    def follow(self, network: nn.Module, decay: Tensor) -> None:
        """Set every weight to decay · weight + (1 - decay) · the network's; `decay` is () on the device."""
        mine = [*self.network.parameters(), *self.network.buffers()]
        theirs = [*network.parameters(), *network.buffers()]
        pairs = list(zip(mine, theirs, strict=True))
        kept = [old.data for old, _ in pairs if old.is_floating_point()]
        fresh = [new.data for old, new in pairs if old.is_floating_point()]
        torch._foreach_mul_(kept, decay)
        torch._foreach_add_(kept, list(torch._foreach_mul(fresh, 1 - decay)))  # noqa: SLF001 - one launch for all
        for old, new in pairs:
            if not old.is_floating_point():
                old.copy_(new)
