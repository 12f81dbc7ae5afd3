"""What a worker does: read a block of rows, and find the neighbours between two blocks.

Everything here is a plain function on arrays. Which machine runs it is decided elsewhere, and may be any number of
machines, any number of times: the answer is the same.
"""

import io
import os
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel.blocks import spans
from prune4rel.errors import InputError
from prune4rel.neighbours.cpu import NOWHERE, CpuBackend
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.screen import Screen, whole
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import no_advance
from prune4rel.provenance import fingerprint
from prune4rel.scale.shards import Shards
from prune4rel.signals import Signals

Floats = NDArray[np.floating[Any]]


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
    os.environ["PRUNE4REL_THREADS"] = "1"


def checked(start: int, **arrays: Any) -> Signals:
    """Check a block of signals; messages count rows in the whole, where the block begins at `start`."""
    try:
        return Signals(**arrays)
    except InputError as error:
        message = re.sub(r"\brow (\d+)", lambda found: f"row {start + int(found[1])}", str(error))
        raise InputError(message, error.field) from None


def survey_block(shards: Shards, start: int, stop: int, wanted: NDArray[np.int64]) -> Survey:
    """Check a block of embeddings; `wanted` are rows of the whole, inside the block, to bring along."""
    rows = shards.read(start, stop)
    signals = checked(start, labels=np.zeros(len(rows), dtype=np.int64), embeddings=rows)
    if signals.embeddings is None:
        raise AssertionError("they were given")
    return Survey(signals.squared_norms["embeddings"], signals.embeddings[wanted - start], fingerprint(rows))


def load_block(shards: Shards, start: int, stop: int, squares: NDArray[np.float64], screen: Screen) -> Block:
    """Read a block of embeddings and prepare it for products."""
    rows = shards.read(start, stop)
    if rows.dtype not in (np.float16, np.float32):
        rows = rows.astype(np.float32)
    if screen.basis is None:
        return Block(start, rows, squares, None)
    return Block(start, rows, squares, screen.apply(Points(rows, squares).unit(slice(0, len(rows)))))


def pick_rows(block: Block, where: NDArray[np.int64]) -> Floats:
    """Rows of a block by their place in the whole."""
    return block.rows[where - block.start]


class _Stack(CpuBackend):
    """The rows of blocks, one above the other, with the operands they brought along."""

    def __init__(self, blocks: Sequence[Block], screen: Screen) -> None:
        rows = np.concatenate([block.rows for block in blocks])
        squares = np.concatenate([block.squares for block in blocks])
        super().__init__(Points(rows, squares), whole(rows.shape[1]), workers=1)
        operands = [block.operand for block in blocks if block.operand is not None]
        if len(operands) == len(blocks):
            self.screen = screen
            self._projected = np.concatenate(operands)

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
        The screen both blocks were loaded with; a GPU makes its own operands from it.
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
        from prune4rel.scale.gpu import edges_on_torch  # noqa: PLC0415 - imports torch

        parts = edges_on_torch(blocks, screen, threshold, device)
    edges = _joined(parts)
    return Edges(
        edges.i + np.int32(rows.start),
        edges.j + np.int32(rows.start if inside else columns.start - split),
        edges.weight,
    )


def find_neighbours_of(some: Block, columns: Block, threshold: Threshold, screen: Screen) -> Edges:
    """All neighbours that the rows of `some` have in a block, sorted by i; i counts along `some`.

    A row is found as its own neighbour here.
    """
    one_thread()
    edges = _joined(_Stack([some, columns], screen).across(len(some.rows), threshold))
    order = np.argsort(edges.i, kind="stable")
    return Edges(edges.i[order], (edges.j + np.int32(columns.start - len(some.rows)))[order], edges.weight[order])


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
    table = pq.read_table(io.BytesIO(content), page_checksum_verification=True, use_threads=False)
    return Edges(*(table.column(name).to_numpy() for name in Edges._fields))
