"""Approximate neighbours: rows are sorted into cells, and a row looks only into cells whose centre is near it.

Centres are those of a short spherical k-means on a sample. A row looks into every cell whose centre is at least as
similar to it as a cut: one number for all rows, for a threshold is one number for all pairs. Rows in crowded places so
look into several cells, rows far from everything into none. A pair is found where one of the two looks into the cell
of the other; what is found is then compared as everywhere else, canonically.

Which share of the true neighbours that finds is measured: on half of a sample of rows, all of whose neighbours are
known, the cut is settled, and on the other half the share that is reported.

The same rows give the same cells on any number of threads: all products are cut into the same pieces.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel._compiled import compiled
from prune4rel.blocks import map_blocks, spans
from prune4rel.errors import InputError
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.graph import Backend, EdgeBudget, Edges
from prune4rel.neighbours.screen import Screen
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import Advance, no_advance

SHARE = 0.97
"""Share of the true neighbours that is aimed at where nobody says."""

ENOUGH = 0.95
"""Share found below which a note warns."""

CELLS_A_ROOT = 4.0
ROWS_A_CELL = 16
ROUNDS = 3
PIECE = 1024
BLOCKS = 64
JUDGED_EDGES = 2**16
GUESSED_SHARE = 0.01
"""Share of all pairs that rows in cells look at, roughly, on embeddings of images and texts."""

Nearest = Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.int64]]
"""``nearest(unit, centres)``: (m,) the centre most similar to every row."""


@dataclass(frozen=True)
class LikelyCells:
    """Where to look.

    Parameters
    ----------
    centres
        (c, d) unit vectors.
    cut
        A row looks into the cells whose centre has at least this cosine with it.
    found
        Share of the true neighbours that is found so, measured on rows the cut was not settled on.
    looked_at
        Share of all pairs that is compared, roughly.
    """

    centres: NDArray[np.float32]
    cut: float
    found: float
    looked_at: float


class SortedRows(NamedTuple):
    """Rows by cell, and who looks into it: both as one list, cell after cell, and where each cell begins.

    ``members[first[c]:first[c + 1]]`` are the rows of cell c, ``looking[begin[c]:begin[c + 1]]`` those that look
    into it, in ascending order.
    """

    members: NDArray[np.int64]
    first: NDArray[np.int64]
    looking: NDArray[np.int64]
    begin: NDArray[np.int64]


def check_share(share: float) -> float:
    """Return the share of the true neighbours that is aimed at, or refuse one that is none.

    >>> check_share(0.9)
    0.9
    """
    if not (isinstance(share, int | float | np.number) and 0 < share < 1):
        raise InputError(f"ann_share (--ann-share) must lie between 0 and 1, not {share!r}")
    return float(share)


def found_note(found: float) -> str:
    """Say which share of the neighbours was found.

    >>> found_note(0.975)
    'Approximate: ann found about 97.5% of the true edges.'
    """
    few = "; that is few: ask for a larger ann_share, or leave ann out if the exact way is in reach"
    return f"Approximate: ann found about {found:.1%} of the true edges{'' if found >= ENOUGH else few}."


def cell_count(n: int) -> int:
    """Return how many cells n rows are sorted into.

    >>> cell_count(1_000_000), cell_count(10)
    (4000, 1)
    """
    return int(np.clip(CELLS_A_ROOT * math.sqrt(n), 1, max(1, n // ROWS_A_CELL)))


def training_rows(n: int, count: int, seed: int) -> NDArray[np.int64]:
    """Draw the rows on which the centres of n rows' cells are trained, ascending."""
    wanted = min(n, ROWS_A_CELL * count)
    return np.sort(np.random.default_rng(seed).choice(n, wanted, replace=False))


def find_centres(
    sample: NDArray[np.float32], count: int, nearest: Nearest, seed: int = 0, *, unit: bool = True
) -> NDArray[np.float32]:
    """(count, d) centres of cells, by a short k-means on (m, d) rows, from some of these rows on.

    Centres of unit rows are unit rows (a spherical k-means). One that nobody is near stays where it is.
    """
    rng = np.random.default_rng(seed)
    centres = sample[np.sort(rng.choice(len(sample), count, replace=False))].copy()
    for _ in range(ROUNDS):
        sums = np.zeros(centres.shape)
        cells = nearest(sample, centres)
        _add_up(sample, cells, sums)
        lengths = np.linalg.norm(sums, axis=1) if unit else _sizes(cells, count)
        some = lengths > 0
        centres[some] = (sums[some] / lengths[some, None]).astype(np.float32)
    return centres


