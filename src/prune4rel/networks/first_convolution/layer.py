"""A convolution of images with few channels."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from prune4rel.machine import has_triton
from prune4rel.networks.convolution import kind_of

MOST_CHANNELS = 7
"""With more of them, a library does as well."""


class FirstConvolution(nn.Conv2d):
    """A convolution as any other, that is as fast as it can be on the three channels of an image.

    Tensor cores take channels by the eight: with fewer, libraries fill images up or do without. In half precision on a
    GPU, a 3x3 convolution padded by one is done by a kernel of our own.

    Examples
    --------
    >>> FirstConvolution(3, 16, 3, padding=1)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 16, 8, 8])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Convolve images (B, C, H, W)."""
        kind = kind_of(x)
        if not (kind.itemsize == 2 and self._fits(x)):
            return super().forward(x)
        images, weight = (one.to(kind, memory_format=torch.channels_last) for one in (x, self.weight))
        y: Tensor = _Convolved.apply(images, weight)  # type: ignore[no-untyped-call]
        return y

    def _fits(self, x: Tensor) -> bool:
        """Whether our kernel does what is asked for: images on a GPU, three by three, padded by one."""
        return (
            x.is_cuda
            and not x.requires_grad
            and self.bias is None
            and self.in_channels <= MOST_CHANNELS
            and (self.kernel_size, self.stride, self.padding, self.dilation) == ((3, 3), (1, 1), (1, 1), (1, 1))
            and (self.groups, self.padding_mode) == (1, "zeros")
            and not torch.compiler.is_compiling()
            and has_triton()
        )


class _Convolved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _kernels().convolve(x, weight)  # type: ignore[no-any-return]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[None, Tensor]:
        x, weight = ctx.saved_tensors
        return None, _kernels().gradient_of_weight(x, weight, dy.contiguous(memory_format=torch.channels_last))


def _kernels() -> Any:
    """Import what needs Triton, which comes with PyTorch for GPUs."""
    from prune4rel.networks.first_convolution import kernels  # noqa: PLC0415

    return kernels
