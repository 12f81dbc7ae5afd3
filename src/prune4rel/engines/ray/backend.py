"""Neighbours on a cluster: blocks of rows live in Ray's object store, tiles are tasks, edges come home packed."""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from prune4rel.engines.ray.cluster import Cluster, Task
from prune4rel.engines.ray.kept import Tile, TileStore
from prune4rel.engines.ray.layout import Layout
from prune4rel.engines.ray.store import StoreCache, operands_in_store
from prune4rel.engines.ray.tiles import Block, cut, find_edges, find_neighbours_of, pack, pick_rows, project_block
from prune4rel.neighbours.backend import Backend, TooManyEdges
from prune4rel.neighbours.cpu import CHECK_COST
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.screen import Screen, whole
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import Advance, no_advance
from prune4rel.shards import Shards

FORMAT = 1
GPU_CHECK_COST = 400.0


class Packed(NamedTuple):
    """The edges of a tile as they travel, and how many they are."""

    edges: int
    content: bytes


def find_packed(
    rows: Block,
    columns: Block,
    rows_operand: NDArray[np.float32] | None,
    columns_operand: NDArray[np.float32] | None,
    threshold: Threshold,
    screen: Screen,
    device: str,
) -> Packed:
    """Find the edges of a tile and pack them; a GPU makes operands of its own."""
    rows, columns = rows._replace(operand=rows_operand), columns._replace(operand=columns_operand)
    edges = find_edges(rows, columns, threshold, screen, device)
    return Packed(edges.i.size, pack(edges))


def find_in_span(some: Block, span: tuple[int, int], threshold: Threshold, screen: Screen, *given: Any) -> Edges:
    """Find all neighbours that the rows of `some` have among those of a span; given are its blocks, then operands."""
    half = len(given) // 2
    blocks = [block._replace(operand=operand) for block, operand in zip(given[:half], given[half:], strict=True)]
    return find_neighbours_of(some, [cut(block, *span) for block in blocks], threshold, screen)


@dataclass
class Work:
    """What was done for the graph, beside what the cluster counts."""

    tiles: int = 0
    tiles_reused: int = 0


@dataclass(frozen=True)
class Source:
    """Embeddings in shards, after one look at all of them.

    Parameters
    ----------
    cluster
        Who does the work.
    shards
        Where the rows are.
    layout
        How they are cut into blocks.
    blocks
        The blocks, for tasks.
    whole
        All rows, where they are at hand.
    squares
        (n,) squared lengths of the rows.
    sampled, sample
        Rows that were brought along, by their place in ascending order, and the rows themselves.
    sha256
        Tells the fingerprint of all rows, which may still be in the making.
    """

    cluster: Cluster
    shards: Shards
    layout: Layout
    blocks: StoreCache
    whole: Block | None
    squares: NDArray[np.float64]
    sampled: NDArray[np.int64]
    sample: NDArray[np.floating[Any]]
    sha256: Callable[[], str]

    @property
    def points(self) -> Points:
        """The rows, for code that asks for the length, or for rows of the sample."""
        return Points(cast("Any", _SampledRows(self)), self.squares)


