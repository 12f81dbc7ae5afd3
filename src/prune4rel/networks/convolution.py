"""A convolution that does not keep the backward pass waiting for the gradient of its weights."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from prune4rel.networks.aside import Aside, offered


def kind_of(x: Tensor) -> torch.dtype:
    """In which precision a layer computes x.

    >>> with torch.autocast("cpu", torch.bfloat16):
    ...     kind_of(torch.zeros(1))
    torch.bfloat16
    """
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


class Convolution(nn.Conv2d):
    """A convolution as any other; where work `aside` is offered, the gradient of its weights is found there.

    The backward pass needs the gradient of the input to go on, that of the weights only at its end.

    Examples
    --------
    >>> Convolution(3, 16, 3, padding=1)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 16, 8, 8])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Convolve images (B, C, H, W)."""
        aside = None if torch.compiler.is_compiling() else offered()
        if aside is None or not self._can_be_split(x):
            return super().forward(x)
        aside.uses[id(self.weight)] += 1
        rest = (self.stride, self.padding, self.dilation, self.groups)
        y: Tensor = _Convolved.apply(x, self.weight, rest, aside)  # type: ignore[no-untyped-call]
        return y

    def _can_be_split(self, x: Tensor) -> bool:
        """Whether what our backward pass returns is the gradient, and nobody reads it before the pass has ended."""
        weight = self.weight
        return (
            torch.is_grad_enabled()
            and weight.requires_grad
            and weight.is_leaf
            and weight.grad is None
            and x.dtype == weight.dtype == kind_of(x)
            and self.bias is None
            and self.padding_mode == "zeros"
            and not isinstance(self.padding, str)
        )


class _Convolved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, rest: tuple[Any, ...], aside: Aside) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.rest, ctx.aside, ctx.name = rest, aside, id(weight)
        return functional.conv2d(x, weight, None, *rest)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor, None, None]:
        x, weight = ctx.saved_tensors
        aside: Aside = ctx.aside
        stride, padding, dilation, groups = ctx.rest

        def gradient(*, of_weight: bool) -> Tensor:
            wanted = [not of_weight, of_weight, False]
            rest = (stride, padding, dilation, False, [0, 0], groups)  # neither transposed nor with extra rows
            found = torch.ops.aten.convolution_backward(dy, x, weight, None, *rest, wanted)
            one: Tensor = found[1 if of_weight else 0]
            return one

        aside.make_room()
        dx = gradient(of_weight=False) if ctx.needs_input_grad[0] else None
        dweight = aside.begin(lambda: gradient(of_weight=True), x, dy)
        if aside.uses[ctx.name] > 1 or not _lie_alike(dweight, weight):
            aside.join()  # for it is added to another, or copied, at once
        return dx, dweight, None, None


def _lie_alike(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of the same shape lie in memory in the same order."""
    sides = zip(a.shape, a.stride(), b.stride(), strict=True)
    return all(one == other for size, one, other in sides if size > 1)
