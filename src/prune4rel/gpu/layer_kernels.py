"""Batch normalisation and ReLU in one go, and its gradient, as GPU kernels in Triton.

Images lie with their channels last, as a matrix of M places by C channels. Sums over places are taken in parts, which
the program that ends last puts together in a fixed order: the same bits every time. Programs that add up begin at the
bottom, where what was written last still lies in the cache, and those that change numbers at the top, likewise. Where
the GPU can OVERLAP kernels, those that change numbers read them before the sums are there, and wait for these then.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import extra

from prune4rel.gpu.layers import cut_for_changes, cut_for_sums

_on_cuda: Any = getattr(extra, "cuda", None)  # not in every Triton, nor are the two below
let_next_begin: Any = getattr(_on_cuda, "gdc_launch_dependents", None)
wait_for_last: Any = getattr(_on_cuda, "gdc_wait", None)


@triton.jit  # type: ignore[untyped-decorator]
def _tile(number, places, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where in memory a tile of this program's channels lies."""
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    r = number * ROWS + tl.arange(0, ROWS)
    inside = (r < places)[:, None] & (c < channels)[None, :]
    return r[:, None].to(tl.int64) * channels + c[None, :], inside


@triton.jit  # type: ignore[untyped-decorator]
def _read(first, second, where, inside, TWO: tl.constexpr):  # type: ignore[no-untyped-def]
    """Numbers in single precision: those of one matrix, or the sums of two."""
    values = tl.load(first + where, mask=inside, other=0.0).to(tl.float32)
    if TWO:
        values += tl.load(second + where, mask=inside, other=0.0).to(tl.float32)
    return values


@triton.jit
def _hand_in(parts, arrived, c, channels, first, second):  # type: ignore[no-untyped-def]
    """Write this program's two sums down; tell whether those of all others are there, too."""
    part, of = tl.program_id(0), tl.num_programs(0)
    to = part * channels + c
    tl.store(parts + to, first, mask=c < channels)
    tl.store(parts + of * channels + to, second, mask=c < channels)
    tl.debug_barrier()  # all threads have written before one of them says so
    last = tl.atomic_add(arrived + tl.program_id(1), 1, sem="acq_rel") == of - 1
    if last:
        tl.store(arrived + tl.program_id(1), 0)
    return last


