"""What a worker with a GPU does: the neighbours between two blocks, with PyTorch."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.engines.ray.cluster import Cluster, Task
from prune4rel.engines.ray.store import StoreCache, blocks_in_store, in_memory, operands_in_store
from prune4rel.engines.ray.tiles import (
    Block,
    Floats,
    Layout,
    Survey,
    Tile,
    TileStore,
    cut,
    find_edges,
    find_neighbours_of,
    load_block,
    pack,
    pick_rows,
    project_block,
    survey_block,
)
from prune4rel.neighbours.build import SAMPLE_ROWS, SCREEN_ROWS, check_zero_rows, spread_rows
from prune4rel.neighbours.cuda import TorchBackend
from prune4rel.neighbours.graph import Backend, Edges, TooManyEdges
from prune4rel.neighbours.precision import full_precision
from prune4rel.neighbours.products import Float32Products
from prune4rel.neighbours.screen import FLOAT16, NO_ROUNDING, Screen, whole
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import Advance, Progress, no_advance
from prune4rel.provenance import Fingerprints, fingerprint_of_parts
from prune4rel.shards import Shards


class _Stack(TorchBackend):
    """The rows of two blocks, one above the other."""

    def across(self, split: int, threshold: Threshold) -> list[Edges]:
        """All neighbouring pairs of one of the first `split` rows and one of the others."""
        n = len(self.raw)
        parts = []
        with full_precision():
            for start, stop in spans(split, self.tile):
                rows = torch.arange(start, stop, dtype=torch.int32, device=self.raw.device)
                found = self._search(rows, self.operand[start:stop], (split, n), threshold)
                i, j, weight = found.sorted(n)
                parts.append(Edges(i + np.int32(start), j, weight))
        return parts


def edges_on_torch(blocks: Sequence[Block], screen: Screen, threshold: Threshold, device: str) -> list[Edges]:
    """All neighbouring pairs of a row of the first block and a row of the last, as rows of their stack."""
    rows = np.concatenate([block.rows for block in blocks])
    points = Points(rows, np.concatenate([block.squares for block in blocks]))
    plain = TorchBackend.from_points(points, device)  # uploads; its operand is let go of with it
    stack = _Stack(points, plain.raw, plain.squares, screen)
    del plain
    if len(blocks) == 1:
        return stack.upper(threshold, max_edges=np.inf, advance=no_advance)
    return stack.across(len(blocks[0].rows), threshold)


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
class TileCounts:
    """What was done for the graph, beside what the cluster counts."""

    tiles: int = 0
    tiles_reused: int = 0


@dataclass(frozen=True)
class SurveyedRows:
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

    surveyed: SurveyedRows

    @property
    def shape(self) -> tuple[int, ...]:
        return self.surveyed.shards.shape

    def __len__(self) -> int:
        return len(self.surveyed.shards)

    def __getitem__(self, where: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
        place = np.searchsorted(self.surveyed.sampled, where)
        return self.surveyed.sample[place]


class RayBackend(Backend):
    """Finds neighbours with tasks on a Ray cluster; the edges are those of `CpuBackend`.

    Parameters
    ----------
    surveyed
        The rows.
    device
        ``"cpu"`` or ``"cuda"``: what a tile task is given.
    screen
        How pairs are ruled out before they are computed in full.
    work_dir
        Where finished tiles are kept; None keeps them in memory.
    """

    def __init__(
        self, surveyed: SurveyedRows, device: str, screen: Screen | None = None, *, work_dir: str | Path | None = None
    ) -> None:
        self.surveyed = surveyed
        self.points = surveyed.points
        self.device = device
        on_gpu = device != "cpu"
        self.rounding = FLOAT16 if on_gpu else NO_ROUNDING
        self.check_cost = GPU_CHECK_COST if on_gpu else Float32Products.check_cost
        self.screen = screen or whole(surveyed.shards.shape[1])
        self.work_dir = work_dir
        self.work = TileCounts()

    @cached_property
    def _screen(self) -> Any:
        return self.surveyed.cluster.put(self.screen)

    @cached_property
    def _operands(self) -> StoreCache | None:
        """What the screen makes of blocks; nothing where there is none, or where GPUs do it by themselves."""
        surveyed = self.surveyed
        if self.screen.basis is None or self.device != "cpu":
            return None
        return operands_in_store(
            surveyed.cluster, surveyed.blocks, surveyed.layout, surveyed.whole, self.screen, self._screen
        )

    def _of_blocks(self, numbers: Iterable[int]) -> list[Any]:
        """Return blocks for a task, then their operands."""
        numbers = list(numbers)
        operands = self._operands
        return [
            *(self.surveyed.blocks[number] for number in numbers),
            *(None if operands is None else operands[number] for number in numbers),
        ]

    def with_screen(self, screen: Screen) -> "RayBackend":
        """Return the same rows behind another screen."""
        return RayBackend(self.surveyed, self.device, screen, work_dir=self.work_dir)

    def upper(self, threshold: Threshold, *, max_edges: float, advance: Advance) -> list[Edges]:
        """Find every neighbouring pair i < j; one pair of blocks is one task."""
        kept = self.tiles(threshold, max_edges=max_edges, advance=advance)
        parts = [self.edges_of(kept, tile) for tile in sorted(self.surveyed.layout.order(2))]
        kept.drop()
        return [part for part in parts if part.i.size]

    def tiles(
        self, threshold: Threshold, *, max_edges: float, advance: Advance, work_dir: str | Path | None = None
    ) -> TileStore:
        """Compute all tiles that are not kept from an earlier run; returns where they are."""
        layout = self.surveyed.layout
        kept = TileStore(work_dir or self.work_dir, self._run(threshold))
        missing = []
        left = max_edges
        for tile in layout.order(self.surveyed.blocks.capacity):
            edges = kept.get(tile)
            if edges is None:
                missing.append(tile)
                continue
            left -= edges.i.size
            self.work.tiles_reused += 1
            advance(layout.pairs(tile))
        self.work.tiles = layout.tiles
        jobs = ((tile, self._job(tile, threshold)) for tile in missing)
        with closing(self.surveyed.cluster.each(jobs, device=self.device)) as results:
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
        return [self.surveyed.blocks, *([] if self._operands is None else [self._operands])]

    def _run(self, threshold: Threshold) -> dict[str, Any]:
        """Everything the content of a tile depends on."""
        n, dim = self.surveyed.shards.shape
        return {
            "format": FORMAT,
            "embeddings": self.surveyed.sha256(),
            "n": n,
            "dim": dim,
            "block": self.surveyed.layout.block,
            "tau": threshold.on_grid,
            "similarity": threshold.similarity,
            "strict": threshold.strict,
        }

    def of(
        self, rows: NDArray[np.int64], threshold: Threshold, *, max_edges: float, advance: Advance = no_advance
    ) -> Edges:
        """Find all neighbours of some rows; every worker looks through as many columns."""
        layout, cluster = self.surveyed.layout, self.surveyed.cluster
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
        numbers = self.surveyed.layout.blocks_of(*share)
        return Task(find_in_span, (some, share, threshold, self._screen, *self._of_blocks(numbers)))

    def _of_rows(self, rows: NDArray[np.int64]) -> Block:
        """Bring the given rows together: from the sample, or from their blocks."""
        surveyed = self.surveyed
        if np.isin(rows, surveyed.sampled, assume_unique=True).all():
            raw = surveyed.points.rows[rows]
        else:
            raw = np.empty((len(rows), surveyed.shards.shape[1]), dtype=surveyed.sample.dtype)
            home = rows // surveyed.layout.block
            jobs = ((b, Task(pick_rows, (surveyed.blocks[b], rows[home == b]))) for b in np.unique(home).tolist())
            for number, part in surveyed.cluster.each(jobs):
                raw[home == number] = part
        block = Block(0, raw, surveyed.squares[rows], None)
        return block if self.screen.basis is None else block._replace(operand=project_block(block, self.screen))


def survey(
    cluster: Cluster, shards: Shards, layout: Layout, progress: Progress, *, allow_zero: bool, more: int = 0
) -> SurveyedRows:
    """Look at all embeddings once: check them, measure them, and bring a sample home.

    The sample is what settles tau and the screen, and `more` rows where there is use for them.
    """
    n = len(shards)
    sampled = np.unique(np.concatenate([spread_rows(n, rows) for rows in (SCREEN_ROWS, SAMPLE_ROWS, more)]))
    whole = load_block(shards, 0, n) if in_memory(shards) else None
    blocks = blocks_in_store(cluster, shards, layout, whole)
    with progress.task("reading", total=n) as advance:
        seen = _by_tasks(cluster, blocks, layout, sampled, advance) if whole is None else _here(whole, sampled, advance)
    check_zero_rows(seen.squares, allow=allow_zero)
    return SurveyedRows(cluster, shards, layout, blocks, whole, seen.squares, sampled, seen.sample, seen.sha256)


class _Seen(NamedTuple):
    squares: NDArray[np.float64]
    sample: Floats
    sha256: Callable[[], str]


def _here(whole: Block, sampled: NDArray[np.int64], advance: Advance) -> _Seen:
    prints = Fingerprints({"rows": whole.rows})
    advance(len(whole.rows))
    return _Seen(whole.squares, pick_rows(whole, sampled), lambda: prints.result()["rows"])


def _by_tasks(
    cluster: Cluster, blocks: StoreCache, layout: Layout, sampled: NDArray[np.int64], advance: Advance
) -> _Seen:
    home = sampled // layout.block
    tasks = ((number, Task(survey_block, (blocks[number], sampled[home == number]))) for number in range(layout.count))
    found: dict[int, Survey] = {}
    for number, seen in cluster.each(tasks):
        found[number] = seen
        advance(len(seen.squares))
    squares, samples, prints = zip(*(found[number] for number in range(layout.count)), strict=True)
    digest = fingerprint_of_parts(prints)
    return _Seen(np.concatenate(squares), np.concatenate(samples), lambda: digest)
