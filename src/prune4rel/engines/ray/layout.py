"""How rows are cut into blocks, pairs of blocks into tiles, and in which order the tiles come."""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

from prune4rel.blocks import spans
from prune4rel.neighbours.cpu import TILE

TILE_WORK = {"cpu": 8e11, "cuda": 1e14}
"""Floating-point operations of a tile that one worker does in seconds; on a CPU in one or two where a screen helps."""

MOST_TILES = 200_000
"""More tiles than this keep the driver busier than the workers."""

TILES_PER_SLOT = 5
"""So many tiles for every worker are enough that none waits long for the last one."""

EVEN_ENOUGH = 0.95
"""Share of the time that workers are at work, from which fewer tiles will do."""

ROUND_TO = 2 * TILE
"""Rows that a worker on a CPU multiplies at a time."""

BLOCKS_PER_SLOT = 6
"""Blocks that are there for every worker at the most: two of each task that runs or waits, and room for copies, which a
GPU takes of them."""

MOST_SHARED = 2
"""How many blocks' rows a task looks through at the most where one would do; they may lie in one block more."""

MEMORY_SHARE = 0.5
"""Share of the memory that those blocks may take."""


@dataclass(frozen=True)
class Layout:
    """`n` rows in blocks of `block`, the last one shorter.

    >>> layout = Layout(10, 4)
    >>> layout.count, layout.span(2), layout.tiles
    (3, (8, 10), 6)
    """

    n: int
    block: int

    @property
    def count(self) -> int:
        """Number of blocks."""
        return -(-self.n // self.block)

    @property
    def tiles(self) -> int:
        """Number of tiles on and above the diagonal."""
        return self.count * (self.count + 1) // 2

    def span(self, number: int) -> tuple[int, int]:
        """First row of a block, and the one behind its last."""
        return number * self.block, min(self.n, (number + 1) * self.block)

    def blocks_of(self, start: int, stop: int) -> range:
        """Numbers of the blocks that hold the rows `start` to `stop`."""
        return range(start // self.block, -(-stop // self.block))

    def shares(self, slots: int) -> list[tuple[int, int]]:
        """Cut the rows into pieces of equal length, as many for every worker, of at most `MOST_SHARED` blocks' length.

        >>> Layout(10, 4).shares(2)
        [(0, 5), (5, 10)]
        """
        rounds = math.ceil(self.n / (slots * MOST_SHARED * self.block))
        return list(spans(self.n, math.ceil(self.n / (slots * rounds))))

    def pairs(self, tile: tuple[int, int]) -> float:
        """How many pairs of rows a tile compares."""
        (a, b), (c, d) = map(self.span, tile)
        return (b - a) * (b - a + 1) / 2 if tile[0] == tile[1] else float(b - a) * (d - c)

    def order(self, at_once: int) -> Iterator[tuple[int, int]]:
        """Every tile on and above the diagonal, such that for long only few blocks are needed.

        Square groups of tiles come one after the other, each of at most `at_once` different blocks. In a group those
        on the diagonal come last: they are half the work, so that workers end at nearly the same time.

        >>> list(Layout(3, 1).order(6))
        [(0, 1), (0, 2), (1, 2), (0, 0), (1, 1), (2, 2)]
        """
        side = max(1, at_once // 2)
        groups = range(0, self.count, side)
        for top in groups:
            for left in groups[top // side :]:
                rows, columns = (range(first, min(self.count, first + side)) for first in (top, left))
                yield from ((row, column) for row in rows for column in columns if row < column)
                yield from ((row, row) for row in rows if top == left)

    def loads(self, at_once: int) -> int:
        """How many blocks are read in all if `at_once` of them are held."""
        sides = -(-self.count // max(1, at_once // 2))
        return self.count if at_once >= self.count else round(self.count * (sides + 1) / 2)


def choose_block(n: int, dim: int, *, slots: int, device: str, memory: float = math.inf, row: int = 0) -> int:
    """Return how many rows a block should have.

    A tile should take a worker seconds at the most, tiles should come out even among the workers, there should not be
    so many that the driver cannot follow, and blocks of `row` bytes a row should fit the `memory` of all nodes
    together. Within that, the fewer the better: between two tasks a worker waits.

    >>> choose_block(50_000, 512, slots=2, device="cpu")
    25600
    """
    worth_a_task = math.sqrt(TILE_WORK[device] / (2 * dim))
    for_the_driver = n / math.sqrt(2 * MOST_TILES)
    that_fits = MEMORY_SHARE * memory / (slots * BLOCKS_PER_SLOT * max(1, row))
    least = math.ceil(n / min(max(worth_a_task, for_the_driver), that_fits))
    enough = math.ceil(math.sqrt(2 * TILES_PER_SLOT * slots + 0.25) - 0.5)  # enough * (enough + 1) / 2 tiles

    def rounded(count: int) -> int:
        return max(ROUND_TO, int(min(n / count + ROUND_TO - 1, that_fits)) // ROUND_TO * ROUND_TO)

    fewer = (rounded(count) for count in range(least, enough))
    even = (block for block in fewer if evenness(Layout(n, block).count, slots) >= EVEN_ENOUGH)
    return next(even, rounded(max(least, enough)))


def evenness(count: int, slots: int) -> float:
    """Share of the time for which workers are at work on the tiles of so many blocks, those on the diagonal last.

    >>> evenness(2, 2), evenness(2, 3), round(evenness(3, 2), 2)
    (1.0, 0.6666666666666666, 0.9)
    """
    ends = [0.0] * slots
    for work in [1.0] * (count * (count - 1) // 2) + [0.5] * count:
        heapq.heapreplace(ends, ends[0] + work)
    return count * count / 2 / (slots * max(ends))
