"""Neighbours on the CPU: tiles of a matrix product, one thread a strip, checked in double precision."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.blocks import spans
from prune4rel.machine import threads
from prune4rel.neighbours.graph import Backend, EdgeBudget, Edges
from prune4rel.neighbours.products import Float32Products, Products
from prune4rel.neighbours.screen import Rounding, Screen, whole
from prune4rel.neighbours.similarity import Points, Threshold, keep_neighbours
from prune4rel.progress import Advance, no_advance

TILE = 640
"""Columns of a tile, half its rows: its product, 3 MB, should still be in the cache when it is looked through."""

CHUNK = 128
NOWHERE = -(2**40)
"""A diagonal that lies left of every tile."""


class CpuBackend(Backend):
    """Finds neighbours with matrix products and compiled loops.

    Parameters
    ----------
    points
        The rows.
    screen
        How pairs are ruled out before they are computed in full.
    tile
        Columns of a tile, half its rows; any value gives the same edges.
    workers
        Threads; any number gives the same edges.
    products
        What multiplies, ``products(points, screen)``; all of them give the same edges.
    """

    def __init__(
        self,
        points: Points,
        screen: Screen | None = None,
        *,
        tile: int = TILE,
        workers: int | None = None,
        products: Callable[[Points, Screen], Products] = Float32Products.of,
    ) -> None:
        self.points = points
        self.tile = tile
        self.workers = workers or threads()
        self.screen = screen or whole(points.dim)
        self.make_products = products
        self.products = products(points, self.screen)
        self._local = threading.local()

    @property
    def rounding(self) -> Rounding:  # type: ignore[override]
        """Of the products."""
        return self.products.rounding

    @property
    def check_cost(self) -> float:  # type: ignore[override]
        """Computing a pair canonically takes about this many times its share of a product."""
        return self.products.check_cost

    def with_screen(self, screen: Screen) -> "CpuBackend":
        """Return the same rows behind another screen."""
        return CpuBackend(self.points, screen, tile=self.tile, workers=self.workers, products=self.make_products)

    def upper(self, threshold: Threshold, *, max_edges: float, advance: Advance) -> list[Edges]:
        """Find every neighbouring pair i < j; one strip of rows is one piece of work."""
        n = len(self.points)
        budget = EdgeBudget(max_edges)

        def strip(span: tuple[int, int]) -> list[Edges]:
            rows = slice(*span)
            operand = self.products.operand(rows)
            parts = []
            for first, last in spans(n - rows.start, self.tile):
                columns = slice(rows.start + first, rows.start + last)
                above = slice(rows.start, min(rows.stop, columns.stop))
                part = self._tile(operand[: above.stop - above.start], above, columns, threshold, diagonal=-first)
                budget.take(part.i.size)
                parts.append(part)
                advance((above.stop - above.start) * (last - first))
            return parts

        with self.pool(budget) as pool:
            strips = pool.map(strip, list(spans(n, 2 * self.tile)))
            return [part for parts in strips for part in parts if part.i.size]

    def of(
        self, rows: NDArray[np.int64], threshold: Threshold, *, max_edges: float, advance: Advance = no_advance
    ) -> Edges:
        """Find all neighbours of some rows; one tile of columns is one piece of work."""
        operand = self.products.operand(rows)
        budget = EdgeBudget(max_edges)

        def piece(span: tuple[int, int]) -> Edges:
            part = self._tile(operand, rows, slice(*span), threshold, diagonal=NOWHERE)
            budget.take(part.i.size)
            advance(len(rows) * (span[1] - span[0]))
            other = rows[part.i] != part.j
            return part.at(other)

        with self.pool(budget) as pool:
            parts = list(pool.map(piece, list(spans(len(self.points), self.tile))))
        i, j, weight = (np.concatenate([part[k] for part in parts]) for k in range(3))
        order = np.argsort(i, kind="stable")
        return Edges(i, j, weight).at(order)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64], threshold: Threshold) -> Edges:
        """Neighbouring pairs of a row and a column, both given by their numbers, as i < j; in no particular order."""
        parts = []
        for a, b in spans(len(rows), 2 * self.tile):
            some = rows[a:b]
            operand = self.products.operand(some)
            for c, d in spans(len(columns), self.tile):
                part = self._tile(operand, some, columns[c:d], threshold, diagonal=NOWHERE)
                i, j = some[part.i].astype(np.int32), columns[c:d][part.j].astype(np.int32)
                low: NDArray[np.int32] = np.minimum(i, j)
                high: NDArray[np.int32] = np.maximum(i, j)
                parts.append(Edges(low, high, part.weight).at(i != j))
        i, j, weight = (np.concatenate([part[k] for part in parts]) for k in range(3))
        return Edges(i, j, weight)

    @contextmanager
    def pool(self, budget: EdgeBudget) -> Iterator[ThreadPoolExecutor]:
        """Threads that each run their own single-threaded products; nothing is left running behind an error."""
        with self.products.single() as begin, ThreadPoolExecutor(self.workers, initializer=begin) as pool:
            try:
                yield pool
            except BaseException:
                budget.exhaust()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _tile(
        self,
        rows: Any,
        row_ids: slice | NDArray[np.int64],
        columns: slice | NDArray[np.int64],
        threshold: Threshold,
        *,
        diagonal: int,
    ) -> Edges:
        """Neighbours within one tile; row r starts right of column r + `diagonal`.

        Rows and columns are counted as they are given: from 0 on where they are numbers.
        """
        operand = self.products.operand(columns)
        m, k = len(rows), len(operand)
        scratch, i, j, weight = self._buffers(m * k)
        lowest = threshold.cosine - self.screen.margin(self.rounding)
        product, limit = self.products.tile(rows, operand, lowest, scratch)
        count = _candidates(product, limit, diagonal, i, j)
        if count:
            points = self.points
            count = keep_neighbours(
                points.given(row_ids),
                points.squared_norms[row_ids],
                points.given(columns),
                points.squared_norms[columns],
                i,
                j,
                count,
                threshold.shifted,
                threshold.on_grid,
                threshold.strict,
                weight,
            )
        offset = [np.int32(some.start if isinstance(some, slice) else 0) for some in (row_ids, columns)]
        return Edges(i[:count] + offset[0], j[:count] + offset[1], weight[:count].copy())

    def _buffers(self, size: int) -> tuple[Any, ...]:
        """Scratch arrays of this thread."""
        local = self._local
        if not hasattr(local, "size") or local.size < size:
            local.size = size
            local.product = np.empty(size, dtype=np.float32)
            local.i = np.empty(size, dtype=np.int32)
            local.j = np.empty(size, dtype=np.int32)
            local.weight = np.empty(size, dtype=np.float32)
        return local.product, local.i, local.j, local.weight


@compiled
def _candidates(
    product: NDArray[Any],
    limit: np.generic,
    diagonal: int,
    i: NDArray[np.int32],
    j: NDArray[np.int32],
) -> int:
    """Positions in `product` that reach `limit`, row by row, right of the given diagonal."""
    count = 0
    for row in range(product.shape[0]):
        begin = max(0, row + diagonal + 1)
        for start in range(begin, product.shape[1], CHUNK):
            part = product[row, start : start + CHUNK]
            hit = False
            for k in range(part.size):
                hit = hit | (part[k] >= limit)
            if hit:
                for k in range(part.size):
                    if part[k] >= limit:
                        i[count] = row
                        j[count] = start + k
                        count += 1
    return count
