"""Images as the augmentations take them: grey levels, and numbers for a network; on the CPU one thread a block."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from prune4rel.augment.draws import Draws
from prune4rel.blocks import rows_per_block, spans
from prune4rel.errors import InputError
from prune4rel.machine import send, threads


def check_shape(shape: Sequence[int]) -> None:
    """Refuse what is not the shape of a batch of grey or RGB images."""
    if len(shape) != 4 or shape[1] not in (1, 3):
        raise InputError(f"images must have the shape (B, 3, H, W), or (B, 1, H, W) if grey, not {tuple(shape)}")


def check_images(images: Tensor) -> None:
    """Refuse what is not a batch of grey or RGB images."""
    check_shape(images.shape)
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise InputError(f"images must be uint8 (0 to 255) or floating point (0 to 1), not {images.dtype}")


def to_levels(images: Tensor) -> Tensor:
    """(B, C, H, W) uint8 grey levels; floating-point images hold levels / 255 and go to the nearest one.

    >>> to_levels(torch.tensor([0.0, 0.5, 1.0]))
    tensor([  0, 128, 255], dtype=torch.uint8)
    """
    if images.dtype == torch.uint8:
        return images
    return truncate(images.float().mul(255.0).round_())


def from_levels(levels: Tensor, like: Tensor) -> Tensor:
    """Grey levels in the type of `like`: uint8 as they are, floating point divided by 255.

    >>> from_levels(torch.tensor([0, 255], dtype=torch.uint8), like=torch.zeros(1, dtype=torch.float16))
    tensor([0., 1.], dtype=torch.float16)
    """
    if like.dtype == torch.uint8:
        return levels
    values = levels.to(torch.promote_types(like.dtype, torch.float32))
    divisor_that_cuda_does_not_invert = values.new_full((), 255.0)
    return values.div_(divisor_that_cuda_does_not_invert).to(like.dtype)


def truncate(values: Tensor) -> Tensor:
    """Clip floats to 0 to 255, in place, and drop what is behind the point: uint8.

    >>> truncate(torch.tensor([-3.0, 1.9, 300.0]))
    tensor([  0,   1, 255], dtype=torch.uint8)
    """
    by_way_of_int32_is_faster_on_the_cpu = values.clamp_(0.0, 255.0).to(torch.int32)
    return by_way_of_int32_is_faster_on_the_cpu.to(torch.uint8)


def per_example(values: Tensor | float, images: Tensor) -> Tensor:
    """(B,) float64 numbers on the CPU, where parameters live, from one number each or one for all."""
    numbers = torch.as_tensor(values, dtype=torch.float64, device="cpu")
    if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) != len(images)):
        raise InputError(
            f"expected one number, or one for each of the {len(images)} images, not {tuple(numbers.shape)}"
        )
    return numbers.expand(len(images))


def on_device_of(parameters: Tensor, images: Tensor) -> Tensor:
    """Parameters on the images' device, without waiting for it."""
    return send(parameters, images.device)


def normalise(
    images: Tensor, mean: Sequence[float], std: Sequence[float], *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """(B, C, H, W) numbers for a network: channels shifted and scaled to mean 0 and standard deviation 1.

    Parameters
    ----------
    images
        (B, C, H, W) uint8, or floating point in 0 to 1.
    mean, std
        One number a channel, of images in 0 to 1.
    dtype
        Type of the result; computed in float32.

    Examples
    --------
    >>> images = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1)
    >>> normalise(images, [0.5], [0.25]).flatten()
    tensor([-2.,  2.])
    """
    return normalise_into(torch.empty(images.shape, dtype=dtype, device=images.device), images, mean, std)


def normalise_into(out: Tensor, images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Write what `normalise` returns into `out`, whose type it takes."""
    check_images(images)
    if not len(mean) == len(std) == images.shape[1]:
        raise InputError(f"{len(mean)} means and {len(std)} deviations were given for {images.shape[1]} channels")
    unit = 255.0 if images.dtype == torch.uint8 else 1.0
    scale = [1.0 / (unit * deviation) for deviation in std]
    shift = [-centre / deviation for centre, deviation in zip(mean, std, strict=True)]
    values = out.copy_(images) if out.dtype == torch.float32 else images.to(torch.float32, copy=True)
    values.mul_(_per_channel(scale, images)).add_(_per_channel(shift, images))
    return values if values is out else out.copy_(values)


def _per_channel(numbers: Sequence[float], images: Tensor) -> Tensor:
    return on_device_of(torch.tensor(numbers, dtype=torch.float32, device="cpu"), images).view(-1, 1, 1)


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
