"""Batch normalisation over the batch of all ranks, rather than over the part that one of them holds."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from prune4rel.errors import InputError
from prune4rel.gpu.layers import NormReLU
from prune4rel.learners.losses import widened
from prune4rel.loading.schedule import Ranks

PLAIN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class SynchronisedBatchNorm(_BatchNorm):
    """Stands for a batch normalisation: same weights, same names, statistics of the whole batch.

    In training, mean and variance are those of all ranks' rows together, and gradients flow through them to every
    rank. Statistics are taken in single precision at least. A layer that also drops or activates, as some of timm's
    do, goes on doing so.

    Parameters
    ----------
    layer
        What to stand for; its weights and buffers are shared.
    ranks
        The processes batches are spread over.

    Examples
    --------
    >>> layer = nn.BatchNorm1d(1)
    >>> stand_in = SynchronisedBatchNorm(layer, Ranks())
    >>> x = torch.tensor([[1.0], [2.0], [6.0]])
    >>> torch.allclose(stand_in(x), layer(x), atol=1e-6), list(stand_in.state_dict()) == list(layer.state_dict())
    (True, True)
    """

    def __init__(self, layer: _BatchNorm, ranks: Ranks) -> None:
        super().__init__(layer.num_features, layer.eps, layer.momentum, affine=False, track_running_stats=False)
        self.ranks = ranks
        self.affine, self.track_running_stats = layer.affine, layer.track_running_stats
        self.weight, self.bias = layer.weight, layer.bias
        self.running_mean, self.running_var = layer.running_mean, layer.running_var
        self.num_batches_tracked = layer.num_batches_tracked
        self.drop, self.act = getattr(layer, "drop", nn.Identity()), getattr(layer, "act", nn.Identity())
        self.training = layer.training

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (B, C, ...) by channel."""
        if self.training or self.running_mean is None or self.running_var is None:
            y = self._by_the_batch(x)
        else:
            y = functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, training=False, eps=self.eps
            )
        active: Tensor = self.act(self.drop(y))
        return active

    def _by_the_batch(self, x: Tensor) -> Tensor:
        wide = widened(x)
        others = [axis for axis in range(x.ndim) if axis != 1]
        along = [-1 if axis == 1 else 1 for axis in range(x.ndim)]
        own = x.numel() // self.num_features
        sums_and_count = self.ranks.sum(torch.cat([wide.sum(others), wide.new_full((1,), own)]))
        count = sums_and_count[-1]
        mean = sums_and_count[:-1] / count
        centred = wide - mean.view(along)
        variance = self.ranks.sum(centred.square().sum(others)) / count
        if self.training:
            self._remember(mean.detach(), variance.detach() * count / (count - 1).clamp(min=1))
        y: Tensor = centred * (variance + self.eps).rsqrt().view(along)
        if self.affine:
            y = y * self.weight.view(along) + self.bias.view(along)
        return y.to(x.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics towards those of a batch."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_(variance.to(self.running_var.dtype), share)


def synchronise(module: nn.Module, ranks: Ranks, *, fused: bool) -> None:
    """Let every batch normalisation inside a module go by the batch of all ranks; names in checkpoints stay.

    Parameters
    ----------
    module
        Changed in place.
    fused
        Use PyTorch's own layer where it does the same, which is faster and works on GPUs only.

    Examples
    --------
    >>> network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    >>> synchronise(network, Ranks(), fused=False)
    >>> type(network[1]).__name__
    'SynchronisedBatchNorm'
    """
    for name, child in list(module.named_children()):
        if isinstance(child, _BatchNorm):
            setattr(module, name, _stand_in(child, ranks, fused=fused))
        else:
            synchronise(child, ranks, fused=fused)


def _stand_in(layer: _BatchNorm, ranks: Ranks, *, fused: bool) -> nn.Module:
    if isinstance(layer, SynchronisedBatchNorm | nn.SyncBatchNorm):
        return layer
    plain = type(layer) in PLAIN
    if fused and (plain or isinstance(layer, NormReLU)):
        whole: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(layer)  # type: ignore[no-untyped-call]
        whole.register_forward_hook(_touch_weights)
        if isinstance(layer, NormReLU):
            whole.register_forward_hook(lambda _layer, _x, y: torch.relu(y))
        return whole
    if plain or (isinstance(layer, PLAIN) and hasattr(layer, "drop") and hasattr(layer, "act")):
        return SynchronisedBatchNorm(layer, ranks)
    raise InputError(
        f"the network has a layer of type {type(layer).__name__}, which normalises over a batch in a way of its own; "
        "it cannot be spread over several processes. Train in one process, or choose another network"
    )


def _touch_weights(layer: nn.Module, x: tuple[Tensor, ...], y: Tensor) -> Tensor | None:
    """See to it that weights get a gradient of zeros on a rank without rows, where PyTorch's layer gives them none."""
    if len(x[0]) or not isinstance(layer, nn.SyncBatchNorm) or layer.weight is None:
        return None
    return y + (layer.weight.sum() + layer.bias.sum())
