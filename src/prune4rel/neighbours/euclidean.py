"""Euclidean distances: a float32 product rules pairs out, double precision decides.

With rows shifted by a common centre, |a - b|^2 = |a|^2 + |b|^2 - 2 <a, b>. In float32 that costs a matrix product
and is off by at most kappa (|a|^2 + |b|^2), with u = 2^-24 the sum of

- d u: the product, summed in any order, is off by d u |a| |b|, and 2 |a| |b| <= |a|^2 + |b|^2;
- 4 u: shifting a row moves it by u |a|, hence a distance D by u (|a| + |b|) and D^2 by twice (|a| + |b|) as much;
- 2 u: subtracting, and the rounding of what is compared.

So with h = (1 - kappa) |a|^2 / 2 for every row, half a squared distance is at least h_a + h_b - <a, b>. Pairs for
which that is too large are ruled out; the others are computed again from the rows as given.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel._compiled import compiled, compiled_reduction
from prune4rel.blocks import map_blocks, spans
from prune4rel.machine import threads
from prune4rel.neighbours.similarity import Points

FLOAT32 = 2.0**-24
TINY = 1e-30
CHUNK = 64
TILE = 512
LARGEST_EXPONENT = 120
SPLIT = 2.0**13 + 1.0


@compiled
def rounded(value: float) -> float:
    """Round to 40 binary digits: sums that differ only in their order become equal."""
    big = value * SPLIT
    return big - (big - value)


@compiled_reduction
def _sum_of_squared_differences(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    total = 0.0
    for k in range(a.size):
        difference = np.float64(a[k]) - np.float64(b[k])
        total += difference * difference
    return total


@compiled
def squared_distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Canonical squared distance of two rows: in double precision from the rows as given, to 40 binary digits.

    >>> squared_distance(np.zeros(2, np.float32), np.array([3, 4], np.float32))
    25.0
    """
    return rounded(_sum_of_squared_differences(a, b))


@dataclass(frozen=True)
class Space:
    """Points whose Euclidean distances are wanted, and what it takes to rule pairs out.

    Parameters
    ----------
    points
        The rows as given.
    centre
        (d,) what is subtracted from scaled rows; near their mean, so that products are small.
    scale
        A power of two that brings the longest row to a length between 1/2 and 1, as far as it is in range.
    halves
        (n,) float32, h: not more than (1 - kappa) / 2 times the squared length of a shifted row.
    """

    points: Points
    centre: NDArray[np.float32]
    scale: float
    halves: NDArray[np.float32]

    @classmethod
    def of(cls, points: Points) -> "Space":
        """Measure the rows.

        >>> rows = np.array([[0, 0], [0, 2]], dtype=np.float32)
        >>> space = Space.of(Points(rows, np.array([0.0, 4.0])))
        >>> space.scale, space.centre.tolist()
        (0.25, [0.0, 0.25])
        """
        longest = math.sqrt(float(points.squared_norms.max()))
        exponent = math.frexp(longest)[1]
        scale = math.ldexp(1.0, -max(-LARGEST_EXPONENT, min(LARGEST_EXPONENT, exponent)))
        centre = (column_sums(points, slice(None)) * (scale / len(points))).astype(np.float32)
        space = cls(points, centre, scale, np.empty(len(points), dtype=np.float32))

        def measure(start: int, stop: int) -> None:
            _halves(space.operand(points.raw(slice(start, stop))), kappa(points.dim), space.halves[start:stop])

        map_blocks(measure, len(points), points.dim)
        return space

    @property
    def unit(self) -> float:
        """Half a squared length of 1 in the units of the halves."""
        return 0.5 * self.scale * self.scale

    def operand(self, raw: NDArray[np.float32]) -> NDArray[np.float32]:
        """(m, d) rows as they enter products, from (m, d) rows as given."""
        shifted: NDArray[np.float32] = raw * np.float32(self.scale)
        shifted -= self.centre
        return shifted

    def lower_nearest(self, some: NDArray[np.int64], nearest: NDArray[np.float64]) -> None:
        """Lower (n,) squared distances to the nearest of earlier rows, in place, to those of `some` where nearer."""
        raw = self.points.raw(some)
        operand, halves = self.operand(raw).T, self.halves[some]

        def strip(span: tuple[int, int]) -> None:
            rows = slice(*span)
            mine = self.points.raw(rows)
            product = self.operand(mine) @ operand
            _lower(product, mine, self.halves[rows], raw, halves, self.unit, nearest[rows])

        with workers() as pool:
            list(pool.map(strip, spans(len(self.points), TILE)))

    def products(self, some: NDArray[np.int64]) -> NDArray[np.float32]:
        """(m, m) products of some shifted rows with each other."""
        operand = self.operand(self.points.raw(some))
        return operand @ operand.T


