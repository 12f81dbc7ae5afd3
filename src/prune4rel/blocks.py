"""Going over long arrays in blocks of rows, several at a time."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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


def map_blocks(function: Callable[[int, int], Result], n: int, width: int) -> list[Result]:
    """Call ``function(start, stop)`` for every block of rows, in threads; results in order."""
    pieces = list(spans(n, rows_per_block(width)))
    if len(pieces) == 1:
        return [function(*pieces[0])]
    with ThreadPoolExecutor(threads()) as pool:
        return list(pool.map(lambda piece: function(*piece), pieces))
