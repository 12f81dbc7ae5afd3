"""The mean of what a network sees in an image."""

from typing import Any

import torch
from torch import Tensor


def mean_over_image(x: Tensor, kind: torch.dtype) -> Tensor:
    """Return the mean over all places of images (B, C, H, W), added up in a precision of choice, (B, C).

    Its gradient is written once, in the order in which x lies in memory; PyTorch's own is divided, rounded and put in
    order in steps, each of which writes all of it.

    Examples
    --------
    >>> mean_over_image(torch.ones(2, 3, 4, 4, dtype=torch.bfloat16), torch.float32).shape
    torch.Size([2, 3])
    """
    if torch.compiler.is_compiling():  # whoever compiles fuses by itself
        return x.mean((2, 3), dtype=kind)
    mean: Tensor = _Mean.apply(x, kind)  # type: ignore[no-untyped-call]
    return mean


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kind: torch.dtype) -> Tensor:
        ctx.shape, ctx.kind = x.shape, x.dtype
        last = x.is_contiguous(memory_format=torch.channels_last)
        ctx.order = torch.channels_last if last else torch.contiguous_format
        return x.mean((2, 3), dtype=kind)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        places = ctx.shape[2] * ctx.shape[3]
        share = (dy / places).to(ctx.kind)[:, :, None, None]
        return share.expand(ctx.shape).contiguous(memory_format=ctx.order), None
