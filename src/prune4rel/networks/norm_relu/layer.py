"""Batch normalisation followed by ReLU."""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn


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

    def forward(self, x: Tensor) -> Tensor:
        """Normalise and activate x (B, C, H, W)."""
        if not _can_be_fused(x) or (torch.is_grad_enabled() and not self.training):
            return torch.relu(super().forward(x))
        y: Tensor
        if self.training:
            y = _Fused.apply(  # type: ignore[no-untyped-call]
                x,
                self.weight,
                self.bias,
                self.running_mean,
                self.running_var,
                self.num_batches_tracked,
                self.eps,
                self.momentum,
            )
        else:
            y = _kernels().forward_remembered(x, self.weight, self.bias, self.running_mean, self.running_var, self.eps)
        return y


def _can_be_fused(x: Tensor) -> bool:
    """Whether our kernels take it: images on a GPU, channels last, more than one value a channel."""
    return (
        x.is_cuda
        and x.is_contiguous(memory_format=torch.channels_last)
        and x.numel() > x.shape[1]
        and not torch.compiler.is_compiling()  # whoever compiles fuses by itself
        and _has_triton()
    )


def _kernels() -> Any:
    """Import what needs Triton, which comes with PyTorch for GPUs."""
    from prune4rel.networks.norm_relu import kernels  # noqa: PLC0415

    return kernels


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        batches: Tensor,
        eps: float,
        momentum: float,
    ) -> Tensor:
        y: Tensor
        y, facts = _kernels().forward(x, weight, bias, running_mean, running_var, batches, eps, momentum)
        ctx.save_for_backward(x, facts)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, facts = ctx.saved_tensors
        dx, dweight, dbias = _kernels().backward(x, dy.contiguous(memory_format=torch.channels_last), facts)
        return dx, dweight, dbias, None, None, None, None, None
