"""Approximate neighbours with faiss: rows are sorted into cells, and a row looks into the likeliest cells only.

For sets so large that comparing all pairs is out of reach. The cells are those of a k-means on a sample. Which share
of the true edges this finds is measured: on one half of a sample of rows the number of cells to look into is settled,
on the other half the share that is reported.
"""

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.engines.ray.backend import Packed, RayBackend
from prune4rel.engines.ray.cluster import Task
from prune4rel.engines.ray.store import StoreCache
from prune4rel.engines.ray.tiles import Block, Tile, one_thread, pack
from prune4rel.errors import InputError
from prune4rel.neighbours.build import SAMPLE_EDGES, SAMPLE_ROWS, SCREEN_ROWS, spread_rows
from prune4rel.neighbours.cells import SHARE
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.screen import whole
from prune4rel.neighbours.similarity import Points, Threshold, keep_neighbours
from prune4rel.progress import Advance, no_advance

TRAINED_ON = 64
"""Sampled rows a cell at most."""


class Sorted(NamedTuple):
    """A block whose rows know their cell, and which cells to look into, likeliest first."""

    block: Block
    cells: NDArray[np.int64]
    probes: NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Cells by their centres.

    Parameters
    ----------
    centres
        (c, d) unit vectors.
    probes
        How many cells a row looks into.
    found
        Share of the true edges that are found so, measured on a sample.
    """

    centres: NDArray[np.float32]
    probes: int
    found: float


def import_faiss() -> Any:
    """Import faiss, or say how to get it."""
    try:
        import faiss  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError("approximate neighbours need faiss; pip install 'prune4rel[ann]'") from None
    return faiss


def find_centres(sample: NDArray[np.float32], n: int, seed: int = 0) -> NDArray[np.float32]:
    """Centres of about √n cells, by faiss's spherical k-means on (m, d) sampled unit rows.

    There are fewer where the sample is small; every cell has at least eight of its rows.
    """
    faiss = import_faiss()
    count = int(np.clip(math.sqrt(n), 1, max(1, len(sample) // 8)))
    faiss.omp_set_num_threads(1)  # several threads add up in any order
    means = faiss.Kmeans(
        sample.shape[1],
        count,
        niter=20,
        spherical=True,
        seed=seed,
        min_points_per_centroid=1,
        max_points_per_centroid=TRAINED_ON,
    )
    means.train(np.ascontiguousarray(sample))
    centres: NDArray[np.float32] = means.centroids.reshape(count, -1)
    return centres


def likeliest(unit: NDArray[np.float32], centres: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """(m, count) cells of unit rows, nearest centre first; ties go to the lowest cell.

    >>> likeliest(np.float32([[1, 0]]), np.float32([[0, 1], [1, 0]]), 2)
    array([[1, 0]])
    """
    product = unit @ centres.T
    if count < product.shape[1]:
        some = np.argpartition(-product, count - 1, axis=1)[:, :count]
        some.sort(axis=1)
    else:
        some = np.broadcast_to(np.arange(product.shape[1]), product.shape)
    order = np.argsort(-np.take_along_axis(product, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1).astype(np.int64)


def ranks_in_block(
    block: Block, some: Block, places: NDArray[np.int64], edges: Edges, centres: NDArray[np.float32]
) -> NDArray[np.int64]:
    """(e,) how many cells come before the right one where true neighbours in a block look for each other.

    Parameters
    ----------
    some, places
        Sampled rows, and where in the whole they are.
    edges
        True edges from the sample (i counts along it) to rows of the block. It is the one of the lower place that
        looks for the other.
    """
    one_thread()
    mine = Points(some.rows, some.squares).unit(edges.i)
    other = Points(block.rows, block.squares).unit(edges.j - block.start)
    first = (places[edges.i] < edges.j)[:, None]
    looking, looked_for = np.where(first, mine, other), np.where(first, other, mine)
    cell = likeliest(looked_for, centres, 1)
    ranks: NDArray[np.int64] = np.argmax(likeliest(looking, centres, len(centres)) == cell, axis=1)
    return ranks


def choose_cells(
    backend: RayBackend, threshold: Threshold, mean_degree: float, *, share: float = SHARE, seed: int = 0
) -> Cells:
    """Train the cells, and settle how many of them a row looks into, on a sample of rows with all their neighbours."""
    surveyed = backend.surveyed
    n = len(surveyed.shards)
    centres = find_centres(surveyed.points.unit(spread_rows(n, training_rows(n))), n, seed)
    rows = spread_rows(n, SAMPLE_ROWS)
    rows = rows[:: max(1, math.ceil(len(rows) * mean_degree / SAMPLE_EDGES))]
    edges = backend.of(rows, threshold, max_edges=math.inf)
    some = surveyed.cluster.put(Block(0, surveyed.points.rows[rows], surveyed.squares[rows], None))
    shared = surveyed.cluster.put(centres)
    home = edges.j // surveyed.layout.block
    jobs = (
        (number, Task(ranks_in_block, (surveyed.blocks[number], some, rows, edges.at(home == number), shared)))
        for number in np.unique(home).tolist()
    )
    ranks = np.empty(edges.i.size, dtype=np.int64)
    for number, found in surveyed.cluster.each(jobs):
        ranks[home == number] = found
    settled, judged = ranks[edges.i % 2 == 0], ranks[edges.i % 2 == 1]
    probes = 1 + int(np.quantile(settled, share, method="higher")) if settled.size else 1
    return Cells(centres, probes, float((judged < probes).mean()) if judged.size else 1.0)


def training_rows(n: int) -> int:
    """Return how many sampled rows the cells of n rows are trained on."""
    return min(n, 32 * math.isqrt(n) + SCREEN_ROWS)


def sort_block(block: Block, cells: Cells) -> NDArray[np.int64]:
    """(m, probes) cells that the rows of a block look into, likeliest first; the first is the row's own."""
    one_thread()
    return likeliest(Points(block.rows, block.squares).unit(slice(None)), cells.centres, cells.probes)


