"""The k nearest neighbours of every example by Euclidean distance, exact, ties to the lowest index."""

import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.blocks import spans
from prune4rel.neighbours.euclidean import CHUNK, Space, reach_of, squared_distance, workers
from prune4rel.progress import Advance, no_advance

TILE = 1024
NOBODY = np.iinfo(np.int32).max


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
    lists = _Lists(
        squared=np.full((n, k), np.inf),
        indices=np.full((n, k), NOBODY, dtype=np.int64),
        reaches=np.full(n, -np.inf, dtype=np.float32),
        open_to=np.full(n, NOBODY, dtype=np.int32),
    )
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
def _enter(i: int, j: int, found: float, half: float, unit: float, lists: _Lists) -> None:
    """Put j into the list of i, where it belongs there."""
    squared, indices = lists.squared[i], lists.indices[i]
    at = squared.size
    while at > 0 and (found < squared[at - 1] or (found == squared[at - 1] and j < indices[at - 1])):
        at -= 1
    if at == squared.size:
        return
    for k in range(squared.size - 1, at, -1):
        squared[k] = squared[k - 1]
        indices[k] = indices[k - 1]
    squared[at] = found
    indices[at] = j
    lists.reaches[i] = reach_of(half, squared[-1], unit)
    if squared[-1] == 0.0:
        lists.open_to[i] = indices[-1]
