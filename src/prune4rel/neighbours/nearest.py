"""The k nearest neighbours of every example by Euclidean distance, ties to the lowest index: exact, or in cells.

In cells a row is compared with those that lie in the cells whose centres are nearest to it. How many cells that takes
is settled on sampled rows, whose nearest neighbours are found everywhere.
"""

import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel._compiled import compiled
from prune4rel.blocks import map_blocks, spans
from prune4rel.machine import threads
from prune4rel.neighbours.cells import (
    PIECE,
    LikelyCells,
    cell_count,
    cut_for,
    find_centres,
    nearest_centres,
    training_rows,
)
from prune4rel.neighbours.euclidean import CHUNK, Space, reach_of, squared_distance, workers
from prune4rel.progress import Advance, no_advance

TILE = 1024
LOOKING = 2**24
"""Numbers of the rows that look into cells together, of which there are at most `TOGETHER`."""

TOGETHER = 2**16

NOBODY = np.iinfo(np.int32).max
MOST_CELLS = 128
"""Cells into which a row looks at most to be judged: twice what embeddings of images and texts ask for. Where rows lie
about without any neighbourhood, more would only cost time."""

JUDGED_ROWS = 512
JUDGED_PAIRS = 2**13
"""So many sampled rows, or as many as have so many neighbours: theirs are found everywhere, to settle how many
cells to look into."""


class Nearest(NamedTuple):
    """(n, k) squared distances in ascending order, and (n, k) whose they are."""

    squared: NDArray[np.float64]
    indices: NDArray[np.int64]


class _Lists(NamedTuple):
    """What is found so far.

    A pair can change the list of i only if its product minus the other half exceeds ``reaches[i]`` and the other
    is below ``open_to[i]``: a list full of duplicates is open to earlier ones only.
    """

    squared: NDArray[np.float64]
    indices: NDArray[np.int64]
    reaches: NDArray[np.float32]
    open_to: NDArray[np.int32]

    @classmethod
    def empty(cls, n: int, k: int) -> "_Lists":
        """Make lists with nobody in them."""
        return cls(
            squared=np.full((n, k), np.inf),
            indices=np.full((n, k), NOBODY, dtype=np.int64),
            reaches=np.full(n, -np.inf, dtype=np.float32),
            open_to=np.full(n, NOBODY, dtype=np.int32),
        )


def nearest_neighbours(space: Space, k: int, *, tile: int = TILE, advance: Advance = no_advance) -> Nearest:
    """Find everyone's k nearest others, or all of them where there are fewer.

    Half of all products suffice: what is found for a row is offered to the column as well. `advance` is told the
    number of pairs looked at; any `tile` gives the same neighbours.

    Examples
    --------
    >>> from prune4rel.neighbours.similarity import Points
    >>> rows = np.array([[0], [3], [1]], dtype=np.float32)
    >>> nearest_neighbours(Space.of(Points(rows, np.array([0.0, 9.0, 1.0]))), 1).indices.tolist()
    [[2], [2], [0]]
    """
    n = len(space.points)
    k = min(k, n - 1)
    lists = _Lists.empty(n, k)
    if k == 0:
        return Nearest(lists.squared, lists.indices)
    one_at_a_time = threading.Lock()

    def strip(span: tuple[int, int]) -> None:
        rows = space.points.raw(slice(*span))
        operand = space.operand(rows)
        for first, last in spans(n - span[0], tile):
            begin, end = span[0] + first, span[0] + last
            columns = space.points.raw(slice(begin, end))
            product = operand @ space.operand(columns).T
            with one_at_a_time:
                _offer(product, span[0], rows, begin, columns, space.halves, space.unit, lists)
            advance((span[1] - span[0]) * (end - begin))

    with workers() as pool:
        list(pool.map(strip, spans(n, 2 * tile)))
    return Nearest(lists.squared, lists.indices)


def find_nearest(space: Space, k: int, *, share: float | None = None, advance: Advance = no_advance) -> Nearest:
    """Find everyone's k nearest others, or about a `share` of them in at most `MOST_CELLS` cells a row."""
    if share is None:
        return nearest_neighbours(space, k, advance=advance)
    return likely_neighbours(space, k, share=share, most=MOST_CELLS, advance=advance)[0]


