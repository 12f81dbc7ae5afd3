"""What a processor multiplies rows by: NumPy in float32, or PyTorch in bfloat16 where the processor has units for that.

A product only screens: what it cannot rule out is computed again in double precision, so both give the same neighbours.
Bfloat16 is several times faster, and so coarse that a few pairs more are computed again (`Screen.margin`).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel.blocks import map_blocks
from prune4rel.machine import multiplies_bfloat16
from prune4rel.neighbours.screen import BFLOAT16, NO_ROUNDING, Rounding, Screen
from prune4rel.neighbours.similarity import Points

Where = slice | NDArray[np.integer[Any]]

LARGE = 1e12
"""Multiplications from which on it pays to import PyTorch, which takes a second or two."""

DEPTH = 32
"""The processor's units for bfloat16 take so many numbers of a row at once."""


class Products(Protocol):
    """Rows in the form in which they are multiplied, and their products."""

    rounding: Rounding
    check_cost: float
    """Computing a pair canonically takes about this many times its share of a product of whole rows."""

    def operand(self, where: Where) -> Any:
        """Return some rows, ready to be multiplied."""

    def tile(
        self, rows: Any, columns: Any, limit: float, scratch: NDArray[np.float32]
    ) -> tuple[NDArray[Any], np.generic]:
        """Multiply rows by columns: (m, k) numbers, and what those attain whose product attains `limit`, at least."""

    def single(self) -> AbstractContextManager[Callable[[], None]]:
        """Make products take one thread each; every further thread calls what is returned."""


class Float32Products:
    """Products by NumPy.

    Parameters
    ----------
    points
        The rows.
    projected
        (n, width) what a screen makes of them; None where whole unit vectors are multiplied.
    """

    rounding = NO_ROUNDING
    check_cost = 12.0

    def __init__(self, points: Points, projected: NDArray[np.float32] | None = None) -> None:
        self.points = points
        self.projected = projected

    @classmethod
    def of(cls, points: Points, screen: Screen) -> "Float32Products":
        """Apply a screen to all rows."""
        return cls(points, None if screen.basis is None else project(points, screen))

    def operand(self, where: Where) -> NDArray[np.float32]:
        """Return some rows, ready to be multiplied."""
        return self.points.unit(where) if self.projected is None else self.projected[where]

    def tile(
        self, rows: NDArray[np.float32], columns: NDArray[np.float32], limit: float, scratch: NDArray[np.float32]
    ) -> tuple[NDArray[Any], np.generic]:
        """Multiply rows by columns, in `scratch`."""
        product = scratch[: len(rows) * len(columns)].reshape(len(rows), len(columns))
        np.matmul(rows, columns.T, out=product)
        return product, np.nextafter(np.float32(limit), np.float32(-3))

    @contextmanager
    def single(self) -> Iterator[Callable[[], None]]:
        """Make products take one thread each."""
        with threadpool_limits(1, "blas"):
            yield lambda: None


class Bfloat16Products:
    """Products by PyTorch in bfloat16, of rows that are rounded once and held as such.

    The bits of positive ones, read as integers, are in the order of the numbers, and above those of negative ones.
    """

    rounding = BFLOAT16
    check_cost = 80.0

    def __init__(self, points: Points, screen: Screen) -> None:
        import torch  # noqa: PLC0415 - an extra

        self._torch = torch
        rows = torch.zeros((len(points), -(-screen.width // DEPTH) * DEPTH), dtype=torch.bfloat16)

        def fill(start: int, stop: int) -> None:
            rows[start:stop, : screen.width] = torch.from_numpy(screen.apply(points.unit(slice(start, stop))))

        with self.single() as begin, threadpool_limits(1, "blas"):
            map_blocks(fill, len(points), points.dim, begin)
        self._rows = rows

    def operand(self, where: Where) -> Any:
        """Return some rows, ready to be multiplied."""
        return self._rows[where] if isinstance(where, slice) else self._rows[self._torch.from_numpy(where)]

    def tile(
        self, rows: Any, columns: Any, limit: float, scratch: NDArray[np.float32]
    ) -> tuple[NDArray[Any], np.generic]:
        """Multiply rows by columns, in `scratch`."""
        shape = len(rows), len(columns)
        bits = scratch.view(np.int16)[: shape[0] * shape[1]].reshape(shape)
        product = self._torch.from_numpy(bits).view(self._torch.bfloat16)
        self._torch.mm(rows, columns.T, out=product)
        if limit > 0:
            return bits, np.int16(np.float32(limit).view(np.int32) >> 16)  # what is cut off only makes it lower
        return product.float().numpy(), np.float32(limit)

    @contextmanager
    def single(self) -> Iterator[Callable[[], None]]:
        """Make products take one thread each."""
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(1)
        try:
            yield lambda: self._torch.set_num_threads(1)
        finally:
            self._torch.set_num_threads(before)


def project(points: Points, screen: Screen) -> NDArray[np.float32]:
    """(n, width) rows as they enter the product of a screen, made in threads."""
    rows = np.empty((len(points), screen.width), dtype=np.float32)

    def fill(start: int, stop: int) -> None:
        rows[start:stop] = screen.apply(points.unit(slice(start, stop)))

    with threadpool_limits(1, "blas"):
        map_blocks(fill, len(points), points.dim)
    return rows


def fastest(points: Points) -> Callable[[Points, Screen], Products]:
    """Return what multiplies all pairs of rows in the least time here."""
    large = len(points) ** 2 / 2 * points.dim >= LARGE
    return Bfloat16Products if large and multiplies_bfloat16() else Float32Products.of
