"""Gradient descent of all weights that have a rounded copy, as GPU kernels in Triton.

One launch reads the gradients as they are, in half precision, changes weights and momenta, and rounds the weights anew.
Apart, these take four launches, and move more than half as many bytes again.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

CHUNK, WARPS = 2048, 4
"""Numbers a program changes, and by how many warps."""

ALIGNED = 16
"""Bytes of which addresses have to be a multiple."""


@triton.jit
def _note(addresses, tensors):  # type: ignore[no-untyped-def]
    """Write down where tensors lie."""
    for k in tl.static_range(len(tensors)):
        tl.store(addresses + k, tensors[k].to(tl.int64))


@triton.jit
def _address(addresses, which):  # type: ignore[no-untyped-def]
    return tl.multiple_of(tl.load(addresses + which), 16)


@triton.jit  # type: ignore[untyped-decorator]
def _change(  # type: ignore[no-untyped-def]
    weights, momenta, rounded, gradients, i, inside, rate, momentum, decay, NESTEROV: tl.constexpr
):
    weight = tl.load(weights + i, mask=inside)
    gradient = tl.load(gradients + i, mask=inside).to(tl.float32) + decay * weight
    moved = momentum * tl.load(momenta + i, mask=inside) + gradient
    tl.store(momenta + i, moved, mask=inside)
    if NESTEROV:
        moved = gradient + momentum * moved
    weight -= rate * moved
    tl.store(weights + i, weight, mask=inside)
    tl.store(rounded + i, weight.to(tl.bfloat16), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _descend(  # type: ignore[no-untyped-def]
    weights,
    momenta,
    rounded,
    gradients,
    sizes,
    owners,
    begins,
    rate,
    momentum,
    decay,
    NESTEROV: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Change one chunk of one tensor; the first four are tables of addresses."""
    which = tl.load(owners + tl.program_id(0))
    begin = tl.multiple_of(tl.load(begins + tl.program_id(0)), CHUNK)
    size = tl.load(sizes + which)
    w = _address(weights, which).to(tl.pointer_type(tl.float32))
    m = _address(momenta, which).to(tl.pointer_type(tl.float32))
    r = _address(rounded, which).to(tl.pointer_type(tl.bfloat16))
    g = _address(gradients, which).to(tl.pointer_type(tl.bfloat16))
    lr = tl.load(rate)
    i = begin + tl.arange(0, CHUNK)
    if begin + CHUNK <= size:  # without a mask numbers are read and written several at a time
        _change(w, m, r, g, i, None, lr, momentum, decay, NESTEROV)
    else:
        _change(w, m, r, g, i, i < size, lr, momentum, decay, NESTEROV)


class Tables:
    """Where weights, their momenta and their rounded copies lie, and which program changes what.

    Parameters
    ----------
    weights, momenta
        float32, in memory without gaps, each pair in the same order.
    rounded
        bfloat16, likewise.
    """

    def __init__(self, weights: Sequence[Tensor], momenta: Sequence[Tensor], rounded: Sequence[Tensor]) -> None:
        device = weights[0].device
        self.kept = (tuple(weights), tuple(momenta), tuple(rounded))
        self.addresses = torch.tensor([[t.data_ptr() for t in kind] for kind in self.kept], device=device)
        sizes = [weight.numel() for weight in weights]
        places = [(k, begin) for k, size in enumerate(sizes) for begin in range(0, size, CHUNK)]
        self.sizes = torch.tensor(sizes, device=device)
        self.owners, self.begins = torch.tensor(places, device=device).T.contiguous()

    def descend(
        self, gradients: Sequence[Tensor], rate: Tensor, *, momentum: float, nesterov: bool, weight_decay: float
    ) -> None:
        """Change weights, momenta and rounded copies along bfloat16 gradients, by a rate () on the device."""
        of_gradients = torch.empty(len(gradients), dtype=torch.int64, device=rate.device)
        _note[(1,)](of_gradients, tuple(gradients))
        _descend[(len(self.owners),)](
            *self.addresses,
            of_gradients,
            self.sizes,
            self.owners,
            self.begins,
            rate,
            momentum,
            weight_decay,
            NESTEROV=nesterov,
            CHUNK=CHUNK,
            num_warps=WARPS,
        )


def fits(*tensors: Tensor) -> bool:
    """Whether tensors may be walked through side by side: one order, aligned, and a Triton that takes many."""
    one_order = all(_order(tensor) == _order(tensors[0]) for tensor in tensors)
    return one_order and all(tensor.data_ptr() % ALIGNED == 0 for tensor in tensors) and hasattr(tl, "tuple")


def _order(tensor: Tensor) -> list[tuple[int, int]]:
    """Sizes and strides of all axes along which there is more than one number."""
    return [(n, step) for n, step in zip(tensor.shape, tensor.stride(), strict=True) if n > 1]
