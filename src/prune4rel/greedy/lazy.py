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
"""So many keys are worth several threads; an eighth of them where every key takes a sum over neighbours."""

NEVER = -1.0
"""A support that nobody has."""


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


CANDIDATE = np.dtype([("key", "f8"), ("own", "f8"), ("seen", "f8"), ("fresh", "i4"), ("_", "i4")])
"""What belongs to one candidate, in half a cache line: its key (a log-gain, perhaps stale), expm1(-2 confidence), and
its own support and the number of picks when the key was computed."""


class _State(NamedTuple):
    """Everything the compiled loop reads and writes besides the queue.

    Examples are numbered by their slots, in which neighbours live close to each other; `example` tells who lives in a
    slot. Rows of edges begin at `ends`, neighbours are slots; only `weights` lie as in the graph, from `indptr` on.
    """

    example: NDArray[np.int32]
    ends: NDArray[np.int64]
    near: NDArray[np.int32]
    lost: NDArray[np.float64]
    indptr: NDArray[np.int64]
    weights: NDArray[np.float32]
    confidence: NDArray[np.float64]
    shrunk: NDArray[np.float64]
    candidates: NDArray[Any]
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
    slots, example = _slots(graph)
    state = _State(
        example=example,
        **_edges_by_slot(graph, slots, example, confidence if coverage else None),
        indptr=graph.indptr,
        weights=graph.weights,
        confidence=confidence,
        shrunk=np.tile([1.0, 1.0, 0.0], (n, 1)),
        candidates=np.zeros(n, dtype=CANDIDATE),
        left=parts.sizes.copy(),
        taken=np.zeros(len(parts.sizes), dtype=np.int64),
        picks=np.empty(size, dtype=np.int64),
        log_gains=np.empty(size),
    )
    state.candidates["own"] = np.expm1(-2.0 * confidence)[example]
    state.candidates["key"] = np.inf
    state.candidates["seen"] = NEVER
    done = len(first)
    group_of = parts.of[example]
    _take_in_order(group_of, coverage, slots[first], state)
    with progress.task("picking", total=size - done) as advance, ThreadPoolExecutor(threads()) as pool:
        compute = _Threads(pool, coverage, state)
        everyone = np.arange(n, dtype=np.int32)
        keys = np.full(n, -np.inf)
        compute(everyone, done, keys)
        finite = keys[np.isfinite(keys)]
        queue = make_queue(n, parts.starts, float(finite.max()) if finite.size else 0.0, example)
        _fill(group_of, keys, state.candidates, queue)
        step = max(1, (size - done) // STEPS)
        while done < size:
            before = done
            done, g, waiting = _advance(coverage, done, min(size, done + step), state, queue)
            if waiting:
                some = slice(parts.starts[g], parts.starts[g] + waiting)
                compute(queue.heap[some], done, queue.heap_keys[some])
                refill(queue, g, waiting)
            advance(done - before)
    return Picks(state.picks, np.exp(state.log_gains), state.shrunk[slots, 2])


def _slots(graph: Graph) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(n,) places for the examples, such that neighbours are close, and (n,) who lives there.

    The loop then finds neighbours in the cache. Examples are sorted by their lowest neighbour's lowest neighbour,
    which the members of a cluster share.
    """
    lowest = np.arange(len(graph), dtype=np.int32)
    some = np.flatnonzero(graph.degrees)
    lowest[some] = np.minimum(lowest[some], graph.indices[graph.indptr[some]])
    example = np.argsort(lowest[lowest], kind="stable").astype(np.int32)
    slots = np.empty(len(graph), dtype=np.int32)
    slots[example] = np.arange(len(graph), dtype=np.int32)
    return slots, example


def _edges_by_slot(
    graph: Graph, slots: NDArray[np.int32], example: NDArray[np.int32], confidence: NDArray[np.float64] | None
) -> dict[str, Any]:
    """Rows of neighbours in slot order; with a confidence, what a gain needs to know of every edge, too."""
    ends = np.zeros(len(graph) + 1, dtype=np.int64)
    np.cumsum(graph.degrees[example], out=ends[1:])
    near = np.empty_like(graph.indices)
    lost = np.empty(0 if confidence is None else graph.indices.size)

    def fill(start: int, stop: int) -> None:
        _move_rows(start, stop, example, slots, graph.indptr, graph.indices, ends, near)
        if confidence is not None:
            losses_of_rows(start, stop, example, confidence, graph.indptr, graph.weights, ends, lost)

    map_blocks(fill, len(graph), max(1, 4 * graph.indices.size // max(1, len(graph))))
    return {"ends": ends, "near": near, "lost": lost}


@compiled
def _move_rows(
    start: int,
    stop: int,
    example: NDArray[np.int32],
    slots: NDArray[np.int32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    ends: NDArray[np.int64],
    near: NDArray[np.int32],
) -> None:
    for slot in range(start, stop):
        shift = indptr[example[slot]] - ends[slot]
        for k in range(ends[slot], ends[slot + 1]):
            near[k] = slots[indices[k + shift]]


@compiled
def _compute_keys(some: NDArray[np.int32], coverage: bool, done: int, state: _State, keys: NDArray[np.float64]) -> None:
    """Bring the keys of some candidates up to date; the paper's gain depends on the own support alone.

    (What the state holds is taken out first: passing all of it on for every key would take longer than the gain.)
    """
    candidates, shrunk = state.candidates, state.shrunk
    ends, lost, near = state.ends, state.lost, state.near
    for k in range(some.size):
        slot = some[k]
        if candidates[slot]["fresh"] == GONE:
            continue
        own, key, support = candidates[slot]["own"], candidates[slot]["key"], shrunk[slot, 2]
        if coverage:
            gain = log_coverage_gain(own, support, ends[slot], ends[slot + 1], lost, near, shrunk)
            key = min(key, on_grid(gain))
        elif candidates[slot]["seen"] != support:
            key = min(key, on_grid(log_own_gain(support, own)))
        keys[k] = key
        candidates[slot]["key"] = key
        candidates[slot]["seen"] = support
        candidates[slot]["fresh"] = done


@compiled
def _refresh(slot: int, coverage: bool, done: int, state: _State) -> float:
    """Bring a key up to date and return it."""
    some, keys = np.array([slot], dtype=np.int32), np.empty(1)
    _compute_keys(some, coverage, done, state, keys)
    return float(keys[0])


@compiled
def _take(slot: int, done: int, g: int, coverage: bool, state: _State) -> None:
    """Pick who lives in a slot, and let it support itself and its neighbours."""
    x = state.example[slot]
    state.picks[done] = x
    state.log_gains[done] = state.candidates[slot]["key"]
    state.taken[g] += 1
    state.left[g] -= 1
    state.candidates[slot]["fresh"] = GONE
    confidence = state.confidence[x]
    begin = state.ends[slot]
    shift = state.indptr[x] - begin
    if coverage:
        add_support(slot, confidence, state.shrunk)
        for k in range(begin, state.ends[slot + 1]):
            add_support(state.near[k], np.float64(state.weights[k + shift]) * confidence, state.shrunk)
    else:
        state.shrunk[slot, 2] += confidence
        for k in range(begin, state.ends[slot + 1]):
            state.shrunk[state.near[k], 2] += np.float64(state.weights[k + shift]) * confidence


@compiled
def _take_in_order(group_of: NDArray[np.int64], coverage: bool, initial: NDArray[np.int32], state: _State) -> None:
    for k in range(initial.size):
        slot = initial[k]
        state.candidates[slot]["key"] = np.inf
        _refresh(slot, coverage, k, state)
        _take(slot, k, group_of[slot], coverage, state)


@compiled
def _many(coverage: bool) -> int:
    return MANY // 8 if coverage else MANY


@dataclass(frozen=True)
class _Threads:
    """Brings many keys up to date at once."""

    pool: ThreadPoolExecutor
    coverage: bool
    state: _State

    def __call__(self, some: NDArray[np.int32], done: int, keys: NDArray[np.float64]) -> None:
        work = [
            self.pool.submit(_compute_keys, some[a:b], self.coverage, done, self.state, keys[a:b])
            for a, b in spans(len(some), max(_many(self.coverage) // 2, -(-len(some) // threads())))
        ]
        for piece in work:
            piece.result()


@compiled
def _fill(group_of: NDArray[np.int64], keys: NDArray[np.float64], candidates: NDArray[Any], queue: Queue) -> None:
    for slot in range(keys.size):
        if candidates[slot]["fresh"] != GONE:
            put(queue, group_of[slot], slot, keys[slot])


@compiled
def _advance(coverage: bool, done: int, until: int, state: _State, queue: Queue) -> tuple[int, int, int]:
    """Go on from `done` towards `until` picks.

    Returns the number of picks, a group, and how many of its candidates were unloaded and wait for new keys: 0,
    or so many that they are worth several threads.
    """
    while done < until:
        g = next_group(state.taken, state.left)
        begin = queue.starts[g]
        if queue.heap_sizes[g] == 0:
            waiting = unload(queue, g)
            if waiting >= _many(coverage):
                return done, g, waiting
            some, keys = queue.heap[begin : begin + waiting], queue.heap_keys[begin : begin + waiting]
            _compute_keys(some, coverage, done, state, keys)
            refill(queue, g, waiting)
            continue
        slot = queue.heap[begin]
        if coverage:
            fresh = state.candidates[slot]["fresh"] == done
        else:
            fresh = state.candidates[slot]["seen"] == state.shrunk[slot, 2]
        if not fresh:
            lower(queue, g, _refresh(slot, coverage, done, state))
            continue
        pop(queue, g)
        _take(slot, done, g, coverage, state)
        done += 1
    return done, 0, 0