def kappa(dim: int) -> float:
    """Bound on the error of a squared distance in float32, as a share of the squared lengths."""
    return 1.01 * (dim + 32) * FLOAT32


def column_sums(points: Points, where: slice | NDArray[np.int64]) -> NDArray[np.float64]:
    """(d,) sums over some rows in double precision, the same on any number of threads.

    >>> column_sums(Points(np.ones((3, 2), dtype=np.float32), np.full(3, 2.0)), np.array([0, 2]))
    array([2., 2.])
    """
    rows = np.arange(len(points))[where]

    def block(start: int, stop: int) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = points.raw(rows[start:stop]).sum(axis=0, dtype=np.float64)
        return sums

    total: NDArray[np.float64] = np.sum(map_blocks(block, len(rows), points.dim), axis=0)
    return total


def squared_distances_to(
    points: Points, where: NDArray[np.int64], target: NDArray[np.float64], times: float = 1.0
) -> NDArray[np.float64]:
    """(m,) squared distances of (d,) `target` from some rows, each multiplied by `times`, to 40 binary digits.

    With a sum over n rows as the target and n times the rows, nothing is divided: equal distances stay equal.

    >>> points = Points(np.array([[0], [1], [5]], dtype=np.float32), np.array([0.0, 1.0, 25.0]))
    >>> squared_distances_to(points, np.arange(3), np.array([6.0]), times=3) / 3**2
    array([4., 1., 9.])
    """
    found = np.empty(len(where))

    def block(start: int, stop: int) -> None:
        _to_target(points.raw(where[start:stop]), target, times, found[start:stop])

    map_blocks(block, len(where), points.dim)
    return found


@contextmanager
def workers() -> Iterator[ThreadPoolExecutor]:
    """Threads that each run their own single-threaded products."""
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads()) as pool:
        yield pool


@compiled_reduction
def _sum_to_target(row: NDArray[np.float32], target: NDArray[np.float64], times: float) -> float:
    total = 0.0
    for k in range(row.size):
        difference = target[k] - times * np.float64(row[k])
        total += difference * difference
    return total


@compiled
def _to_target(rows: NDArray[np.float32], target: NDArray[np.float64], times: float, out: NDArray[np.float64]) -> None:
    for row in range(rows.shape[0]):
        out[row] = rounded(_sum_to_target(rows[row], target, times))


@compiled
def _halves(shifted: NDArray[np.float32], kappa: float, out: NDArray[np.float32]) -> None:
    for row in range(shifted.shape[0]):
        total = 0.0
        for k in range(shifted.shape[1]):
            total += np.float64(shifted[row, k]) * np.float64(shifted[row, k])
        out[row] = np.float32(0.5 * (1.0 - kappa) * total * (1.0 - 2 * FLOAT32))


@compiled
def reach_of(half: float, squared: float, unit: float) -> np.float32:
    """Return what a product minus the other half exceeds if the pair's squared distance is at most `squared`."""
    return np.float32(half - squared * unit - TINY - 2 * FLOAT32 * (half + squared * unit))


@compiled
def limit_for(half: float, nearest: float, unit: float) -> np.float32:
    """Return what a product minus the other half exceeds if the pair is nearer than `nearest`."""
    return reach_of(half, nearest, unit) if nearest > 0.0 else np.float32(np.inf)


@compiled
def _lower(
    product: NDArray[np.float32],
    rows: NDArray[np.float32],
    row_halves: NDArray[np.float32],
    columns: NDArray[np.float32],
    column_halves: NDArray[np.float32],
    unit: float,
    nearest: NDArray[np.float64],
) -> None:
    """Lower every row's squared distance to the nearest column."""
    for row in range(product.shape[0]):
        limit = limit_for(row_halves[row], nearest[row], unit)
        for start in range(0, product.shape[1], CHUNK):
            part = product[row, start : start + CHUNK]
            halves = column_halves[start : start + CHUNK]
            hit = False
            for k in range(part.size):
                hit = hit | (part[k] - halves[k] > limit)
            if not hit:
                continue
            for k in range(part.size):
                if part[k] - halves[k] > limit:
                    found = squared_distance(rows[row], columns[start + k])
                    if found < nearest[row]:
                        nearest[row] = found
                        limit = limit_for(row_halves[row], found, unit)
