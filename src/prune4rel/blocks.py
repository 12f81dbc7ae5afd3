"""Going over long arrays in blocks of rows, several at a time."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from prune4rel.machine import threads

Result = TypeVar("Result")

BLOCK_BYTES = 8 * 2**20


def spans(n: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut ``range(n)`` into consecutive pieces of at most `size`.

    >>> list(spans(5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    for start in range(0, n, size):
        yield start, min(n, start + size)


def rows_per_block(width: int) -> int:
    """Return how many rows of `width` numbers make a block that stays in cache."""
    return max(1, BLOCK_BYTES // (8 * max(1, width)))


def map_blocks(
    function: Callable[[int, int], Result], n: int, width: int, begin: Callable[[], None] | None = None
) -> list[Result]:
    """Call ``function(start, stop)`` for every block of rows, in threads that first call `begin`; results in order."""
    pieces = list(spans(n, rows_per_block(width)))
    if len(pieces) == 1:
        return [function(*pieces[0])]
    with ThreadPoolExecutor(threads(), initializer=begin) as pool:
        return list(pool.map(lambda piece: function(*piece), pieces))


def over_rows(
    function: Callable[..., NDArray[np.float64]], columns: Sequence[NDArray[Any]], *shared: Any
) -> NDArray[np.float64]:
    """(n,) what ``function(*rows, *shared)`` makes of the rows of some arrays that have one row an example.

    >>> over_rows(lambda rows, power: rows.sum(axis=1) ** power, [np.ones((3, 2))], 3)
    array([8., 8., 8.])
    """

    def block(start: int, stop: int) -> NDArray[np.float64]:
        return function(*(column[start:stop] for column in columns), *shared)

    width = sum(column.shape[1] for column in columns if column.ndim > 1)
    return np.concatenate(map_blocks(block, len(columns[0]), width))