def find_in_cells(
    rows: Block,
    columns: Block,
    row_probes: NDArray[np.int64],
    column_probes: NDArray[np.int64],
    threshold: Threshold,
    cells: Cells,
) -> Packed:
    """Do as `find_likely`; blocks and their cells travel apart."""
    return find_likely(in_cells(rows, row_probes), in_cells(columns, column_probes), threshold, cells)


def in_cells(block: Block, probes: NDArray[np.int64]) -> Sorted:
    """Bring a block and the cells of its rows together."""
    return Sorted(block, np.ascontiguousarray(probes[:, 0]), probes)


def find_likely(rows: Sorted, columns: Sorted, threshold: Threshold, cells: Cells) -> Packed:
    """Neighbouring pairs i < j of two blocks for which j lies in a cell that i looks into, packed."""
    one_thread()
    faiss = import_faiss()
    faiss.omp_set_num_threads(1)
    upper, lower = rows.block, columns.block
    dim = upper.rows.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, len(cells.centres), faiss.METRIC_INNER_PRODUCT)
    index.is_trained = True
    index.nprobe = cells.probes
    tools: Any = import_module("faiss.contrib.ivf_tools")
    tools.add_preassigned(index, Points(lower.rows, lower.squares).unit(slice(None)), columns.cells)
    limit = float(np.nextafter(np.float32(threshold.cosine - whole(dim).margin()), np.float32(-3)))
    queries = Points(upper.rows, upper.squares).unit(slice(None))
    limits, _, found = tools.range_search_preassigned(index, queries, limit, rows.probes)
    i = np.repeat(np.arange(len(queries), dtype=np.int32), np.diff(limits).astype(np.int64))
    j = found.astype(np.int32)
    if upper.start == lower.start:
        i, j = i[i < j], j[i < j]
    order = np.lexsort((j, i))
    i, j = i[order], j[order]
    weight = np.empty(i.size, dtype=np.float32)
    raw, other = Points(upper.rows, upper.squares), Points(lower.rows, lower.squares)
    count = keep_neighbours(
        raw.raw(slice(None)),
        upper.squares,
        other.raw(slice(None)),
        lower.squares,
        i,
        j,
        i.size,
        threshold.shifted,
        threshold.on_grid,
        threshold.strict,
        weight,
    )
    edges = Edges(i[:count] + np.int32(upper.start), j[:count] + np.int32(lower.start), weight[:count])
    return Packed(count, pack(edges))


class AnnBackend(RayBackend):
    """Finds most neighbours: tiles look into the likeliest cells. Single rows are still looked up everywhere."""

    approximate = True

    def __init__(self, exact: RayBackend, cells: Cells) -> None:
        self.cells = cells
        super().__init__(exact.surveyed, "cpu", work_dir=exact.work_dir)
        self.work = exact.work
        self._exact = exact
        self._shared_cells = exact.surveyed.cluster.put(cells)
        each = 8 * cells.probes * exact.surveyed.layout.block
        self._probes = StoreCache(self._sort, capacity=exact.surveyed.blocks.capacity, each=each)

    def of(
        self, rows: NDArray[np.int64], threshold: Threshold, *, max_edges: float, advance: Advance = no_advance
    ) -> Edges:
        """Find all neighbours of some rows, wherever they are."""
        return self._exact.of(rows, threshold, max_edges=max_edges, advance=advance)

    def _run(self, threshold: Threshold) -> dict[str, Any]:
        return super()._run(threshold) | {"cells": len(self.cells.centres), "probes": self.cells.probes}

    def _job(self, tile: Tile, threshold: Threshold) -> Task:
        blocks, probes = ([held[number] for number in tile] for held in (self.surveyed.blocks, self._probes))
        return Task(find_in_cells, (*blocks, *probes, threshold, self._shared_cells))

    def _let_go(self) -> None:
        super()._let_go()
        self._probes.clear()

    @property
    def bytes_loaded(self) -> int:
        """Bytes of rows and of their cells that went into the object store."""
        return super().bytes_loaded + self._probes.bytes_made

    def _sort(self, number: int) -> Any:
        return self.surveyed.cluster.keep(Task(sort_block, (self.surveyed.blocks[number], self._shared_cells)))
