"""Edges, what finds them, and the graph made of them."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.blocks import spans
from prune4rel.machine import threads
from prune4rel.neighbours.screen import Rounding, Screen
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import Advance

BYTES_PER_PAIR = 40
"""Peak bytes per neighbouring pair: two entries of the finished graph (8 each), and beside them first its
upper-half entry (12), later what the greedy loop keeps of two edges (12 each)."""


class Edges(NamedTuple):
    """Directed edges i -> j with their weight, sorted by block of i, then of j, then i, then j."""

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    weight: NDArray[np.float32]

    def at(self, which: NDArray[Any]) -> "Edges":
        """Return those at some places, in their order, or where a mask says so."""
        return Edges(self.i[which], self.j[which], self.weight[which])


class TooManyEdges(Exception):  # noqa: N818 - no error: the caller goes another way
    """More edges than the caller has room for."""


class EdgeBudget:
    """Counts edges over all threads and stops them all when there are too many."""

    def __init__(self, limit: float) -> None:
        self.left = limit
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        """Use up part of the budget."""
        with self._lock:
            self.left -= count
        if self.left < 0:
            raise TooManyEdges

    def exhaust(self) -> None:
        """Make every further `take` fail."""
        with self._lock:
            self.left = -1.0


class Backend(ABC):
    """Finds neighbours among `points`, ruling out pairs by `screen` first."""

    points: Points
    screen: Screen
    check_cost: float
    rounding: Rounding
    approximate: bool = False

    @abstractmethod
    def with_screen(self, screen: Screen) -> Self:
        """Return the same rows behind another screen."""

    @abstractmethod
    def upper(self, threshold: Threshold, *, max_edges: float, advance: Advance) -> list[Edges]:
        """Every neighbouring pair i < j, in the order `Edges` promises; `TooManyEdges` past `max_edges`.

        `advance` is told the number of pairs looked at.
        """

    @abstractmethod
    def of(self, rows: NDArray[np.int64], threshold: Threshold, *, max_edges: float, advance: Advance = ...) -> Edges:
        """All neighbours j of the given rows, themselves left out; i counts along `rows`, sorted by i, then j."""


@dataclass(frozen=True)
class Graph:
    """Neighbours of every example, without itself, in ascending order.

    Row v's neighbours are ``indices[indptr[v]:indptr[v + 1]]`` with those `weights`.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def degrees(self) -> NDArray[np.int64]:
        """(n,) number of neighbours, without the example itself."""
        return np.diff(self.indptr)

    @property
    def nbytes(self) -> int:
        """Bytes the three arrays take."""
        return self.indptr.nbytes + self.indices.nbytes + self.weights.nbytes

    @classmethod
    def from_upper(cls, n: int, parts: Sequence[Edges]) -> "Graph":
        """Mirror edges i < j, given in the order of `Edges`, into the full symmetric graph."""
        below = np.zeros(n, dtype=np.int64)
        above = np.zeros(n, dtype=np.int64)
        for part in parts:
            _count(part.i, above)
            _count(part.j, below)
        indptr = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(below + above, out=indptr[1:])
        indices = np.empty(indptr[-1], dtype=np.int32)
        weights = np.empty(indptr[-1], dtype=np.float32)
        # Entries below the diagonal come first in each row, and edges arrive in order: no sorting needed.
        next_below = indptr[:-1].copy()
        next_above = indptr[:-1] + below

        def fill(rows: tuple[int, int]) -> None:
            for part in parts:
                _place(*rows, part.j, part.i, part.weight, next_below, indices, weights)
                _place(*rows, part.i, part.j, part.weight, next_above, indices, weights)

        with ThreadPoolExecutor(threads()) as pool:
            list(pool.map(fill, spans(n, -(-n // threads()))))
        return cls(indptr, indices, weights)

    @classmethod
    def from_strongest(cls, n: int, parts: Sequence[Edges]) -> "Graph":
        """Make the smallest symmetric graph that holds the given directed edges, in any order."""
        i = np.concatenate([part.i for part in parts] or [np.empty(0, np.int32)])
        j = np.concatenate([part.j for part in parts] or [np.empty(0, np.int32)])
        weight = np.concatenate([part.weight for part in parts] or [np.empty(0, np.float32)])
        low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j).astype(np.int64)
        _, first = np.unique(low * n + high, return_index=True)
        upper = Edges(low[first].astype(np.int32), high[first].astype(np.int32), weight[first])
        return cls.from_upper(n, [upper])


@compiled
def _count(rows: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    for e in range(rows.size):
        counts[rows[e]] += 1


@compiled
def _place(
    first: int,
    last: int,
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    position: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
) -> None:
    """Put the entries of rows `first` to `last` into their places."""
    for e in range(rows.size):
        row = rows[e]
        if first <= row < last:
            at = position[row]
            indices[at] = columns[e]
            weights[at] = values[e]
            position[row] = at + 1


def strongest(edges: Edges, k: int) -> Edges:
    """Keep the `k` heaviest edges of every source i; among equals, those to the lowest j."""
    order = np.lexsort((edges.j, -edges.weight, edges.i))
    i = edges.i[order]
    first = np.flatnonzero(np.r_[True, i[1:] != i[:-1]]) if i.size else np.empty(0, dtype=np.int64)
    rank = np.arange(i.size) - np.repeat(first, np.diff(np.r_[first, i.size]))
    keep = np.sort(order[rank < k])
    return edges.at(keep)
