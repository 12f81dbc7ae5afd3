"""Batch normalisation and ReLU in one go, and its gradient, as GPU kernels in Triton.

Images lie with their channels last, as a matrix of M places by C channels. Sums over places are taken in parts, which a
second kernel puts together in a fixed order: the same bits every time.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE, MOST_COLUMNS = 16384, 64
"""Numbers a program changes together, and in how many channels at most."""

TILE_OF_SUMS, MOST_COLUMNS_OF_SUMS, WARPS_OF_SUMS = 8192, 32, 4
"""Likewise for a program that adds up: it keeps as many sums in its registers. Found by trying, on an H200."""

MOST_PROGRAMS = 256
"""Programs that add up; about two for each multiprocessor of a large GPU."""

JOINED = 16
"""Channels whose parts a program puts together."""


class Cut(NamedTuple):
    """How a matrix is cut up: rows and columns of a tile, tiles from top to bottom and from left to right."""

    rows: int
    columns: int
    down: int
    across: int

    @property
    def parts(self) -> int:
        """How many programs share the places of a channel where they are added up."""
        return min(self.down, max(1, MOST_PROGRAMS // self.across))

    @property
    def joining(self) -> dict[str, int]:
        """What kernels that put the parts together have to know beforehand."""
        return {"PARTS": triton.next_power_of_2(self.parts), "COLUMNS": JOINED}

    def sizes(self, warps: int = 8) -> dict[str, int]:
        """Return what kernels have to know beforehand."""
        return {"ROWS": self.rows, "COLUMNS": self.columns, "num_warps": warps}


def cut(places: int, channels: int, tile: int, most_columns: int) -> Cut:
    """Cut a matrix of places by channels up.

    >>> cut(262144, 64, 8192, 32), cut(262144, 64, 8192, 32).parts
    (Cut(rows=256, columns=32, down=1024, across=2), 128)
    """
    columns = min(most_columns, triton.next_power_of_2(channels))
    rows = min(tile // columns, triton.next_power_of_2(places))
    return Cut(rows, columns, triton.cdiv(places, rows), triton.cdiv(channels, columns))


def cut_for_sums(places: int, channels: int) -> Cut:
    """Cut a matrix up that is added up."""
    return cut(places, channels, TILE_OF_SUMS, MOST_COLUMNS_OF_SUMS)


def cut_for_changes(places: int, channels: int) -> Cut:
    """Cut a matrix up that is changed number by number."""
    return cut(places, channels, TILE, MOST_COLUMNS)


@triton.jit  # type: ignore[untyped-decorator]
def _tile(begin, places, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    """Channels of this program, and where in memory its tile lies."""
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    r = begin + tl.arange(0, ROWS)
    inside = (r < places)[:, None] & (c < channels)[None, :]
    return c, r[:, None].to(tl.int64) * channels + c[None, :], inside


@triton.jit  # type: ignore[untyped-decorator]
def _moments(x, parts, places, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    """Add up distances from the first value of each channel, and their squares: near the mean nothing cancels."""
    part, of = tl.program_id(0), tl.num_programs(0)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    origin = tl.load(x + c, mask=c < channels, other=0.0).to(tl.float32)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    squares = tl.zeros((ROWS, COLUMNS), tl.float32)
    for begin in range(part * ROWS, places, of * ROWS):
        c, where, inside = _tile(begin, places, channels, ROWS, COLUMNS)
        values = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
        away = tl.where(inside, values - origin[None, :], 0.0)
        sums += away
        squares += away * away
    to = part * channels + c
    tl.store(parts + to, tl.sum(sums, 0), mask=c < channels)
    tl.store(parts + of * channels + to, tl.sum(squares, 0), mask=c < channels)


@triton.jit  # type: ignore[untyped-decorator]
def _totals(parts, of, channels, PARTS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    """Put the parts of two sums together."""
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    p = tl.arange(0, PARTS)
    inside = (p < of)[:, None] & (c < channels)[None, :]
    where = p[:, None] * channels + c[None, :]
    first = tl.sum(tl.load(parts + where, mask=inside, other=0.0), 0)
    second = tl.sum(tl.load(parts + of * channels + where, mask=inside, other=0.0), 0)
    return c, first, second


@triton.jit  # type: ignore[untyped-decorator]
def _settle(  # type: ignore[no-untyped-def] # noqa: ANN202
    x,  # noqa: ANN001
    parts,  # noqa: ANN001
    of,  # noqa: ANN001
    weight,  # noqa: ANN001
    bias,  # noqa: ANN001
    running_mean,  # noqa: ANN001
    running_var,  # noqa: ANN001
    batches,  # noqa: ANN001
    facts,  # noqa: ANN001
    places,  # noqa: ANN001
    channels,  # noqa: ANN001
    eps,  # noqa: ANN001
    momentum,  # noqa: ANN001
    PARTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Find mean, 1 / deviation, and the factor and summand that normalise; remember a share of them."""
    c, total, squares = _totals(parts, of, channels, PARTS, COLUMNS)
    known = c < channels
    count = places.to(tl.float32)
    away = total / count
    mean = tl.load(x + c, mask=known, other=0.0).to(tl.float32) + away
    variance = tl.maximum(squares / count - away * away, 0.0)
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
    if tl.program_id(0) == 0:
        tl.store(batches, tl.load(batches) + 1)


