"""The k nearest neighbours of every example by Euclidean distance, ties to the lowest index: exact, or in cells.

In cells a row is compared with those that lie in the cells whose centres are nearest to it, and with those that look
into its own. How many cells that takes is settled on sampled rows, whose nearest neighbours are found everywhere.
"""

import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.blocks import map_blocks, spans
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
NOBODY = np.iinfo(np.int32).max
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
        rows = space.points.raw(slice(span[0] + start, span[0] + stop))
        operand = space.operand(rows)
        lists = _Lists.empty(stop - start, found.indices.shape[1])
        for begin, end in spans(n, TILE):
            columns = space.points.raw(slice(begin, end))
            product = operand @ space.operand(columns).T
            _offer_columns(product, span[0] + start, rows, begin, columns, space.halves, space.unit, lists)
        found.squared[start:stop], found.indices[start:stop] = lists.squared, lists.indices
    return found


def likely_neighbours(
    space: Space, k: int, *, share: float, seed: int = 0, advance: Advance = no_advance
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
    k = min(k, n - 1)
    lists = _Lists.empty(n, k)
    if k == 0:
        return Nearest(lists.squared, lists.indices), LikelyCells(
            np.zeros((1, space.points.dim), np.float32), 0.0, 1.0, 0.0
        )
    cells, offsets, probes = _choose(space, k, share, seed)
    near = _nearest_cells(space, slice(None), cells.centres, offsets, probes)
    count = len(cells.centres)
    members = np.argsort(near[:, 0], kind="stable")
    first = np.searchsorted(near[members, 0], np.arange(count + 1))
    places = np.argsort(near.ravel(), kind="stable")
    looking = places // probes
    begin = np.searchsorted(near.ravel()[places], np.arange(count + 1))
    step = n * (n + 1) / 2 / max(1, int((np.diff(first) * np.diff(begin)).sum()))
    one_at_a_time = threading.Lock()

    def compare(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
        raw, others = space.points.raw(rows), space.points.raw(columns)
        product = space.operand(raw) @ space.operand(others).T
        with one_at_a_time:
            _offer_some(product, rows, raw, columns, others, space.halves, space.unit, lists)

    def search(cell: int) -> None:
        mine, theirs = members[first[cell] : first[cell + 1]], looking[begin[cell] : begin[cell + 1]]
        for a, b in spans(len(theirs), tile := 2 * TILE):
            for c, d in spans(len(mine), tile):
                compare(theirs[a:b], mine[c:d])
        advance(step * len(mine) * len(theirs))

    with workers() as pool:
        list(pool.map(search, range(count)))
        lonely = np.flatnonzero(lists.indices[:, -1] == NOBODY)
        everyone = np.arange(n)
        for a, b in spans(len(lonely), TILE):
            list(pool.map(lambda span, some=lonely[a:b]: compare(some, everyone[slice(*span)]), spans(n, TILE)))
    return Nearest(lists.squared, lists.indices), cells


def _choose(space: Space, k: int, share: float, seed: int) -> tuple[LikelyCells, NDArray[np.float32], int]:
    """Train the cells; also half the squared lengths of their centres, and how many of them a row looks into."""
    n = len(space.points)
    count = cell_count(n)
    sample = space.operand(space.points.raw(training_rows(n, count, seed)))

    def nearest(rows: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.int64]:
        return nearest_centres(rows, centres, _half_squares(centres))

    centres = find_centres(sample, count, nearest, seed, unit=False)
    offsets = _half_squares(centres)
    judged = min(n, JUDGED_ROWS, max(64, JUDGED_PAIRS // k))
    rows = np.sort(np.random.default_rng(seed).choice(n, judged, replace=False))
    i, j = np.repeat(np.arange(len(rows)), k), _nearest_everywhere(space, rows, k).ravel()
    there = _nearest_cells(space, np.r_[rows, j], centres, offsets, count)
    order = np.argsort(there, axis=1, kind="stable")
    mine, theirs = there[i, 0], there[len(rows) :, 0]
    seen = np.arange(len(j)) + len(rows)
    ranks = np.minimum(order[i, theirs], order[seen, mine])
    cut, found = cut_for(-ranks.astype(np.float32), i.astype(np.int32), share)
    probes = int(1 - cut)
    return LikelyCells(centres, cut, found, min(1.0, 2 * probes / count)), offsets, probes


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
    space: Space,
    rows: slice | NDArray[np.int64],
    centres: NDArray[np.float32],
    offsets: NDArray[np.float32],
    count: int,
) -> NDArray[np.int32]:
    """(m, count) nearest cells of some rows, nearest first, the lowest among equals."""
    chosen = np.arange(len(space.points))[rows]
    turned = np.ascontiguousarray(centres.T)

    def block(start: int, stop: int) -> NDArray[np.int32]:
        far = offsets - space.operand(space.points.raw(chosen[start:stop])) @ turned
        if count < far.shape[1]:
            some = np.sort(np.argpartition(far, count - 1, axis=1)[:, :count], axis=1)
        else:
            some = np.broadcast_to(np.arange(far.shape[1]), far.shape)
        order = np.argsort(np.take_along_axis(far, some, axis=1), axis=1, kind="stable")
        return np.take_along_axis(some, order, axis=1).astype(np.int32)

    with workers():
        return np.concatenate(map_blocks(block, len(chosen), 2**20 // PIECE))


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
    first_row: int,
    rows: NDArray[np.float32],
    first_column: int,
    columns: NDArray[np.float32],
    halves: NDArray[np.float32],
    unit: float,
    lists: _Lists,
) -> None:
    """Offer every column of a tile to the lists of its rows, of which the first is list 0."""
    for r in range(product.shape[0]):
        half = halves[first_row + r]
        for c in range(product.shape[1]):
            j = first_column + c
            if product[r, c] - halves[j] > lists.reaches[r] and j < lists.open_to[r] and j != first_row + r:
                _enter(r, j, squared_distance(rows[r], columns[c]), half, unit, lists)


@compiled
def _offer_some(
    product: NDArray[np.float32],
    rows: NDArray[np.int64],
    raw: NDArray[np.float32],
    columns: NDArray[np.int64],
    others: NDArray[np.float32],
    halves: NDArray[np.float32],
    unit: float,
    lists: _Lists,
) -> None:
    """Offer every pair of a row and a column, both given by their numbers, to the lists of both."""
    column_halves, reaches = halves[columns], lists.reaches[columns]
    for r in range(product.shape[0]):
        i = rows[r]
        half = halves[i]
        for start in range(0, product.shape[1], CHUNK):
            part = product[r, start : start + CHUNK]
            there = column_halves[start : start + CHUNK]
            reach_there = reaches[start : start + CHUNK]
            reach = lists.reaches[i]
            hit = False
            for c in range(part.size):
                hit = hit | (part[c] - there[c] > reach) | (part[c] - half > reach_there[c])
            if not hit:
                continue
            for c in range(part.size):
                j = columns[start + c]
                to_row = part[c] - there[c] > lists.reaches[i] and j < lists.open_to[i]
                to_column = part[c] - half > lists.reaches[j] and i < lists.open_to[j]
                if i != j and (to_row or to_column):
                    found = squared_distance(raw[r], others[start + c])
                    if to_row:
                        _enter(i, j, found, half, unit, lists)
                    if to_column:
                        _enter(j, i, found, there[c], unit, lists)


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