def nearest_of(space: Space, span: tuple[int, int], k: int) -> Nearest:
    """Find the k nearest others of rows `span[0]` to `span[1]`, as `nearest_neighbours` does, in this thread.

    Examples
    --------
    >>> from prune4rel.neighbours.similarity import Points
    >>> rows = np.array([[0], [3], [1]], dtype=np.float32)
    >>> nearest_of(Space.of(Points(rows, np.array([0.0, 9.0, 1.0]))), (1, 3), 1).indices.tolist()
    [[2], [0]]
    """
    n = len(space.points)
    found = Nearest(*_Lists.empty(span[1] - span[0], min(k, n - 1))[:2])
    if not found.indices.size:
        return found
    for start, stop in spans(span[1] - span[0], 2 * TILE):
        lists, raw = (
            _Lists.empty(stop - start, found.indices.shape[1]),
            space.points.raw(slice(span[0] + start, span[0] + stop)),
        )
        _compare_with_all(space, span[0] + start, raw, np.arange(stop - start), lists)
        found.squared[start:stop], found.indices[start:stop] = lists.squared, lists.indices
    return found


def _compare_with_all(
    space: Space, start: int, raw: NDArray[np.float32], mine: NDArray[np.int64], lists: _Lists
) -> None:
    operand = space.operand(raw[mine])
    for begin, end in spans(len(space.points), TILE):
        others = space.points.raw(slice(begin, end))
        product = operand @ space.operand(others).T
        _offer_columns(product, start, mine, raw, np.arange(begin, end), others, space.halves, space.unit, lists)


@dataclass(frozen=True)
class Places:
    """Which rows lie in which cell, and where each row looks.

    Parameters
    ----------
    cells
        The cells, and which share of the neighbours is found in them.
    near
        (n, p) the cells a row looks into, nearest first; the first is its own.
    members, first
        Rows by cell: those of cell c are ``members[first[c]:first[c + 1]]``, in ascending order.
    """

    cells: LikelyCells
    near: NDArray[np.int32]
    members: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, space: Space, k: int, *, share: float, seed: int = 0, most: int | None = None) -> "Places":
        """Make cells in which about a `share` of everyone's k nearest others is found, and sort the rows into them.

        Nobody looks into more than `most` cells, where that is given: then less may be found.
        """
        cells, probes = _choose(space, k, share, seed, most)
        near = _nearest_cells(space, slice(None), cells.centres, probes)
        members = np.argsort(near[:, 0], kind="stable")
        return cls(cells, near, members, np.searchsorted(near[members, 0], np.arange(len(cells.centres) + 1)))