@dataclass(frozen=True)
class _SampledRows:
    """Looks like the whole array, and has the sampled rows at hand."""

    source: Source

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shards.shape

    def __len__(self) -> int:
        return len(self.source.shards)

    def __getitem__(self, where: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
        place = np.searchsorted(self.source.sampled, where)
        return self.source.sample[place]


class RayBackend(Backend):
    """Finds neighbours with tasks on a Ray cluster; the edges are those of `CpuBackend`.

    Parameters
    ----------
    source
        The rows.
    device
        ``"cpu"`` or ``"cuda"``: what a tile task is given.
    screen
        How pairs are ruled out before they are computed in full.
    work_dir
        Where finished tiles are kept; None keeps them in memory.
    """

    def __init__(
        self, source: Source, device: str, screen: Screen | None = None, *, work_dir: str | Path | None = None
    ) -> None:
        self.source = source
        self.points = source.points
        self.device = device
        self.half = device != "cpu"
        self.check_cost = GPU_CHECK_COST if self.half else CHECK_COST
        self.screen = screen or whole(source.shards.shape[1])
        self.work_dir = work_dir
        self.work = Work()

    @cached_property
    def _screen(self) -> Any:
        return self.source.cluster.put(self.screen)

    @cached_property
    def _operands(self) -> StoreCache | None:
        """What the screen makes of blocks; nothing where there is none, or where GPUs do it by themselves."""
        source = self.source
        if self.screen.basis is None or self.half:
            return None
        return operands_in_store(source.cluster, source.blocks, source.layout, source.whole, self.screen, self._screen)

    def _of_blocks(self, numbers: Iterable[int]) -> list[Any]:
        """Return blocks for a task, then their operands."""
        numbers = list(numbers)
        operands = self._operands
        return [
            *(self.source.blocks[number] for number in numbers),
            *(None if operands is None else operands[number] for number in numbers),
        ]

    def with_screen(self, screen: Screen) -> "RayBackend":
        """Return the same rows behind another screen."""
        return RayBackend(self.source, self.device, screen, work_dir=self.work_dir)

    def upper(self, threshold: Threshold, *, max_edges: float, advance: Advance) -> list[Edges]:
        """Find every neighbouring pair i < j; one pair of blocks is one task."""
        kept = self.tiles(threshold, max_edges=max_edges, advance=advance)
        parts = [self.edges_of(kept, tile) for tile in sorted(self.source.layout.order(2))]
        kept.drop()
        return [part for part in parts if part.i.size]

    def tiles(
        self, threshold: Threshold, *, max_edges: float, advance: Advance, work_dir: str | Path | None = None
    ) -> TileStore:
        """Compute all tiles that are not kept from an earlier run; returns where they are."""
        layout = self.source.layout
        kept = TileStore(work_dir or self.work_dir, self._run(threshold))
        missing = []
        left = max_edges
        for tile in layout.order(self.source.blocks.capacity):
            edges = kept.get(tile)
            if edges is None:
                missing.append(tile)
                continue
            left -= edges.i.size
            self.work.tiles_reused += 1
            advance(layout.pairs(tile))
        self.work.tiles = layout.tiles
        jobs = ((tile, self._job(tile, threshold)) for tile in missing)
        with closing(self.source.cluster.each(jobs, device=self.device)) as results:
            for tile, packed in results:
                kept.put(tile, packed.content)
                left -= packed.edges
                if left < 0:
                    raise TooManyEdges
                advance(layout.pairs(tile))
        self._let_go()
        return kept

    @staticmethod
    def edges_of(kept: TileStore, tile: Tile) -> Edges:
        """Edges of a tile that was just computed."""
        edges = kept.get(tile)
        if edges is None:
            raise AssertionError(f"tile {tile} was kept and is gone")
        return edges

    def _job(self, tile: Tile, threshold: Threshold) -> Task:
        """Find the edges of a tile."""
        device = "cpu" if self.device == "cpu" else "cuda:0"
        return Task(find_packed, (*self._of_blocks(tile), threshold, self._screen, device))

    def _let_go(self) -> None:
        """Let go of what only tiles need."""
        for held in self._held():
            held.clear()

    @property
    def bytes_loaded(self) -> int:
        """Bytes of rows, and of what was made of them, that went into the object store."""
        return sum(held.bytes_made for held in self._held())

    def _held(self) -> list[StoreCache]:
        return [self.source.blocks, *([] if self._operands is None else [self._operands])]

    def _run(self, threshold: Threshold) -> dict[str, Any]:
        """Everything the content of a tile depends on."""
        n, dim = self.source.shards.shape
        return {
            "format": FORMAT,
            "embeddings": self.source.sha256(),
            "n": n,
            "dim": dim,
            "block": self.source.layout.block,
            "tau": threshold.on_grid,
            "similarity": threshold.similarity,
            "strict": threshold.strict,
        }

    def of(
        self, rows: NDArray[np.int64], threshold: Threshold, *, max_edges: float, advance: Advance = no_advance
    ) -> Edges:
        """Find all neighbours of some rows; every worker looks through as many columns."""
        layout, cluster = self.source.layout, self.source.cluster
        some = cluster.put(self._of_rows(rows))
        shares = layout.shares(cluster.slots("cpu"))
        jobs = ((share, self._share_job(some, share, threshold)) for share in shares)
        found: dict[tuple[int, int], Edges] = {}
        left = max_edges
        with closing(cluster.each(jobs)) as results:
            for share, edges in results:
                other = rows[edges.i] != edges.j
                found[share] = edges.at(other)
                left -= found[share].i.size
                if left < 0:
                    raise TooManyEdges
                advance(len(rows) * (share[1] - share[0]))
        i, j, weight = (np.concatenate([found[share][k] for share in shares]) for k in range(3))
        order = np.argsort(i, kind="stable")
        return Edges(i, j, weight).at(order)

    def _share_job(self, some: Any, share: tuple[int, int], threshold: Threshold) -> Task:
        numbers = self.source.layout.blocks_of(*share)
        return Task(find_in_span, (some, share, threshold, self._screen, *self._of_blocks(numbers)))

    def _of_rows(self, rows: NDArray[np.int64]) -> Block:
        """Bring the given rows together: from the sample, or from their blocks."""
        source = self.source
        if np.isin(rows, source.sampled, assume_unique=True).all():
            raw = source.points.rows[rows]
        else:
            raw = np.empty((len(rows), source.shards.shape[1]), dtype=source.sample.dtype)
            home = rows // source.layout.block
            jobs = ((b, Task(pick_rows, (source.blocks[b], rows[home == b]))) for b in np.unique(home).tolist())
            for number, part in source.cluster.each(jobs):
                raw[home == number] = part
        block = Block(0, raw, source.squares[rows], None)
        return block if self.screen.basis is None else block._replace(operand=project_block(block, self.screen))
