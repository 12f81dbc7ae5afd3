"""Lazy greedy over the neighbour graph.

Gains only ever fall while examples are added, so a gain computed earlier bounds the present one from above. A
queue holds such bounds: its first is computed anew, and if it stays first it is the pick. Few gains are
computed at all, and the picks are those of the textbook loop.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.blocks import map_blocks, spans
from prune4rel.greedy.groups import Groups, next_group
from prune4rel.greedy.queue import Queue, lower, make_queue, pop, put, refill, unload
from prune4rel.greedy.utility import (
    add_support,
    log_coverage_gain,
    log_own_gain,
    losses_of_rows,
    objective,
    on_grid,
)
from prune4rel.machine import threads
from prune4rel.neighbours.graph import Graph
from prune4rel.progress import Progress

Gain = Literal["paper", "coverage"]
GAINS: tuple[str, ...] = get_args(Gain)
STEPS = 100
GONE = -2
MANY = 2048


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


CANDIDATE = np.dtype([("key", "f8"), ("own", "f8"), ("fresh", "i4"), ("slot", "i4"), ("_", "i8")])
"""What belongs to one candidate, in half a cache line: its key (a log-gain, perhaps stale), expm1(-2 confidence),
the number of picks when the key was computed, and its place in slot order."""


class _State(NamedTuple):
    """Everything the compiled loop reads and writes besides the queue.

    `near` is the graph's `indices` in slot order, in which neighbours live close to each other; `shrunk` and
    nothing else is in that order.
    """

    indptr: NDArray[np.int64]
    near: NDArray[np.int32]
    weights: NDArray[np.float32]
    lost: NDArray[np.float64]
    confidence: NDArray[np.float64]
    shrunk: NDArray[np.float64]
    left: NDArray[np.int64]
    taken: NDArray[np.int64]
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
    array([1, 0])
    """
    progress = progress or Progress()
    n = len(graph)
    first = np.empty(0, dtype=np.int64) if initial is None else initial
    parts = Groups.make(n, groups)
    coverage = gain == "coverage"
    slots = _slots(graph)
    state = _State(
        indptr=graph.indptr,
        near=_in_slots(graph, slots),
        weights=graph.weights,
        lost=_losses(graph, confidence) if coverage else np.empty(0),
        confidence=confidence,
        shrunk=np.tile([1.0, 1.0, 0.0], (n, 1)),
        left=parts.sizes.copy(),
        taken=np.zeros(len(parts.sizes), dtype=np.int64),
        picks=np.empty(size, dtype=np.int64),
        log_gains=np.empty(size),
    )
    candidates = np.zeros(n, dtype=CANDIDATE)
    candidates["own"] = np.expm1(-2.0 * confidence)
    candidates["slot"] = slots
    candidates["key"] = np.inf
    done = len(first)
    _take_in_order(parts.of, coverage, first, state, candidates)
    with progress.task("picking", total=size - done) as advance, ThreadPoolExecutor(threads()) as pool:
        compute = _Threads(pool, coverage, state, candidates)
        everyone = np.arange(n, dtype=np.int32)
        keys = np.full(n, -np.inf)
        compute(everyone, done, keys)
        finite = keys[np.isfinite(keys)]
        queue = make_queue(n, parts.starts, float(finite.max()) if finite.size else 0.0)
        _fill(parts.of, keys, candidates, queue)
        step = max(1, (size - done) // STEPS)
        while done < size:
            before = done
            done, g, waiting = _advance(coverage, done, min(size, done + step), state, candidates, queue)
            if waiting:
                some = slice(parts.starts[g], parts.starts[g] + waiting)
                compute(queue.heap[some], done, queue.heap_keys[some])
                refill(queue, g, waiting)
            advance(done - before)
    return Picks(state.picks, np.exp(state.log_gains), state.shrunk[slots, 2])


def _slots(graph: Graph) -> NDArray[np.int32]:
    """(n,) places for the examples, such that neighbours are close: the loop then finds them in the cache.

    Examples are sorted by their lowest neighbour's lowest neighbour, which the members of a cluster share.
    """
    lowest = np.arange(len(graph), dtype=np.int32)
    some = np.flatnonzero(graph.degrees)
    lowest[some] = np.minimum(lowest[some], graph.indices[graph.indptr[some]])
    slots = np.empty(len(graph), dtype=np.int32)
    slots[np.argsort(lowest[lowest], kind="stable")] = np.arange(len(graph), dtype=np.int32)
    return slots


def _in_slots(graph: Graph, slots: NDArray[np.int32]) -> NDArray[np.int32]:
    near = np.empty_like(graph.indices)
    map_blocks(lambda start, stop: np.take(slots, graph.indices[start:stop], out=near[start:stop]), len(near), 1)
    return near


def _losses(graph: Graph, confidence: NDArray[np.float64]) -> NDArray[np.float64]:
    lost = np.empty(graph.indices.size)

    def fill(start: int, stop: int) -> None:
        losses_of_rows(start, stop, confidence, graph.indptr, graph.weights, lost)

    map_blocks(fill, len(graph), max(1, graph.indices.size // max(1, len(graph))))
    return lost


@compiled
def _log_gain(coverage: bool, x: int, state: _State, candidates: NDArray[Any]) -> float:
    """Gain of x now, on the grid."""
    own = candidates[x]["own"]
    support = state.shrunk[candidates[x]["slot"], 2]
    if not coverage:
        return on_grid(log_own_gain(support, own))
    begin, end = state.indptr[x], state.indptr[x + 1]
    return on_grid(log_coverage_gain(own, support, begin, end, state.lost, state.near, state.shrunk))


@compiled
def _take(x: int, done: int, g: int, log_gain: float, state: _State, candidates: NDArray[Any]) -> None:
    """Pick x, and let it support itself and its neighbours."""
    state.picks[done] = x
    state.log_gains[done] = log_gain
    state.taken[g] += 1
    state.left[g] -= 1
    candidates[x]["fresh"] = GONE
    confidence = state.confidence[x]
    add_support(candidates[x]["slot"], confidence, state.shrunk)
    for k in range(state.indptr[x], state.indptr[x + 1]):
        add_support(state.near[k], np.float64(state.weights[k]) * confidence, state.shrunk)


@compiled
def _take_in_order(
    group_of: NDArray[np.int64],
    coverage: bool,
    initial: NDArray[np.int64],
    state: _State,
    candidates: NDArray[Any],
) -> None:
    for k in range(initial.size):
        x = initial[k]
        _take(x, k, group_of[x], _log_gain(coverage, x, state, candidates), state, candidates)


@compiled
def _compute_keys(
    some: NDArray[np.int32],
    coverage: bool,
    done: int,
    state: _State,
    candidates: NDArray[Any],
    keys: NDArray[np.float64],
) -> None:
    """Bring the keys of some candidates up to date."""
    indptr, lost, near, shrunk = state.indptr, state.lost, state.near, state.shrunk
    for k in range(some.size):
        x = some[k]
        if candidates[x]["fresh"] == GONE:
            continue
        own = candidates[x]["own"]
        support = shrunk[candidates[x]["slot"], 2]
        if coverage:
            gain = log_coverage_gain(own, support, indptr[x], indptr[x + 1], lost, near, shrunk)
        else:
            gain = log_own_gain(support, own)
        key = min(candidates[x]["key"], on_grid(gain))
        keys[k] = key
        candidates[x]["key"] = key
        candidates[x]["fresh"] = done


@dataclass(frozen=True)
class _Threads:
    """Brings many keys up to date at once."""

    pool: ThreadPoolExecutor
    coverage: bool
    state: _State
    candidates: NDArray[Any]

    def __call__(self, some: NDArray[np.int32], done: int, keys: NDArray[np.float64]) -> None:
        work = [
            self.pool.submit(_compute_keys, some[a:b], self.coverage, done, self.state, self.candidates, keys[a:b])
            for a, b in spans(len(some), max(MANY // 2, -(-len(some) // threads())))
        ]
        for piece in work:
            piece.result()


@compiled
def _fill(group_of: NDArray[np.int64], keys: NDArray[np.float64], candidates: NDArray[Any], queue: Queue) -> None:
    for x in range(keys.size):
        if candidates[x]["fresh"] != GONE:
            put(queue, group_of[x], x, keys[x])


@compiled
def _advance(
    coverage: bool, done: int, until: int, state: _State, candidates: NDArray[Any], queue: Queue
) -> tuple[int, int, int]:
    """Go on from `done` towards `until` picks.

    Returns the number of picks, a group, and how many of its candidates were unloaded and wait for new keys: 0,
    or so many that they are worth several threads.
    """
    while done < until:
        g = next_group(state.taken, state.left)
        begin = queue.starts[g]
        if queue.heap_sizes[g] == 0:
            waiting = unload(queue, g)
            if waiting >= MANY:
                return done, g, waiting
            some, keys = queue.heap[begin : begin + waiting], queue.heap_keys[begin : begin + waiting]
            _compute_keys(some, coverage, done, state, candidates, keys)
            refill(queue, g, waiting)
            continue
        x = queue.heap[begin]
        if candidates[x]["fresh"] != done:
            key = min(candidates[x]["key"], _log_gain(coverage, x, state, candidates))
            candidates[x]["key"] = key
            candidates[x]["fresh"] = done
            lower(queue, g, key)
            continue
        pop(queue, g)
        _take(x, done, g, candidates[x]["key"], state, candidates)
        done += 1
    return done, 0, 0
