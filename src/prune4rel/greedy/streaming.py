"""Greedy by the paper's score without a graph in memory.

That score needs only an example's own support, and support changes only around picks. So neighbours are looked
up for a pool of the best candidates at a time. The best of the pool is the next pick as long as its gain is at
least the best gain outside the pool was when the pool was drawn, for gains only fall; otherwise a new pool is
drawn.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.greedy.groups import Groups, Pool, draw_pool, next_group
from prune4rel.greedy.lazy import Picks
from prune4rel.greedy.utility import log_own_gain, on_grid
from prune4rel.neighbours.graph import Backend, Edges, TooManyEdges
from prune4rel.neighbours.similarity import Threshold
from prune4rel.progress import Progress

FIRST_POOL = 256
LARGEST_POOL = 8192


class _State(NamedTuple):
    """Everything the compiled loop reads and writes."""

    support: NDArray[np.float64]
    keys: NDArray[np.float64]
    own: NDArray[np.float64]
    gone: NDArray[np.bool_]
    taken: NDArray[np.int64]
    left: NDArray[np.int64]
    picks: NDArray[np.int64]
    log_gains: NDArray[np.float64]


def streaming_greedy(
    backend: Backend,
    threshold: Threshold,
    confidence: NDArray[np.float64],
    size: int,
    *,
    groups: NDArray[np.int64] | None = None,
    initial: NDArray[np.int64] | None = None,
    max_edges: float = 2**27,
    progress: Progress | None = None,
) -> Picks:
    """Pick as `lazy_greedy` with ``gain="paper"`` does, looking up neighbours of pools of candidates only.

    `max_edges` bounds the edges held at once; a pool is made smaller where they do not fit.
    """
    progress = progress or Progress()
    n = len(confidence)
    parts = Groups.make(n, groups)
    state = _State(
        support=np.zeros(n),
        keys=np.empty(n),
        own=np.expm1(-2.0 * confidence),
        gone=np.zeros(n, dtype=np.bool_),
        taken=np.zeros(len(parts.sizes), dtype=np.int64),
        left=parts.sizes.copy(),
        picks=np.empty(size, dtype=np.int64),
        log_gains=np.empty(size),
    )
    done = 0
    if initial is not None:
        for start in range(0, len(initial), FIRST_POOL):
            some = initial[start : start + FIRST_POOL]
            edges = backend.of(some, threshold, max_edges=np.inf)
            _take_in_order(
                some, _row_starts(edges, len(some)), edges.j, edges.weight, confidence, parts.of, done, state
            )
            done += len(some)
    wanted = FIRST_POOL
    with progress.task("picking", total=size - done) as advance:
        while done < size:
            _refresh(state)
            pool, edges = _look_up(backend, threshold, state, parts, min(wanted, 4 * (size - done)), max_edges)
            before = done
            done = _pick_from_pool(
                *pool,
                _row_starts(edges, len(pool.members)),
                edges.j,
                edges.weight,
                confidence,
                done,
                state,
            )
            advance(done - before)
            wanted = int(np.clip(2 * (done - before), FIRST_POOL, LARGEST_POOL))
    return Picks(state.picks, np.exp(state.log_gains), state.support)


def _look_up(
    backend: Backend, threshold: Threshold, state: _State, parts: Groups, wanted: int, max_edges: float
) -> tuple[Pool, Edges]:
    """Draw a pool and find its neighbours, or a smaller pool where there are too many."""
    while True:
        pool = draw_pool(state.keys, state.gone, parts, wanted)
        count = len(pool.members)
        try:
            room = max_edges if count > len(parts.sizes) else np.inf
            return pool, backend.of(pool.members, threshold, max_edges=room)
        except TooManyEdges:
            wanted = count // 2


def _row_starts(edges: Edges, rows: int) -> NDArray[np.int64]:
    return np.searchsorted(edges.i, np.arange(rows + 1))


@compiled
def _refresh(state: _State) -> None:
    for x in range(state.keys.size):
        if not state.gone[x]:
            state.keys[x] = on_grid(log_own_gain(state.support[x], state.own[x]))


@compiled
def _take(
    x: int,
    group: int,
    begin: int,
    end: int,
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    confidence: NDArray[np.float64],
    done: int,
    state: _State,
) -> None:
    state.picks[done] = x
    state.gone[x] = True
    state.taken[group] += 1
    state.left[group] -= 1
    state.support[x] += confidence[x]
    for e in range(begin, end):
        state.support[indices[e]] += np.float64(weights[e]) * confidence[x]


@compiled
def _take_in_order(
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    confidence: NDArray[np.float64],
    group_of: NDArray[np.int64],
    done: int,
    state: _State,
) -> None:
    for k in range(rows.size):
        x = rows[k]
        state.log_gains[done + k] = on_grid(log_own_gain(state.support[x], state.own[x]))
        _take(x, group_of[x], starts[k], starts[k + 1], indices, weights, confidence, done + k, state)


@compiled
def _pick_from_pool(
    pool: NDArray[np.int64],
    group_of: NDArray[np.int64],
    bound_keys: NDArray[np.float64],
    bound_indices: NDArray[np.int64],
    starts: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    confidence: NDArray[np.float64],
    done: int,
    state: _State,
) -> int:
    """Pick while the pool's best is surely the best of all; returns how many are picked in all."""
    while done < state.picks.size:
        g = next_group(state.taken, state.left)
        best = -1
        best_key = -math.inf
        for k in range(pool.size):
            x = pool[k]
            if group_of[k] != g or state.gone[x]:
                continue
            if best >= 0 and state.keys[x] < best_key:
                continue  # a gain computed earlier is a bound: no need to compute this one
            key = min(state.keys[x], on_grid(log_own_gain(state.support[x], state.own[x])))
            state.keys[x] = key
            if best < 0 or key > best_key or (key == best_key and x < pool[best]):
                best, best_key = k, key
        if best < 0:
            return done
        x = pool[best]
        outside = bound_indices[g]
        if best_key < bound_keys[g] or (best_key == bound_keys[g] and outside < x):
            return done
        state.log_gains[done] = best_key
        _take(x, g, starts[best], starts[best + 1], indices, weights, confidence, done, state)
        done += 1
    return done
