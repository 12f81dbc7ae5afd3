"""What a worker does: read a block of rows, and find the neighbours between two blocks.

Everything here is a plain function on arrays. Which machine runs it is decided elsewhere, and may be any number of
machines, any number of times: the answer is the same.
"""

import io
import os
import re
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel.blocks import spans
from prune4rel.errors import InputError
from prune4rel.machine import THREADS
from prune4rel.neighbours.backend import EdgeBudget
from prune4rel.neighbours.cpu import NOWHERE, CpuBackend, project
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.screen import Screen, whole
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import no_advance
from prune4rel.provenance import fingerprint
from prune4rel.shards import Shards
from prune4rel.signals import Signals

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
            self._projected = cast("NDArray[np.float32]", _Stacked(operands))

    @contextmanager
    def _pool(self, budget: EdgeBudget) -> Iterator[ThreadPoolExecutor]:
        del budget
        with threadpool_limits(1, "blas"):
            yield cast("ThreadPoolExecutor", _CallingThread())

    def across(self, split: int, threshold: Threshold) -> list[Edges]:
        """All neighbouring pairs of one of the first `split` rows and one of the others."""
        parts = []
        with threadpool_limits(1, "blas"):
            for top, bottom in spans(split, 2 * self.tile):
                operand = self._operand(slice(top, bottom))
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
        from prune4rel.engines.ray.gpu import edges_on_torch  # noqa: PLC0415 - imports torch

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
