"""Convolutions of images with few channels, as GPU kernels in Triton.

The numbers around a place, 3 x 3 of a few channels each, are gathered as they are multiplied, so that images are read
as they lie; a library fills them up to channels that its products take.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

COLUMNS = 64
"""Channels of the result that a program makes."""

ROWS, BLOCKS, WARPS = 128, 4, 4
"""Places a program works on at a time, how many times it does so, and by how many warps."""

ROWS_BACK, PROGRAMS_BACK, WARPS_BACK = 256, 264, 8
"""Places at a time, and programs over which all places are spread, of the gradient."""


@triton.jit  # type: ignore[untyped-decorator]
def _gather(x, row, places, height, width, CHANNELS: tl.constexpr, TAPS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Numbers around places, (rows, TAPS) in the order of weights; zeros beyond the border and behind the taps."""
    tap = tl.arange(0, TAPS)
    down, right = tap // CHANNELS // 3 - 1, tap // CHANNELS % 3 - 1
    y, z = (row // width % height)[:, None] + down[None, :], (row % width)[:, None] + right[None, :]
    inside = (y >= 0) & (y < height) & (z >= 0) & (z < width)
    inside &= (row < places)[:, None] & (tap < 9 * CHANNELS)[None, :]
    where = (row[:, None] + (down * width + right)[None, :]) * CHANNELS + (tap % CHANNELS)[None, :]
    return tl.load(x + where, mask=inside, other=0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _convolve(  # type: ignore[no-untyped-def]
    x,
    weight,
    y,
    places,
    height,
    width,
    out,
    CHANNELS: tl.constexpr,
    TAPS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCKS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    tap, o = tl.arange(0, TAPS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    known = (tap < 9 * CHANNELS)[:, None] & (o < out)[None, :]
    weights = tl.load(weight + o[None, :] * (9 * CHANNELS) + tap[:, None], mask=known, other=0.0)
    for block in range(BLOCKS):
        row = (tl.program_id(0) * BLOCKS + block) * ROWS + tl.arange(0, ROWS)
        found = tl.dot(_gather(x, row, places, height, width, CHANNELS, TAPS), weights)
        inside = (row < places)[:, None] & (o < out)[None, :]
        tl.store(y + row.to(tl.int64)[:, None] * out + o[None, :], found.to(y.dtype.element_ty), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _pull(  # type: ignore[no-untyped-def]
    x,
    dy,
    parts,
    places,
    height,
    width,
    out,
    CHANNELS: tl.constexpr,
    TAPS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    tap, o = tl.arange(0, TAPS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((TAPS, COLUMNS), dtype=tl.float32)
    for start in range(tl.program_id(0) * ROWS, places, tl.num_programs(0) * ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < places)[:, None] & (o < out)[None, :]
        pulls = tl.load(dy + row.to(tl.int64)[:, None] * out + o[None, :], mask=inside, other=0.0)
        total = tl.dot(tl.trans(_gather(x, row, places, height, width, CHANNELS, TAPS)), pulls, total)
    where = (tl.program_id(0) * TAPS + tap[:, None]) * out + o[None, :]
    tl.store(parts + where, total, mask=(o < out)[None, :])


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve images (B, C, H, W) with weights (O, C, 3, 3), padded by one; all with channels last."""
    batch, channels, height, width = x.shape
    out, places = len(weight), batch * height * width
    y = torch.empty((batch, out, height, width), dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
    _convolve[(triton.cdiv(places, ROWS * BLOCKS), triton.cdiv(out, COLUMNS))](
        x,
        weight,
        y,
        places,
        height,
        width,
        out,
        CHANNELS=channels,
        TAPS=_taps(channels),
        ROWS=ROWS,
        BLOCKS=BLOCKS,
        COLUMNS=COLUMNS,
        num_warps=WARPS,
    )
    return y


def gradient_of_weight(x: Tensor, weight: Tensor, dy: Tensor) -> Tensor:
    """Return the gradient of the weights (O, C, 3, 3) from that of the result, (B, O, H, W), all with channels last."""
    batch, channels, height, width = x.shape
    out, places, taps = len(weight), batch * height * width, _taps(channels)
    programs = min(PROGRAMS_BACK, triton.cdiv(places, ROWS_BACK))
    parts = torch.empty((programs, taps, out), dtype=torch.float32, device=x.device)
    _pull[(programs, triton.cdiv(out, COLUMNS))](
        x,
        dy,
        parts,
        places,
        height,
        width,
        out,
        CHANNELS=channels,
        TAPS=taps,
        ROWS=ROWS_BACK,
        COLUMNS=COLUMNS,
        num_warps=WARPS_BACK,
    )
    whole = parts.sum(0)[: 9 * channels].T.to(weight.dtype, memory_format=torch.contiguous_format)
    return whole.view(out, 3, 3, channels).permute(0, 3, 1, 2)


def _taps(channels: int) -> int:
    """Numbers around a place, filled up to what a product takes."""
    return max(16, int(triton.next_power_of_2(9 * channels)))