@triton.jit  # type: ignore[untyped-decorator]
def _apply(x, facts, y, places, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    c, where, inside = _tile(tl.program_id(0) * ROWS, places, channels, ROWS, COLUMNS)
    factor = tl.load(facts + 2 * channels + c, mask=c < channels, other=0.0)
    summand = tl.load(facts + 3 * channels + c, mask=c < channels, other=0.0)
    values = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + where, tl.maximum(values * factor[None, :] + summand[None, :], 0.0), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _apply_remembered(  # type: ignore[no-untyped-def] # noqa: ANN202
    x,  # noqa: ANN001
    weight,  # noqa: ANN001
    bias,  # noqa: ANN001
    running_mean,  # noqa: ANN001
    running_var,  # noqa: ANN001
    y,  # noqa: ANN001
    places,  # noqa: ANN001
    channels,  # noqa: ANN001
    eps,  # noqa: ANN001
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    c, where, inside = _tile(tl.program_id(0) * ROWS, places, channels, ROWS, COLUMNS)
    known = c < channels
    variance = tl.load(running_var + c, mask=known, other=1.0)
    factor = tl.load(weight + c, mask=known, other=0.0) / tl.sqrt(variance + eps)
    summand = tl.load(bias + c, mask=known, other=0.0) - tl.load(running_mean + c, mask=known, other=0.0) * factor
    values = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + where, tl.maximum(values * factor[None, :] + summand[None, :], 0.0), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _pulls(x, dy, facts, parts, places, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    """Add up the gradient behind the ReLU, and that times the distance from the mean."""
    part, of = tl.program_id(0), tl.num_programs(0)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mean = tl.load(facts + c, mask=c < channels, other=0.0)
    factor = tl.load(facts + 2 * channels + c, mask=c < channels, other=0.0)
    summand = tl.load(facts + 3 * channels + c, mask=c < channels, other=0.0)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    along = tl.zeros((ROWS, COLUMNS), tl.float32)
    for begin in range(part * ROWS, places, of * ROWS):
        c, where, inside = _tile(begin, places, channels, ROWS, COLUMNS)
        values = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
        pull = tl.load(dy + where, mask=inside, other=0.0).to(tl.float32)
        pull = tl.where(values * factor[None, :] + summand[None, :] > 0.0, pull, 0.0)
        total += pull
        along += pull * (values - mean[None, :])
    to = part * channels + c
    tl.store(parts + to, tl.sum(total, 0), mask=c < channels)
    tl.store(parts + of * channels + to, tl.sum(along, 0), mask=c < channels)


@triton.jit  # type: ignore[untyped-decorator]
def _balance(  # type: ignore[no-untyped-def] # noqa: ANN202
    parts,  # noqa: ANN001
    of,  # noqa: ANN001
    facts,  # noqa: ANN001
    gradients,  # noqa: ANN001
    places,  # noqa: ANN001
    channels,  # noqa: ANN001
    PARTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Find the gradients of weight and bias, and what the gradient of x takes of x and of 1."""
    c, total, along = _totals(parts, of, channels, PARTS, COLUMNS)
    known = c < channels
    mean = tl.load(facts + c, mask=known, other=0.0)
    inverse = tl.load(facts + channels + c, mask=known, other=0.0)
    factor = tl.load(facts + 2 * channels + c, mask=known, other=0.0)
    count = places.to(tl.float32)
    of_x = -factor * inverse * inverse * along / count
    tl.store(gradients + c, along * inverse, mask=known)
    tl.store(gradients + channels + c, total, mask=known)
    tl.store(gradients + 2 * channels + c, of_x, mask=known)
    tl.store(gradients + 3 * channels + c, -factor * total / count - of_x * mean, mask=known)


@triton.jit  # type: ignore[untyped-decorator]
def _send_back(x, dy, facts, gradients, dx, places, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    c, where, inside = _tile(tl.program_id(0) * ROWS, places, channels, ROWS, COLUMNS)
    factor = tl.load(facts + 2 * channels + c, mask=c < channels, other=0.0)
    summand = tl.load(facts + 3 * channels + c, mask=c < channels, other=0.0)
    of_x = tl.load(gradients + 2 * channels + c, mask=c < channels, other=0.0)
    of_one = tl.load(gradients + 3 * channels + c, mask=c < channels, other=0.0)
    values = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    pull = tl.load(dy + where, mask=inside, other=0.0).to(tl.float32)
    pull = tl.where(values * factor[None, :] + summand[None, :] > 0.0, pull, 0.0)
    result = pull * factor[None, :] + values * of_x[None, :] + of_one[None, :]
    tl.store(dx + where, result, mask=inside)


def forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    batches: Tensor,
    eps: float,
    momentum: float,
) -> tuple[Tensor, Tensor]:
    """Return relu(normalised x), and facts (4, C) for `backward`; move the running statistics, count the batch."""
    places, channels = x.numel() // x.shape[1], x.shape[1]
    adding, changing = cut_for_sums(places, channels), cut_for_changes(places, channels)
    parts = torch.empty((2, adding.parts, channels), dtype=torch.float32, device=x.device)
    facts = torch.empty((4, channels), dtype=torch.float32, device=x.device)
    y = torch.empty_like(x)
    _moments[(adding.parts, adding.across)](x, parts, places, channels, **adding.sizes(WARPS_OF_SUMS))
    _settle[(triton.cdiv(channels, JOINED),)](
        x,
        parts,
        adding.parts,
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
        **adding.joining,
    )
    _apply[(changing.down, changing.across)](x, facts, y, places, channels, **changing.sizes())
    return y, facts


def forward_remembered(
    x: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor, running_var: Tensor, eps: float
) -> Tensor:
    """Return relu(x normalised by the running statistics)."""
    places, channels = x.numel() // x.shape[1], x.shape[1]
    changing = cut_for_changes(places, channels)
    y = torch.empty_like(x)
    _apply_remembered[(changing.down, changing.across)](
        x, weight, bias, running_mean, running_var, y, places, channels, eps, **changing.sizes()
    )
    return y


def backward(x: Tensor, dy: Tensor, facts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weight and bias."""
    places, channels = x.numel() // x.shape[1], x.shape[1]
    adding, changing = cut_for_sums(places, channels), cut_for_changes(places, channels)
    parts = torch.empty((2, adding.parts, channels), dtype=torch.float32, device=x.device)
    gradients = torch.empty((4, channels), dtype=torch.float32, device=x.device)
    dx = torch.empty_like(x)
    _pulls[(adding.parts, adding.across)](x, dy, facts, parts, places, channels, **adding.sizes(WARPS_OF_SUMS))
    _balance[(triton.cdiv(channels, JOINED),)](
        parts,
        adding.parts,
        facts,
        gradients,
        places,
        channels,
        **adding.joining,
    )
    _send_back[(changing.down, changing.across)](x, dy, facts, gradients, dx, places, channels, **changing.sizes())
    return dx, gradients[0], gradients[1]
