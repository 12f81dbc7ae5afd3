"""Batches on the CPU: block by block, one thread a block."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from prune4rel.augment.draws import Draws
from prune4rel.augment.pixels import check_images
from prune4rel.blocks import rows_per_block, spans
from prune4rel.errors import InputError
from prune4rel.machine import threads

FEWEST = 64 * 3 * 32 * 32
"""Fewer numbers than this are not worth a thread of their own."""

Parameters = TypeVar("Parameters", bound=Draws)


def block_by_block(
    fill: Callable[[Tensor, Tensor, Parameters], None], images: Tensor, drawn: Parameters, dtype: torch.dtype
) -> Tensor:
    """(B, C, H, W) numbers, from a function that treats every one of (B, C, H, W) images by itself.

    An accelerator takes the whole batch at once. On the CPU the function sees blocks of examples whose intermediate
    results stay in the caches, one in each thread. PyTorch's own threads would meet after each of its many short
    steps, and all wait for the slowest.

    Parameters
    ----------
    fill
        Takes (b, C, H, W) numbers of type `dtype` to write to, as many images, and their parameters.
    """
    check_images(images)
    if len(drawn) != len(images):
        raise InputError(f"parameters of {len(drawn)} examples were given for {len(images)} images")
    # convolutions on a GPU want channels last
    order = torch.channels_last if images.is_cuda else torch.contiguous_format
    values = torch.empty(images.shape, dtype=dtype, device=images.device, memory_format=order)
    numbers = max(1, images[:1].numel())
    size = min(rows_per_block(numbers), max(-(-FEWEST // numbers), -(-len(images) // threads())))
    inference = torch.is_inference_mode_enabled()

    def fill_block(span: tuple[int, int]) -> None:
        block = slice(*span)
        with torch.inference_mode(inference):
            fill(values[block], images[block], drawn[block])

    if images.device.type != "cpu":
        fill(values, images, drawn)
    elif len(images) <= size:
        with _libraries().limit(limits=1, user_api="openmp"):
            fill(values, images, drawn)
    else:
        with ThreadPoolExecutor(threads(), initializer=_compute_alone) as pool:
            list(pool.map(fill_block, spans(len(images), size)))
    return values


def _compute_alone() -> None:
    """Hold PyTorch to this one thread, in this thread only."""
    torch.get_num_threads()  # settles this thread's number first, which would undo the limit later
    _libraries().limit(limits=1, user_api="openmp")


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
