"""Lazy greedy over the neighbour graph.

Gains only ever fall while examples are added, so a gain computed earlier bounds the present one from above. A
heap holds such bounds: its top is computed anew, and if it stays on top it is the pick. Few gains are ever
computed twice, and the picks are those of the textbook loop.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.blocks import map_blocks
from prune4rel.greedy.groups import Groups, next_group
from prune4rel.greedy.utility import (
    add_support,
    log_coverage_gain,
    log_own_gain,
    losses_of_rows,
    objective,
    on_grid,
)
from prune4rel.neighbours.graph import Graph
from prune4rel.progress import Progress

Gain = Literal["paper", "coverage"]
GAINS: tuple[str, ...] = get_args(Gain)
STEPS = 100


@dataclass(frozen=True)
class Picks:
    """What a greedy loop chose: examples in order, their gains, and the final support of every example."""

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    support: NDArray[np.float64]

    @property
    def objective(self) -> float:
        """Sum of tanh(support) over all examples."""
        return objective(self.support)


class _State(NamedTuple):
    """Everything the compiled loop reads and writes."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    lost: NDArray[np.float64]
    confidence: NDArray[np.float64]
    support: NDArray[np.float64]
    shrunk: NDArray[np.float64]
    keys: NDArray[np.float64]
    heap: NDArray[np.int32]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    taken: NDArray[np.int64]
    fresh: NDArray[np.int64]
    picks: NDArray[np.int64]
    log_gains: NDArray[np.float64]


def lazy_greedy(
    graph: Graph,
    confidence: NDArray[np.float64],
    size: int,
    *,
    gain: Gain,
    groups: NDArray[np.int64] | None = None,
    initial: NDArray[np.int64] | None = None,
    progress: Progress | None = None,
) -> Picks:
    """Pick `size` examples, the one with the highest gain first.

    Parameters
    ----------
    graph
        Neighbours; every example is its own neighbour with weight 1 besides.
    confidence
        (n,) non-negative, in units of eta.
    gain
        ``"coverage"``: what the objective gains; ``"paper"``: the part of it that falls on the example itself.
    groups
        (n,) classes to go round, the one with the fewest picks first; None for no balance.
    initial
        Examples that count as picked before the start; they lead the result.

    Examples
    --------
    >>> graph = Graph(np.array([0, 1, 2, 2]), np.array([1, 0], np.int32), np.array([0.9, 0.9], np.float32))
    >>> lazy_greedy(graph, np.array([0.5, 0.6, 0.5]), 2, gain="coverage").indices
    array([1, 2])
    """
    progress = progress or Progress()
    n = len(graph)
    first = np.empty(0, dtype=np.int64) if initial is None else initial
    parts = Groups.make(n, groups)
    coverage = gain == "coverage"
    state = _State(
        indptr=graph.indptr,
        indices=graph.indices,
        weights=graph.weights,
        lost=_losses(graph, confidence) if coverage else np.empty(0),
        confidence=confidence,
        support=np.zeros(n),
        shrunk=np.ones((n, 2)),
        keys=np.empty(n),
        heap=parts.members.astype(np.int32),
        starts=parts.starts,
        sizes=parts.sizes,
        taken=np.zeros(len(parts.starts), dtype=np.int64),
        fresh=np.full(n, -1, dtype=np.int64),
        picks=np.empty(size, dtype=np.int64),
        log_gains=np.empty(size),
    )
    _start(parts.of, coverage, first, state)
    done = len(first)
    with progress.task("picking", total=size - done) as advance:
        step = max(1, (size - done) // STEPS)
        while done < size:
            until = min(size, done + step)
            _advance(coverage, done, until, state)
            advance(until - done)
            done = until
    return Picks(state.picks, np.exp(state.log_gains), state.support)


def _losses(graph: Graph, confidence: NDArray[np.float64]) -> NDArray[np.float64]:
    lost = np.empty(graph.indices.size)

    def fill(start: int, stop: int) -> None:
        losses_of_rows(start, stop, confidence, graph.indptr, graph.weights, lost)

    map_blocks(fill, len(graph), max(1, graph.indices.size // max(1, len(graph))))
    return lost


@compiled
def _log_gain(coverage: bool, x: int, state: _State) -> float:
    if coverage:
        begin, end = state.indptr[x], state.indptr[x + 1]
        near, lost = state.indices[begin:end], state.lost[begin:end]
        return log_coverage_gain(x, state.confidence[x], near, lost, state.support, state.shrunk)
    return log_own_gain(state.support[x], state.confidence[x])


@compiled
def _support_around(x: int, state: _State) -> None:
    begin, end = state.indptr[x], state.indptr[x + 1]
    near, weights = state.indices[begin:end], state.weights[begin:end]
    add_support(x, state.confidence[x], near, weights, state.support, state.shrunk)


@compiled
def _start(
    group_of: NDArray[np.int64],
    coverage: bool,
    initial: NDArray[np.int64],
    state: _State,
) -> None:
    """Take the initial examples, then build one heap a group."""
    for k in range(initial.size):
        x = initial[k]
        state.picks[k] = x
        state.log_gains[k] = on_grid(_log_gain(coverage, x, state))
        state.taken[group_of[x]] += 1
        state.fresh[x] = -2  # marks it as gone
        _support_around(x, state)
    for g in range(state.starts.size):
        begin = state.starts[g]
        kept = 0
        for at in range(begin, begin + state.sizes[g]):
            x = state.heap[at]
            if state.fresh[x] == -2:
                continue
            state.heap[begin + kept] = x
            state.keys[x] = on_grid(_log_gain(coverage, x, state))
            state.fresh[x] = initial.size
            kept += 1
        state.sizes[g] = kept
        for at in range(kept // 2 - 1, -1, -1):
            _sift_down(state.keys, state.heap, begin, kept, at)


@compiled
def _advance(
    coverage: bool,
    done: int,
    until: int,
    state: _State,
) -> None:
    """Go on from `done` to `until` picks."""
    while done < until:
        g = next_group(state.taken, state.sizes)
        begin = state.starts[g]
        while True:
            x = state.heap[begin]
            if state.fresh[x] == done:
                break
            key = on_grid(_log_gain(coverage, x, state))
            state.keys[x] = min(key, state.keys[x])
            state.fresh[x] = done
            _sift_down(state.keys, state.heap, begin, state.sizes[g], 0)
        state.picks[done] = x
        state.log_gains[done] = state.keys[x]
        state.taken[g] += 1
        state.sizes[g] -= 1
        state.heap[begin] = state.heap[begin + state.sizes[g]]
        _sift_down(state.keys, state.heap, begin, state.sizes[g], 0)
        _support_around(x, state)
        done += 1


@compiled
def _sift_down(keys: NDArray[np.float64], heap: NDArray[np.int32], begin: int, size: int, at: int) -> None:
    """Restore the order of a max-heap on (key, then lowest index) below position `at`."""
    if at >= size:
        return
    x = heap[begin + at]
    key = keys[x]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        y = heap[begin + child]
        if child + 1 < size:
            z = heap[begin + child + 1]
            if keys[z] > keys[y] or (keys[z] == keys[y] and z < y):
                child += 1
                y = z
        if not (keys[y] > key or (keys[y] == key and y < x)):
            break
        heap[begin + at] = y
        at = child
    heap[begin + at] = x


