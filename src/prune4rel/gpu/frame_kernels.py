"""A random crop after padding with black, a mirror image and normalising in one go, as a GPU kernel in Triton."""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

BLOCK, WARPS = 1024, 4
"""Numbers a program writes, and by how many warps."""


@triton.jit  # type: ignore[untyped-decorator]
def _frame(  # type: ignore[no-untyped-def]
    images,
    places,
    levels,
    values,
    count,
    height,
    width,
    of_example,
    of_channel,
    of_row,
    of_column,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write a block of one example's numbers, channels fastest, wherever the pixel of the image comes from."""
    example = tl.program_id(0).to(tl.int64)
    top = tl.load(places + example)
    left = tl.load(places + count + example)
    mirrored = tl.load(places + 2 * count + example) != 0
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    c, pixel = i % CHANNELS, i // CHANNELS
    x, y = pixel % width, pixel // width
    known = y < height
    from_x = tl.where(mirrored, width - 1 - x, x) + left
    from_y = y + top
    shown = known & (from_x >= 0) & (from_x < width) & (from_y >= 0) & (from_y < height)
    level = tl.load(images + ((example * CHANNELS + c) * height + from_y) * width + from_x, mask=shown, other=0)
    number = tl.load(levels + c * 256 + level.to(tl.int32), mask=known)
    tl.store(values + example * of_example + c * of_channel + y * of_row + x * of_column, number, mask=known)


def frame(values: Tensor, images: Tensor, places: Tensor, levels: Tensor) -> None:
    """Write into values (B, C, H, W), in whatever order they lie.

    Parameters
    ----------
    images
        (B, C, H, W) uint8, contiguous.
    places
        (3, B) int64: where the frame's upper left corner lies in the image, row and column, below 0 where that is
        black already, and whether the frame is mirrored.
    levels
        (C, 256) what becomes of each level, in the type of the values.
    """
    count, channels, height, width = images.shape
    grid: Any = (count, triton.cdiv(channels * height * width, BLOCK))
    _frame[grid](
        images,
        places,
        levels,
        values,
        count,
        height,
        width,
        *values.stride(),
        CHANNELS=channels,
        BLOCK=BLOCK,
        num_warps=WARPS,
    )
