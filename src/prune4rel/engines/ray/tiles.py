"""How rows are cut into blocks and pairs of blocks into tiles, what a worker does with them, where finished ones stay.

What a worker does are plain functions on arrays. Which machine runs them is decided elsewhere, and may be any number
of machines, any number of times: the answer is the same.
"""

import hashlib
import io
import math
import os
import re
import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel.blocks import spans
from prune4rel.errors import InputError
from prune4rel.machine import THREADS
from prune4rel.neighbours.cpu import NOWHERE, TILE, CpuBackend
from prune4rel.neighbours.graph import EdgeBudget, Edges
from prune4rel.neighbours.products import Float32Products, project
from prune4rel.neighbours.screen import Screen, whole
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import no_advance
from prune4rel.provenance import fingerprint
from prune4rel.reading import reading
from prune4rel.shards import Shards
from prune4rel.signals import Signals
from prune4rel.storage import to_json, write_json, write_whole

Tile = tuple[int, int]

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

    enough = max(least, min(enough, math.ceil(n / ROUND_TO)))
    fewer = (rounded(count) for count in range(least, enough))
    even = (block for block in fewer if evenness(Layout(n, block).count, slots) >= EVEN_ENOUGH)
    return next(even, rounded(max(least, enough)))


def evenness(count: int, slots: int) -> float:
    """Share of the time for which workers are at work on the tiles of so many blocks, those on the diagonal last.

    >>> evenness(2, 2), evenness(2, 3), round(evenness(3, 2), 2)
    (1.0, 0.6666666666666666, 0.9)
    """
    rounds, ahead = divmod(count * (count - 1) // 2, slots)  # so many workers are one whole tile ahead
    behind = slots - ahead
    if count <= 2 * behind:
        end = rounds + (1.0 if ahead or count > behind else 0.5)
    else:
        end = rounds + 1 + 0.5 * math.ceil((count - 2 * behind) / slots)
    return count * count / 2 / (slots * end)


Floats = NDArray[np.floating[Any]]

_SCRATCH = threading.local()
"""Scratch arrays that outlive a task: fresh memory costs a worker more than the task's own overhead."""


class Block(NamedTuple):
    """Consecutive rows as they travel: as given, their squared lengths, and their operand of the screen."""

    start: int
    rows: Floats
    squares: NDArray[np.float64]
    operand: NDArray[np.float32] | None


class Survey(NamedTuple):
    """What one look at a block of embeddings gives: (m,) squared lengths, the rows asked for, a fingerprint."""

    squares: NDArray[np.float64]
    sample: Floats
    sha256: str


def one_thread() -> None:
    """Keep this worker to the one core it was given."""
    os.environ[THREADS] = "1"


def checked(start: int, **arrays: Any) -> Signals:
    """Check a block of signals; messages count rows in the whole, where the block begins at `start`."""
    try:
        return Signals(**arrays)
    except InputError as error:
        message = re.sub(r"\brow (\d+)", lambda found: f"row {start + int(found[1])}", str(error))
        raise InputError(message, error.field) from None


def load_block(shards: Shards, start: int, stop: int) -> Block:
    """Read a block of embeddings, check it and measure it."""
    signals = checked(start, labels=np.zeros(stop - start, dtype=np.int64), embeddings=shards.read(start, stop))
    if signals.embeddings is None:
        raise AssertionError("they were given")
    rows = np.ascontiguousarray(signals.embeddings)  # a memory map would be copied on its way
    return Block(start, rows, signals.squared_norms["embeddings"], None)


def cut(block: Block, start: int, stop: int) -> Block:
    """Those rows of a block that lie from `start` to `stop` of the whole; nothing is copied."""
    where = slice(max(0, start - block.start), stop - block.start)
    operand = None if block.operand is None else block.operand[where]
    return Block(block.start + where.start, block.rows[where], block.squares[where], operand)


def survey_block(block: Block, wanted: NDArray[np.int64]) -> Survey:
    """Tell what is to be known of a block; `wanted` are rows of the whole, inside the block, to bring along."""
    return Survey(block.squares, pick_rows(block, wanted), fingerprint(block.rows))


def project_block(block: Block, screen: Screen) -> NDArray[np.float32]:
    """Operand of a block's rows in the product of a screen."""
    return project(Points(block.rows, block.squares), screen)


def pick_rows(block: Block, where: NDArray[np.int64]) -> Floats:
    """Rows of a block by their place in the whole."""
    return block.rows[where - block.start]


class _Stacked:
    """Looks like arrays one above the other, for slices inside one of them, and copies nothing."""

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self._arrays = arrays
        self._ends = list(accumulate(map(len, arrays)))
        self.shape: tuple[int, ...] = (self._ends[-1], *arrays[0].shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, where: slice) -> NDArray[Any]:
        which = bisect_right(self._ends, where.start)
        above = self._ends[which] - len(self._arrays[which])
        return self._arrays[which][where.start - above : where.stop - above]


class _CallingThread:
    """Does what it is given at once, for code that expects a pool of threads."""

    map = staticmethod(map)


class _Stack(CpuBackend):
    """The rows of blocks, one above the other, with the operands they brought along; one thread does it all."""

    def __init__(self, blocks: Sequence[Block], screen: Screen) -> None:
        rows = cast("Floats", _Stacked([block.rows for block in blocks]))
        squares = np.concatenate([block.squares for block in blocks])
        super().__init__(Points(rows, squares), whole(rows.shape[1]), workers=1)
        self._local = _SCRATCH
        operands = [block.operand for block in blocks if block.operand is not None]
        if len(operands) == len(blocks):
            self.screen = screen
            self.products = Float32Products(self.points, cast("NDArray[np.float32]", _Stacked(operands)))

    @contextmanager
    def pool(self, budget: EdgeBudget) -> Iterator[ThreadPoolExecutor]:
        del budget
        with threadpool_limits(1, "blas"):
            yield cast("ThreadPoolExecutor", _CallingThread())

    def across(self, split: int, threshold: Threshold) -> list[Edges]:
        """All neighbouring pairs of one of the first `split` rows and one of the others."""
        parts = []
        with threadpool_limits(1, "blas"):
            for top, bottom in spans(split, 2 * self.tile):
                operand = self.products.operand(slice(top, bottom))
                for first, last in spans(len(self.points) - split, self.tile):
                    columns = slice(split + first, split + last)
                    parts.append(self._tile(operand, slice(top, bottom), columns, threshold, diagonal=NOWHERE))
        return parts


def find_edges(rows: Block, columns: Block, threshold: Threshold, screen: Screen, device: str) -> Edges:
    """Every neighbouring pair of a row of one block and a row of the other, i < j, in the order of `Edges`.

    Parameters
    ----------
    rows, columns
        Two blocks, `rows` not behind `columns`; twice the same block gives the pairs inside it.
    screen
        The screen the blocks' operands were made with; a GPU makes its own operands from it.
    device
        ``"cpu"`` for one thread, else the PyTorch device that does it.
    """
    inside = rows.start == columns.start
    blocks = [rows] if inside else [rows, columns]
    split = len(rows.rows)
    parts: list[Edges]
    if device == "cpu":
        one_thread()
        stack = _Stack(blocks, screen)
        whole_block = partial(stack.upper, threshold, max_edges=np.inf, advance=no_advance)
        parts = whole_block() if inside else stack.across(split, threshold)
    else:
        from prune4rel.engines.ray.backend import edges_on_torch  # noqa: PLC0415 - imports torch

        parts = edges_on_torch(blocks, screen, threshold, device)
    edges = _joined(parts)
    return Edges(
        edges.i + np.int32(rows.start),
        edges.j + np.int32(rows.start if inside else columns.start - split),
        edges.weight,
    )


def find_neighbours_of(some: Block, blocks: Sequence[Block], threshold: Threshold, screen: Screen) -> Edges:
    """All neighbours that the rows of `some` have in other blocks, sorted by i; i counts along `some`.

    A row is found as its own neighbour here.
    """
    one_thread()
    parts = []
    for block in blocks:
        edges = _joined(_Stack([some, block], screen).across(len(some.rows), threshold))
        parts.append(edges._replace(j=edges.j + np.int32(block.start - len(some.rows))))
    edges = _joined(parts)
    order = np.argsort(edges.i, kind="stable")
    return edges.at(order)


def _joined(parts: Sequence[Edges]) -> Edges:
    empty = Edges(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
    i, j, weight = (np.concatenate([empty[k], *[part[k] for part in parts]]) for k in range(3))
    return Edges(i, j, weight)


def pack(edges: Edges) -> bytes:
    """Edges as a small Parquet file: differences of indices, weights byte by byte, checksums.

    >>> edges = Edges(np.array([0, 0], np.int32), np.array([1, 5], np.int32), np.array([1.0, 0.5], np.float32))
    >>> unpack(pack(edges)).j
    array([1, 5], dtype=int32)
    """
    sink = io.BytesIO()
    pq.write_table(
        pa.table(edges._asdict()),
        sink,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        column_encoding={"i": "DELTA_BINARY_PACKED", "j": "DELTA_BINARY_PACKED", "weight": "BYTE_STREAM_SPLIT"},
        write_page_checksum=True,
    )
    return sink.getvalue()


def unpack(content: bytes) -> Edges:
    """Read what `pack` wrote.

    Raises
    ------
    pa.ArrowException, OSError
        It is damaged.
    """
    with pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as file:
        table = file.read(use_threads=False)
    return Edges(*(table.column(name).to_numpy() for name in Edges._fields))


class TileStore:
    """Edges by tile: packed in a folder, or in memory where there is none.

    In memory they are unpacked when they come, while workers are at the tiles that are left.

    Parameters
    ----------
    folder
        The work folder, or None. Tiles of different runs lie apart in it.
    run
        Everything the tiles depend on; another `run` has other tiles.
    """

    def __init__(self, folder: str | Path | None, run: Mapping[str, Any]) -> None:
        self._memory: dict[Tile, Edges] = {}
        self._folder: Path | None = None
        if folder is None:
            return
        key = hashlib.sha256(to_json(dict(sorted(run.items()))).encode()).hexdigest()[:16]
        self._folder = Path(folder) / f"graph-{key}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be used as the work folder ({error.strerror or error})") from None
        write_json(self._folder / "run.json", run, force=True)

    def put(self, tile: Tile, packed: bytes) -> None:
        """Keep a tile, whole or not at all."""
        if self._folder is None:
            self._memory[tile] = unpack(packed)
        else:
            write_whole(self._path(tile), lambda part: part.write_bytes(packed) and None, force=True)

    def get(self, tile: Tile) -> Edges | None:
        """Edges of a tile; None where it is not kept, or no longer readable."""
        if self._folder is None:
            return self._memory.get(tile)
        try:
            with reading(self._path(tile), "tile"):
                return unpack(self._path(tile).read_bytes())
        except InputError:
            return None

    def drop(self) -> None:
        """Let go of what is in memory; what is in the folder stays."""
        self._memory.clear()

    def _path(self, tile: Tile) -> Path:
        if self._folder is None:
            raise AssertionError("tiles in memory have no path")
        return self._folder / f"tile-{tile[0]:05d}-{tile[1]:05d}.parquet"
