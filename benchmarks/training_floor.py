"""What a training step cannot be faster than, on this device, and the clock that all of it is measured by."""

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_each(work: Iterator[Any], device: torch.device, skip: int, count: int) -> float:
    """Mean seconds of `count` items of some work, after `skip` of them."""
    for _ in range(skip):
        next(work)
    wait(device)
    begin = time.perf_counter()
    for _ in range(count):
        next(work)
    wait(device)
    return (time.perf_counter() - begin) / count


def floor(network: nn.Module, x: Tensor, *, matrix: int) -> tuple[float, float, str]:
    """Seconds that forward and backward pass of images x need for arithmetic, and for bytes; and the rates in words.

    Rates are measured, that of arithmetic by a product of square matrices with `matrix` rows.
    """
    device = x.device
    written = 0

    def watch(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        nonlocal written
        written += output.numel() * 2  # bfloat16

    layers = [module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(watch) for layer in layers]  # what lies between can be fused with them
    with FlopCounterMode(display=False) as counter:
        network(x).sum().backward()
    for hook in hooks:
        hook.remove()
    weights = sum(p.numel() for p in network.parameters()) * 4
    # activations: written and read forward, read backward, their gradients written and read; weights: read twice,
    # gradients and momenta written and read, written
    moved = 5 * written + 7 * weights
    flops, rate, speed = counter.get_total_flops(), matmul_rate(matrix, device), copy_rate(device)
    said = f"{flops / 1e9:,.2f} GFLOP at {rate / 1e12:,.3f} TFLOP/s; {moved / 1e9:,.3f} GB at {speed / 1e9:,.0f} GB/s"
    return flops / rate, moved / speed, said


def matmul_rate(n: int, device: torch.device) -> float:
    """Measured floating-point operations a second of a product, in bfloat16 on a GPU."""
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    a, b = (torch.randn(n, n, device=device, dtype=kind) for _ in range(2))

    def products() -> Iterator[Tensor]:
        while True:
            yield a @ b

    return 2 * n**3 / seconds_each(products(), device, skip=3, count=10)


def copy_rate(device: torch.device) -> float:
    """Measured bytes a second, read and written, of a copy."""
    source = torch.empty(2**30 if device.type == "cuda" else 2**27, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copies() -> Iterator[Tensor]:
        while True:
            yield target.copy_(source)

    return 2 * source.numel() / seconds_each(copies(), device, skip=2, count=5)
