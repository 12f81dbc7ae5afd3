"""Batch normalisation followed by ReLU."""

from typing import Any

import torch
from torch import Tensor, nn

from prune4rel.machine import has_triton


class NormReLU(nn.BatchNorm2d):
    """``relu(batch_norm(x))``, with the weights and buffers of `nn.BatchNorm2d`.

    In training on a GPU it is one operation that reads and writes images as seldom as it can, where PyTorch's two read
    and write them twice as often; half of the time of a small residual network goes there.

    Examples
    --------
    >>> layer = NormReLU(3)
    >>> x = torch.randn(4, 3, 2, 2)
    >>> torch.equal(layer(x), nn.BatchNorm2d(3)(x).relu())
    True
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        # by these names layers of this kind are known, here and in timm
        self.drop, self.act = nn.Identity(), nn.ReLU()
        self._arrived: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise and activate x (B, C, H, W)."""
        if not self._can_fuse(x):
            return torch.relu(super().forward(x))
        y: Tensor = self._fused(x, None)[0]
        return y

    def _can_fuse(self, *images: Tensor) -> bool:
        return all(map(_fits, images)) and (self.training or not torch.is_grad_enabled())

    def _fused(self, x: Tensor, also: Tensor | None) -> tuple[Tensor, Tensor]:
        kernels = _kernels()
        statistics = kernels.Statistics(
            self.weight, self.bias, self.running_mean, self.running_var, self.num_batches_tracked
        )
        if not self.training:
            y: Tensor = kernels.forward_remembered(x, also, statistics, self.eps)
            return y, y
        if self._arrived is None or self._arrived.device != x.device:
            self._arrived = kernels.counters(self.num_features, x.device)
        two: tuple[Tensor, Tensor] = _Fused.apply(  # type: ignore[no-untyped-call]
            x, also, *statistics, self._arrived, self.eps, self.momentum
        )
        return two


def meet_and_part(layer: nn.Module, x: Tensor, also: Tensor | None) -> tuple[Tensor, Tensor]:
    """Apply a `NormReLU`, or what stands for one, to x + also, and return the result twice, for two uses.

    It is the same as ``layer(x + also)``, but spares a GPU from writing and reading sums of images and of their
    gradients.

    Parameters
    ----------
    layer
        What to apply.
    x, also
        Images (B, C, H, W); None for no second summand.

    Examples
    --------
    >>> layer, x = NormReLU(3), torch.randn(4, 3, 2, 2)
    >>> first, second = meet_and_part(layer, x, x)
    >>> torch.equal(first, second), torch.equal(first, layer(2 * x))
    (True, True)
    """
    images = [x] if also is None else [x, also]
    if isinstance(layer, NormReLU) and layer._can_fuse(*images):  # noqa: SLF001 - of the same module
        return layer._fused(x, also)  # noqa: SLF001
    y: Tensor = layer(sum(images[1:], start=x))
    return y, y


def _fits(x: Tensor) -> bool:
    """Whether our kernels take it: images on a GPU, channels last, more than one value a channel."""
    return (
        x.is_cuda
        and x.is_contiguous(memory_format=torch.channels_last)
        and x.numel() > x.shape[1]
        and not torch.compiler.is_compiling()  # whoever compiles fuses by itself
        and has_triton()
    )


def _kernels() -> Any:
    """Import what needs Triton, which comes with PyTorch for GPUs."""
    from prune4rel.networks.norm_relu import launch_kernels  # noqa: PLC0415

    return launch_kernels


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        also: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        batches: Tensor,
        arrived: Tensor,
        eps: float,
        momentum: float,
    ) -> tuple[Tensor, Tensor]:
        kernels = _kernels()
        statistics = kernels.Statistics(weight, bias, running_mean, running_var, batches)
        y, whole, facts = kernels.forward(x, also, statistics, arrived, eps, momentum)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(whole, facts)
        ctx.arrived, ctx.two = arrived, also is not None
        return y, y.data  # the same memory, but a gradient of its own

    @staticmethod
    def backward(ctx: Any, *dys: Tensor | None) -> tuple[Tensor | None, ...]:
        whole, facts = ctx.saved_tensors
        pulls = [dy.contiguous(memory_format=torch.channels_last) for dy in dys if dy is not None]
        if not pulls:
            return (None,) * 10
        second = pulls[1] if len(pulls) == 2 else None
        dx, dweight, dbias = _kernels().backward(whole, pulls[0], second, facts, ctx.arrived)
        return dx, dx if ctx.two else None, dweight, dbias, None, None, None, None, None, None