def likely_neighbours(
    space: Space, k: int, *, share: float, seed: int = 0, most: int | None = None, advance: Advance = no_advance
) -> tuple[Nearest, LikelyCells]:
    """Find most of everyone's k nearest others, about a `share` of them; also where they were looked for.

    `LikelyCells.found` is the share that is found, measured on rows it was not settled on. Rows that meet fewer than k
    others in their cells are compared with everybody. The same seed gives the same neighbours on any number of threads.

    Examples
    --------
    >>> from prune4rel.neighbours.similarity import Points
    >>> rows = np.float32([[0], [3], [1]])
    >>> found, cells = likely_neighbours(Space.of(Points(rows, np.array([0.0, 9.0, 1.0]))), 1, share=0.9)
    >>> found.indices.tolist(), cells.found
    ([[2], [2], [0]], 1.0)
    """
    n = len(space.points)
    found = Nearest(*_Lists.empty(n, min(k, n - 1))[:2])
    if not found.indices.size:
        return found, LikelyCells(np.zeros((1, space.points.dim), np.float32), 0.0, 1.0, 0.0)
    places = Places.of(space, k, share=share, seed=seed, most=most)

    def look(span: tuple[int, int]) -> None:
        mine = likely_of(space, places, span, k)
        found.squared[slice(*span)], found.indices[slice(*span)] = mine
        advance((span[1] - span[0]) * (n + 1) / 2)

    parts = threads() * -(-n // (threads() * min(TOGETHER, max(TILE, LOOKING // space.points.dim))))
    with workers() as pool:
        list(pool.map(look, spans(n, -(-n // parts))))
    return found, places.cells


def likely_of(space: Space, places: Places, span: tuple[int, int], k: int) -> Nearest:
    """Find most of the k nearest others of rows `span[0]` to `span[1]`, as `likely_neighbours` does, in this thread.

    Examples
    --------
    >>> from prune4rel.neighbours.similarity import Points
    >>> rows = np.array([[0], [3], [1]], dtype=np.float32)
    >>> space = Space.of(Points(rows, np.array([0.0, 9.0, 1.0])))
    >>> likely_of(space, Places.of(space, 1, share=0.9), (1, 3), 1).indices.tolist()
    [[2], [0]]
    """
    start, stop = span
    lists, near = _Lists.empty(stop - start, min(k, len(space.points) - 1)), places.near[start:stop]
    raw = space.points.raw(slice(start, stop))
    operand = space.operand(raw)
    for some in (near[:, :1], near[:, 1:]):  # its own cell first: what is found there rules most others out
        order = np.argsort(some, axis=None, kind="stable")
        begin = np.searchsorted(some.ravel()[order], np.arange(len(places.first)))
        for cell in np.flatnonzero(np.diff(begin)):
            theirs = places.members[places.first[cell] : places.first[cell + 1]]
            others = space.points.raw(theirs)
            turned = space.operand(others).T
            for a, b in spans(begin[cell + 1] - begin[cell], 2 * TILE):
                mine = order[begin[cell] + a : begin[cell] + b] // some.shape[1]
                product = operand[mine] @ turned
                _offer_columns(product, start, mine, raw, theirs, others, space.halves, space.unit, lists)
    lonely = np.flatnonzero(lists.indices[:, -1] == NOBODY)
    for a, b in spans(len(lonely), 2 * TILE):
        _compare_with_all(space, start, raw, lonely[a:b], lists)
    return Nearest(lists.squared, lists.indices)


def _choose(space: Space, k: int, share: float, seed: int, most: int | None) -> tuple[LikelyCells, int]:
    """Train the cells; also how many of them a row looks into."""
    n = len(space.points)
    k, count = min(k, n - 1), cell_count(n)
    sample = space.operand(space.points.raw(training_rows(n, count, seed)))

    def nearest(rows: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.int64]:
        return nearest_centres(rows, centres, _half_squares(centres))

    centres = find_centres(sample, count, nearest, seed, unit=False)
    judged = min(n, JUDGED_ROWS, max(64, JUDGED_PAIRS // k))
    rows = np.sort(np.random.default_rng(seed).choice(n, judged, replace=False))
    i, j = np.repeat(np.arange(len(rows)), k), _nearest_everywhere(space, rows, k).ravel()
    order = np.argsort(_far(space, rows, centres), axis=1, kind="stable")
    ranks = np.argsort(order, axis=1)[i, _nearest_cells(space, j, centres, 1)[:, 0]]
    cut, found = cut_for(-ranks.astype(np.float32), i.astype(np.int32), share)
    probes = int(1 - cut)
    if most is not None and probes > most:
        probes, cut, found = most, 1.0 - most, float((ranks < most).mean())
    return LikelyCells(centres, cut, found, min(1.0, probes / count)), probes


def _far(space: Space, rows: NDArray[np.int64], centres: NDArray[np.float32]) -> NDArray[np.float32]:
    """(m, c) how far centres are from some rows: half the squared distance, but for a number a row."""
    near: NDArray[np.float32] = space.operand(space.points.raw(rows)) @ centres.T
    return np.subtract(_half_squares(centres), near, out=near)


def _half_squares(centres: NDArray[np.float32]) -> NDArray[np.float32]:
    halves: NDArray[np.float64] = np.einsum("ij,ij->i", centres, centres, dtype=np.float64) / 2
    return halves.astype(np.float32)


def _nearest_everywhere(space: Space, rows: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """(m, k) nearest others of some rows, in single precision."""
    operand = space.operand(space.points.raw(rows))
    squares = 2 * space.halves

    def block(start: int, stop: int) -> NDArray[np.float32]:
        near = operand @ space.operand(space.points.raw(slice(start, stop))).T
        distances: NDArray[np.float32] = squares[start:stop] - 2 * near
        return distances

    with workers():
        far = np.concatenate(map_blocks(block, len(squares), 2**20 // PIECE), axis=1)
    far[np.arange(len(rows)), rows] = np.inf
    return np.argpartition(far, k - 1, axis=1)[:, :k]


def _nearest_cells(
    space: Space, rows: slice | NDArray[np.int64], centres: NDArray[np.float32], count: int
) -> NDArray[np.int32]:
    """(m, count) nearest cells of some rows, nearest first, the lowest among equals."""
    chosen = np.arange(len(space.points))[rows]
    found = np.empty((len(chosen), count), dtype=np.int32)

    def block(start: int, stop: int) -> None:
        for a, b in spans(stop - start, PIECE):
            some = slice(start + a, start + b)
            _smallest(_far(space, chosen[some], centres), found[some])

    with threadpool_limits(1, "blas"):
        map_blocks(block, len(chosen), len(centres))
    return found


@compiled
def _smallest(values: NDArray[np.float32], found: NDArray[np.int32]) -> None:
    """Fill every row of `found` with the columns of the smallest values of that row, ascending, the lowest first."""
    count = found.shape[1]
    best = np.empty(count, dtype=np.float32)
    for row in range(values.shape[0]):
        size = 0
        for start in range(0, values.shape[1], CHUNK):
            part = values[row, start : start + CHUNK]
            hit = size < count
            for c in range(part.size):
                hit = hit | (part[c] < best[count - 1])
            if not hit:
                continue
            for c in range(part.size):
                value = part[c]
                if size == count and not value < best[count - 1]:
                    continue
                at = size if size < count else count - 1
                size = min(size + 1, count)
                while at > 0 and value < best[at - 1]:
                    best[at], found[row, at] = best[at - 1], found[row, at - 1]
                    at -= 1
                best[at], found[row, at] = value, start + c


@compiled
def _offer(
    product: NDArray[np.float32],
    first_row: int,
    rows: NDArray[np.float32],
    first_column: int,
    columns: NDArray[np.float32],
    halves: NDArray[np.float32],
    unit: float,
    lists: _Lists,
) -> None:
    """Offer every pair i < j of a tile to the lists of both."""
    for r in range(product.shape[0]):
        i = first_row + r
        half = halves[i]
        this = np.int32(i)
        for start in range(max(0, i + 1 - first_column), product.shape[1], CHUNK):
            part = product[r, start : start + CHUNK]
            here = first_column + start
            others = halves[here : here + part.size]
            reaches = lists.reaches[here : here + part.size]
            open_to = lists.open_to[here : here + part.size]
            reach = lists.reaches[i] if here < lists.open_to[i] else np.float32(np.inf)
            hit = False
            for c in range(part.size):
                hit = hit | (part[c] - others[c] > reach) | ((part[c] - half > reaches[c]) & (this < open_to[c]))
            if not hit:
                continue
            for c in range(part.size):
                to_row = part[c] - others[c] > lists.reaches[i] and here + c < lists.open_to[i]
                to_column = part[c] - half > reaches[c] and i < open_to[c]
                if to_row or to_column:
                    found = squared_distance(rows[r], columns[start + c])
                    if to_row:
                        _enter(i, here + c, found, half, unit, lists)
                    if to_column:
                        _enter(here + c, i, found, others[c], unit, lists)


@compiled
def _offer_columns(
    product: NDArray[np.float32],
    first: int,
    mine: NDArray[np.int64],
    raw: NDArray[np.float32],
    columns: NDArray[np.int64],
    others: NDArray[np.float32],
    halves: NDArray[np.float32],
    unit: float,
    lists: _Lists,
) -> None:
    """Offer every column of a tile to the lists of its rows; list 0 and row 0 of `raw` are those of row `first`."""
    there = halves[columns]
    for r in range(product.shape[0]):
        own = mine[r]
        i = first + own
        half = halves[i]
        for start in range(0, product.shape[1], CHUNK):
            part = product[r, start : start + CHUNK]
            theirs = there[start : start + CHUNK]
            reach = lists.reaches[own]
            hit = False
            for c in range(part.size):
                hit = hit | (part[c] - theirs[c] > reach)
            if not hit:
                continue
            for c in range(part.size):
                j = columns[start + c]
                if part[c] - theirs[c] > lists.reaches[own] and j < lists.open_to[own] and i != j:
                    _enter(own, j, squared_distance(raw[own], others[start + c]), half, unit, lists)


@compiled
def _enter(i: int, j: int, found: float, half: float, unit: float, lists: _Lists) -> None:
    """Put j into the list of i, where it belongs there and is not in it already."""
    squared, indices = lists.squared[i], lists.indices[i]
    at = squared.size
    while at > 0 and (found < squared[at - 1] or (found == squared[at - 1] and j < indices[at - 1])):
        at -= 1
    if at == squared.size or (at > 0 and indices[at - 1] == j and squared[at - 1] == found):
        return
    for k in range(squared.size - 1, at, -1):
        squared[k] = squared[k - 1]
        indices[k] = indices[k - 1]
    squared[at] = found
    indices[at] = j
    lists.reaches[i] = reach_of(half, squared[-1], unit)
    if squared[-1] == 0.0:
        lists.open_to[i] = indices[-1]
