"""The two GPU kernels PyTorch has no good operation for, in Triton."""

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def _collect(  # type: ignore[no-untyped-def]
    product,
    rows,
    columns,
    limit,
    diagonal,
    row_start,
    column_start,
    counter,
    out_i,
    out_j,
    capacity,
    UPPER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (r < rows)[:, None] & (c < columns)[None, :]
    values = tl.load(product + r[:, None].to(tl.int64) * columns + c[None, :], mask=inside, other=-4.0)
    hit = inside & (values.to(tl.float32) >= limit)
    i = r[:, None] + tl.zeros_like(c)[None, :]
    j = c[None, :] + tl.zeros_like(r)[:, None]
    if UPPER:
        hit = hit & (j > i + diagonal)
    flags = tl.reshape(hit.to(tl.int32), (ROWS * COLUMNS,))
    count = tl.sum(flags, axis=0)
    if count > 0:
        base = tl.atomic_add(counter, count.to(tl.int64))
        place = base + tl.cumsum(flags, axis=0) - 1
        write = (flags > 0) & (place < capacity)
        tl.store(out_i + place, tl.reshape(i, (ROWS * COLUMNS,)) + row_start, mask=write)
        tl.store(out_j + place, tl.reshape(j, (ROWS * COLUMNS,)) + column_start, mask=write)


def collect(
    product: torch.Tensor,
    limit: float,
    diagonal: int | None,
    start: tuple[int, int],
    counter: torch.Tensor,
    out_i: torch.Tensor,
    out_j: torch.Tensor,
) -> None:
    """Append the positions in `product` that reach `limit`; the counter runs on past the capacity.

    With a `diagonal`, row r starts right of column r + `diagonal`. Positions are counted from `start` on.
    """
    rows, columns = product.shape
    grid: Any = (triton.cdiv(columns, 256), triton.cdiv(rows, 16))
    _collect[grid](
        product,
        rows,
        columns,
        limit,
        diagonal or 0,
        *start,
        counter,
        out_i,
        out_j,
        out_i.numel(),
        UPPER=diagonal is not None,
        ROWS=16,
        COLUMNS=256,
        num_warps=4,
    )


@triton.jit  # type: ignore[untyped-decorator]
def _dots(  # type: ignore[no-untyped-def]
    rows,
    i,
    j,
    out,
    dim,
    WIDTH: tl.constexpr,
):
    pair = tl.program_id(0)
    a = rows + tl.load(i + pair).to(tl.int64) * dim
    b = rows + tl.load(j + pair).to(tl.int64) * dim
    k = tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), dtype=tl.float64)
    for start in range(0, dim, WIDTH):
        inside = start + k < dim
        x = tl.load(a + start + k, mask=inside, other=0.0).to(tl.float64)
        y = tl.load(b + start + k, mask=inside, other=0.0).to(tl.float64)
        total += x * y
    tl.store(out + pair, tl.sum(total, axis=0))


def dots(rows: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    """(m,) dot products of rows i and j in double precision."""
    out = torch.empty(len(i), dtype=torch.float64, device=rows.device)
    if len(i):
        _dots[(len(i),)](rows, i, j, out, rows.shape[1], WIDTH=512, num_warps=4)
    return out