@triton.jit  # type: ignore[untyped-decorator]
def _totals(parts, c, channels, PARTS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Put the parts of two sums together."""
    of, p = tl.num_programs(0), tl.arange(0, PARTS)
    inside = (p < of)[:, None] & (c < channels)[None, :]
    where = p[:, None] * channels + c[None, :]
    first = tl.load(parts + where, mask=inside, other=0.0, cache_modifier=".cg")
    second = tl.load(parts + of * channels + where, mask=inside, other=0.0, cache_modifier=".cg")
    return tl.sum(first, 0), tl.sum(second, 0)


@triton.jit  # type: ignore[untyped-decorator]
def moments(  # type: ignore[no-untyped-def]
    x,
    also,
    whole,
    parts,
    arrived,
    weight,
    bias,
    running_mean,
    running_var,
    batches,
    facts,
    places,
    channels,
    eps,
    momentum,
    TWO: tl.constexpr,
    OVERLAP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Find mean, 1 / deviation, and the factor and summand that normalise; remember a share of them.

    Where there are two matrices, it is their sum that counts, and is written down. Added up are distances from the
    first value of each channel, and their squares: near the mean nothing cancels.
    """
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    known = c < channels
    origin = _read(x, also, c, known, TWO)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    squares = tl.zeros((ROWS, COLUMNS), tl.float32)
    tiles = tl.cdiv(places, ROWS)
    for k in range(tl.program_id(0), tiles, tl.num_programs(0)):
        where, inside = _tile(tiles - 1 - k, places, channels, ROWS, COLUMNS)
        values = _read(x, also, where, inside, TWO)
        if TWO:
            rounded = values.to(whole.dtype.element_ty)
            tl.store(whole + where, rounded, mask=inside)
            values = rounded.to(tl.float32)
        away = tl.where(inside, values - origin[None, :], 0.0)
        sums += away
        squares += away * away
    if OVERLAP:
        let_next_begin()
    if _hand_in(parts, arrived, c, channels, tl.sum(sums, 0), tl.sum(squares, 0)):
        total, total_of_squares = _totals(parts, c, channels, PARTS)
        count = places.to(tl.float32)
        away = total / count
        mean = origin + away
        variance = tl.maximum(total_of_squares / count - away * away, 0.0)
        inverse = 1.0 / tl.sqrt(variance + eps)
        factor = tl.load(weight + c, mask=known, other=0.0) * inverse
        tl.store(facts + c, mean, mask=known)
        tl.store(facts + channels + c, inverse, mask=known)
        tl.store(facts + 2 * channels + c, factor, mask=known)
        tl.store(facts + 3 * channels + c, tl.load(bias + c, mask=known, other=0.0) - mean * factor, mask=known)
        old_mean = tl.load(running_mean + c, mask=known, other=0.0)
        old_var = tl.load(running_var + c, mask=known, other=0.0)
        unbiased = variance * (count / (count - 1.0))
        tl.store(running_mean + c, old_mean + momentum * (mean - old_mean), mask=known)
        tl.store(running_var + c, old_var + momentum * (unbiased - old_var), mask=known)
        if tl.program_id(1) == 0:
            tl.store(batches, tl.load(batches) + 1)


@triton.jit  # type: ignore[untyped-decorator]
def apply(  # type: ignore[no-untyped-def]
    x,
    facts,
    y,
    places,
    channels,
    FRESH: tl.constexpr,
    OVERLAP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Normalise by the facts that `moments` found, and apply ReLU; x is FRESH where `moments` has written it, too."""
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    where, inside = _tile(tl.program_id(0), places, channels, ROWS, COLUMNS)
    if OVERLAP and FRESH:
        wait_for_last()
    values = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    if OVERLAP and not FRESH:
        wait_for_last()
    factor = tl.load(facts + 2 * channels + c, mask=c < channels, other=0.0)
    summand = tl.load(facts + 3 * channels + c, mask=c < channels, other=0.0)
    tl.store(y + where, tl.maximum(values * factor[None, :] + summand[None, :], 0.0), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def apply_remembered(  # type: ignore[no-untyped-def]
    x,
    also,
    weight,
    bias,
    running_mean,
    running_var,
    y,
    places,
    channels,
    eps,
    TWO: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Normalise by what is remembered, and apply ReLU."""
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    where, inside = _tile(tl.program_id(0), places, channels, ROWS, COLUMNS)
    known = c < channels
    variance = tl.load(running_var + c, mask=known, other=1.0)
    factor = tl.load(weight + c, mask=known, other=0.0) / tl.sqrt(variance + eps)
    summand = tl.load(bias + c, mask=known, other=0.0) - tl.load(running_mean + c, mask=known, other=0.0) * factor
    values = _read(x, also, where, inside, TWO)
    tl.store(y + where, tl.maximum(values * factor[None, :] + summand[None, :], 0.0), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def pulls(  # type: ignore[no-untyped-def]
    x,
    dy,
    dy_too,
    facts,
    parts,
    arrived,
    gradients,
    places,
    channels,
    TWO: tl.constexpr,
    OVERLAP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Find the gradients of weight and bias, and what the gradient of x takes of x and of 1.

    Added up are the gradient behind the ReLU, and that times the distance from the mean.
    """
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    known = c < channels
    mean = tl.load(facts + c, mask=known, other=0.0)
    factor = tl.load(facts + 2 * channels + c, mask=known, other=0.0)
    summand = tl.load(facts + 3 * channels + c, mask=known, other=0.0)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    sums_along = tl.zeros((ROWS, COLUMNS), tl.float32)
    tiles = tl.cdiv(places, ROWS)
    for k in range(tl.program_id(0), tiles, tl.num_programs(0)):
        where, inside = _tile(tiles - 1 - k, places, channels, ROWS, COLUMNS)
        values = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
        pull = _read(dy, dy_too, where, inside, TWO)
        pull = tl.where(values * factor[None, :] + summand[None, :] > 0.0, pull, 0.0)
        sums += pull
        sums_along += pull * (values - mean[None, :])
    if OVERLAP:
        let_next_begin()
    if _hand_in(parts, arrived, c, channels, tl.sum(sums, 0), tl.sum(sums_along, 0)):
        total, along = _totals(parts, c, channels, PARTS)
        inverse = tl.load(facts + channels + c, mask=known, other=0.0)
        count = places.to(tl.float32)
        of_x = -factor * inverse * inverse * along / count
        tl.store(gradients + c, along * inverse, mask=known)
        tl.store(gradients + channels + c, total, mask=known)
        tl.store(gradients + 2 * channels + c, of_x, mask=known)
        tl.store(gradients + 3 * channels + c, -factor * total / count - of_x * mean, mask=known)


@triton.jit  # type: ignore[untyped-decorator]
def send_back(  # type: ignore[no-untyped-def]
    x,
    dy,
    dy_too,
    facts,
    gradients,
    dx,
    places,
    channels,
    TWO: tl.constexpr,
    OVERLAP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Find the gradient of what was normalised from what `pulls` found."""
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    where, inside = _tile(tl.program_id(0), places, channels, ROWS, COLUMNS)
    factor = tl.load(facts + 2 * channels + c, mask=c < channels, other=0.0)
    summand = tl.load(facts + 3 * channels + c, mask=c < channels, other=0.0)
    values = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    pull = _read(dy, dy_too, where, inside, TWO)
    if OVERLAP:
        wait_for_last()
    of_x = tl.load(gradients + 2 * channels + c, mask=c < channels, other=0.0)
    of_one = tl.load(gradients + 3 * channels + c, mask=c < channels, other=0.0)
    pull = tl.where(values * factor[None, :] + summand[None, :] > 0.0, pull, 0.0)
    result = pull * factor[None, :] + values * of_x[None, :] + of_one[None, :]
    tl.store(dx + where, result, mask=inside)


def counters(channels: int, device: torch.device) -> Tensor:
    """Return zeros for `norm_relu` and `norm_relu_gradients`, in turn; zeros again when they are done."""
    return torch.zeros(cut_for_sums(1, channels).across, dtype=torch.int32, device=device)


def _begins_early(*, overlap: bool) -> dict[str, bool]:
    """Return what a kernel is told that begins before the last one has ended; an older Triton does not know it."""
    return {"OVERLAP": True, "launch_pdl": True} if overlap else {"OVERLAP": False}


@cache
def can_overlap(device: torch.device) -> bool:
    """Whether a kernel may begin before the one it waits for has ended: from Hopper on."""
    known = wait_for_last is not None and torch.version.hip is None
    return known and torch.cuda.get_device_capability(device)[0] >= 9


class Statistics(NamedTuple):
    """The weights (C,) of a layer, and what it remembers: running mean and variance (C,), number of batches ()."""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor
    batches: Tensor


def norm_relu(
    x: Tensor, also: Tensor | None, layer: Statistics, arrived: Tensor, eps: float, momentum: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise x, or x + also, and apply ReLU; move the running statistics, count the batch.

    Returns
    -------
    tuple
        The result, and for `norm_relu_gradients` what was normalised and facts (4, C).
    """
    places, channels = x.numel() // x.shape[1], x.shape[1]
    adding, changing = cut_for_sums(places, channels), cut_for_changes(places, channels)
    parts = torch.empty((2, adding.parts, channels), dtype=torch.float32, device=x.device)
    facts = torch.empty((4, channels), dtype=torch.float32, device=x.device)
    whole = x if also is None else torch.empty_like(x)
    y = torch.empty_like(x)
    overlap, two = can_overlap(x.device), also is not None
    moments[(adding.parts, adding.across)](
        x,
        x if also is None else also,
        whole,
        parts,
        arrived,
        *layer,
        facts,
        places,
        channels,
        eps,
        momentum,
        TWO=two,
        OVERLAP=overlap,
        **adding.sizes_of_sums,
    )
    apply[(changing.down, changing.across)](
        whole, facts, y, places, channels, FRESH=two, **_begins_early(overlap=overlap), **changing.sizes
    )
    return y, whole, facts


def norm_relu_remembered(x: Tensor, also: Tensor | None, layer: Statistics, eps: float) -> Tensor:
    """Return relu(x, or x + also, normalised by the running statistics)."""
    places, channels = x.numel() // x.shape[1], x.shape[1]
    changing = cut_for_changes(places, channels)
    y = torch.empty_like(x)
    apply_remembered[(changing.down, changing.across)](
        x,
        x if also is None else also,
        *layer[:-1],
        y,
        places,
        channels,
        eps,
        TWO=also is not None,
        **changing.sizes,
    )
    return y


def norm_relu_gradients(
    x: Tensor, dy: Tensor, dy_too: Tensor | None, facts: Tensor, arrived: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of what was normalised, of weight and of bias, from that of the result or its two parts."""
    places, channels = x.numel() // x.shape[1], x.shape[1]
    adding, changing = cut_for_sums(places, channels), cut_for_changes(places, channels)
    parts = torch.empty((2, adding.parts, channels), dtype=torch.float32, device=x.device)
    gradients = torch.empty((4, channels), dtype=torch.float32, device=x.device)
    dx = torch.empty_like(x)
    overlap, two = can_overlap(x.device), dy_too is not None
    given = (x, dy, dy if dy_too is None else dy_too, facts)
    pulls[(adding.parts, adding.across)](
        *given, parts, arrived, gradients, places, channels, TWO=two, OVERLAP=overlap, **adding.sizes_of_sums
    )
    send_back[(changing.down, changing.across)](
        *given, gradients, dx, places, channels, TWO=two, **_begins_early(overlap=overlap), **changing.sizes
    )
    return dx, gradients[0], gradients[1]


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