@compiled
def _add_up(rows: NDArray[np.float32], cells: NDArray[np.int64], sums: NDArray[np.float64]) -> None:
    for r in range(len(rows)):
        for k in range(rows.shape[1]):
            sums[cells[r], k] += rows[r, k]


def _sizes(cells: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    return np.bincount(cells, minlength=count).astype(np.float64)


def nearest_centres(
    unit: NDArray[np.float32], centres: NDArray[np.float32], offsets: NDArray[np.float32] | None = None
) -> NDArray[np.int64]:
    """(m,) the centre most similar to every unit row, the first among equals.

    With `offsets` (c,), half the squared lengths of the centres, it is the one at the least distance.

    >>> nearest_centres(np.float32([[1, 0], [0, 1]]), np.float32([[0, 1], [1, 0]]))
    array([1, 0])
    """
    nearest = np.empty(len(unit), dtype=np.int64)

    def find(start: int, stop: int) -> None:
        for a, b in spans(stop - start, PIECE):
            product = unit[start + a : start + b] @ centres.T
            if offsets is not None:
                product -= offsets
            nearest[start + a : start + b] = np.argmax(product, axis=1)

    with threadpool_limits(1, "blas"):
        map_blocks(find, len(unit), 2**20 // PIECE)
    return nearest


class Known(NamedTuple):
    """Rows all of whose neighbours are known: the rows, and the edges, i counting along them."""

    rows: NDArray[np.int64]
    edges: Edges


def choose_cells(points: Points, known: Known, share: float, nearest: Nearest, seed: int = 0) -> LikelyCells:
    """Train the cells, and settle the cut at which `share` of the known neighbours are found."""
    n = len(points)
    count = cell_count(n)
    sample = points.unit(training_rows(n, count, seed))
    centres = find_centres(sample, count, nearest, seed)
    edges = known.edges
    if edges.i.size > JUDGED_EDGES:
        edges = edges.at(np.sort(np.random.default_rng(seed).choice(edges.i.size, JUDGED_EDGES, replace=False)))
    reach = np.maximum(
        _cosines_to_cells(points, known.rows[edges.i], edges.j, centres, nearest),
        _cosines_to_cells(points, edges.j, known.rows[edges.i], centres, nearest),
    )
    cut, found = cut_for(reach, edges.i, share)
    sizes = np.bincount(nearest(sample, centres), minlength=count) / len(sample)
    some = sample[:: max(1, len(sample) // PIECE)]
    looked_at = 2 * float(((some @ centres.T >= cut) @ sizes).mean())
    return LikelyCells(centres, cut, found, min(1.0, looked_at))


def cut_for(reach: NDArray[np.float32], rows: NDArray[np.int32], share: float) -> tuple[float, float]:
    """Find the number that a share of `reach` attains, and the share that such numbers attain on other rows.

    Sampled rows differ, so it aims one standard error above `share`. What is reported is found on rows with even
    numbers by what odd ones say, and the other way round.

    >>> cut_for(np.float32([3, 1, 2, 4]), np.int32([0, 1, 2, 3]), 0.5)
    (1.0, 0.75)
    """
    if not reach.size:
        return 1.0, 1.0
    found = [
        (reach[rows % 2 == half] >= _attained(reach[rows % 2 != half], rows[rows % 2 != half], share)).mean()
        for half in (0, 1)
        if 0 < np.count_nonzero(rows % 2 == half) < rows.size
    ]
    return _attained(reach, rows, share), float(np.mean(found)) if found else 1.0


def _attained(reach: NDArray[np.float32], rows: NDArray[np.int32], share: float) -> float:
    first = np.quantile(reach, 1 - share, method="lower")
    off = np.bincount(rows, weights=(reach >= first) - share)
    error = float(np.sqrt((off**2).sum())) / reach.size
    return float(np.quantile(reach, 1 - min(share + error, (1 + share) / 2), method="lower"))


def _cosines_to_cells(
    points: Points,
    looking: NDArray[np.int64] | NDArray[np.int32],
    wanted: NDArray[np.int64] | NDArray[np.int32],
    centres: NDArray[np.float32],
    nearest: Nearest,
) -> NDArray[np.float32]:
    """(e,) cosine of every looking row with the centre of the cell in which the wanted row is."""
    rows, place = np.unique(wanted.astype(np.int64), return_inverse=True)
    cells = np.concatenate([nearest(points.unit(rows[a:b]), centres) for a, b in spans(len(rows), 2**14)] or [rows])
    cosines = np.empty(len(wanted), dtype=np.float32)
    for a, b in spans(len(wanted), 2**12):
        here = centres[cells[place[a:b]]]
        cosines[a:b] = np.einsum("ij,ij->i", points.unit(looking[a:b]), here)
    return cosines


class CellBackend(Backend):
    """Finds most neighbours: pairs are looked for in cells. Single rows are still looked up everywhere."""

    approximate = True

    def __init__(self, exact: Backend, cells: LikelyCells) -> None:
        self.exact = exact
        self.cells = cells
        self.points = exact.points
        self.screen = exact.screen
        self.check_cost = exact.check_cost
        self.rounding = exact.rounding

    def with_screen(self, screen: Screen) -> Self:
        """Return the same rows and cells behind another screen."""
        return type(self)(self.exact.with_screen(screen), self.cells)

    def of(
        self, rows: NDArray[np.int64], threshold: Threshold, *, max_edges: float, advance: Advance = no_advance
    ) -> Edges:
        """Find all neighbours of some rows, wherever they are."""
        return self.exact.of(rows, threshold, max_edges=max_edges, advance=advance)

    @abstractmethod
    def upper(self, threshold: Threshold, *, max_edges: float, advance: Advance) -> list[Edges]:
        """Find pairs i < j of which one looks into the cell of the other."""


class CpuCells(CellBackend):
    """Cells on the CPU; one cell is one piece of work."""

    exact: CpuBackend

    def upper(self, threshold: Threshold, *, max_edges: float, advance: Advance) -> list[Edges]:
        """Find pairs i < j of which one looks into the cell of the other."""
        n = len(self.points)
        by_cell = sort_rows(self.points, self.cells)
        budget = EdgeBudget(2 * max_edges)  # most pairs are found from both ends
        pairs = np.diff(by_cell.first) * np.diff(by_cell.begin)
        step = n * (n + 1) / 2 / max(1, pairs.sum())

        def search(cell: int) -> Edges:
            members = by_cell.members[by_cell.first[cell] : by_cell.first[cell + 1]]
            looking = by_cell.looking[by_cell.begin[cell] : by_cell.begin[cell + 1]]
            found = self.exact.between(looking, members, threshold)
            budget.take(found.i.size)
            advance(float(pairs[cell]) * step)
            return found

        order = np.argsort(-pairs, kind="stable")  # large ones first, so that threads end together
        with self.exact.pool(budget) as pool:
            parts = list(pool.map(search, order[pairs[order] > 0].tolist()))
        edges = in_order(parts, n)
        EdgeBudget(max_edges).take(sum(part.i.size for part in edges))
        return edges


def sort_rows(points: Points, cells: LikelyCells) -> SortedRows:
    """Find every row's cell, and the cells it looks into."""
    centres = np.ascontiguousarray(cells.centres.T)

    def sort(start: int, stop: int) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
        own, rows, looks = np.empty(stop - start, dtype=np.int32), [], []
        for a, b in spans(stop - start, PIECE):
            product = points.unit(slice(start + a, start + b)) @ centres
            own[a:b] = np.argmax(product, axis=1)
            i, j = np.divmod(np.flatnonzero(product >= np.float32(cells.cut)), len(cells.centres))
            rows.append(i + start + a)
            looks.append(j.astype(np.int32))
        return own, np.concatenate(rows), np.concatenate(looks)

    with threadpool_limits(1, "blas"):
        parts = map_blocks(sort, len(points), 2**20 // PIECE)
    own, rows, looks = (np.concatenate([part[k] for part in parts]) for k in range(3))
    count = len(cells.centres)
    return SortedRows(
        members=np.argsort(own, kind="stable"),
        first=_starts(own, count),
        looking=rows[np.argsort(looks, kind="stable")],
        begin=_starts(looks, count),
    )


def _starts(cells: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=count))])


def in_order(parts: list[Edges], n: int) -> list[Edges]:
    """Bring edges i < j into the order of `Edges`, each of them once, block of i by block."""
    if not parts:
        return []
    i, j, weight = (np.concatenate([part[k] for part in parts]) for k in range(3))
    size = -(-n // BLOCKS)
    home = (i // size).astype(np.uint8)
    order = np.argsort(home, kind="stable")
    limits = np.concatenate([[0], np.cumsum(np.bincount(home, minlength=BLOCKS))])

    def sort(block: int, _end: int) -> Edges:
        some = order[limits[block] : limits[block + 1]]
        _, ahead = np.unique(i[some].astype(np.int64) * n + j[some], return_index=True)
        return Edges(i, j, weight).at(some[ahead])

    return [part for part in map_blocks(sort, BLOCKS, 2**20) if part.i.size]
