"""Facility location: the subset that is most similar to everything."""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.errors import InputError
from prune4rel.greedy.groups import Groups, next_group
from prune4rel.greedy.memory import compile_loops
from prune4rel.greedy.queue import Queue, lower, make_queue, pop, put, refill, unload
from prune4rel.machine import Clock, format_bytes, memory_budget
from prune4rel.methods.checks import check_tau, one_of
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.neighbours.build import Neighbourhood
from prune4rel.neighbours.graph import Graph, TooManyEdges
from prune4rel.neighbours.similarity import SIMILARITIES, Similarity
from prune4rel.progress import Progress
from prune4rel.signals import Signals

TARGET_DEGREE = 50.0
STEPS = 100
HIGHEST_KEY = 512.0
"""Gains are scaled to keys below this, to make good use of the queue's buckets."""


class _State(NamedTuple):
    """What the compiled loop reads and writes besides the queue.

    `best` is every example's similarity to the most similar pick, `fresh` the number of picks when a key was
    computed, or GONE.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    best: NDArray[np.float64]
    keys: NDArray[np.float64]
    fresh: NDArray[np.int64]
    left: NDArray[np.int64]
    taken: NDArray[np.int64]
    picks: NDArray[np.int64]
    gains: NDArray[np.float64]


GONE = -1


@register_method(
    "facility-location",
    needs=("embeddings",),
    cost="n²d/2 multiplications at most, then about |edges| log n",
    citation="Wei, Iyer, Bilmes: Submodularity in Data Subset Selection and Active Learning. ICML 2015",
    asks=("neighbours",),
    extends=True,
)
def facility_location(
    signals: Signals,
    request: Request,
    *,
    tau: float | Literal["auto"] = "auto",
    similarity: Similarity = "shifted-cosine",
    target_degree: float = TARGET_DEGREE,
    allow_zero: bool = False,
    memory: str | int | None = None,
) -> Outcome:
    """Maximise the similarity of every example to the pick it is most similar to.

    The objective is Σ_v max_{x picked} sim(v, x), where similarities below tau count as 0 and an example has
    similarity 1 to itself. Picks are those of the greedy algorithm, within 1 - 1/e of the optimum (1/2 where
    balanced). The score of an example is its gain as the first pick, highest picked first.

    Parameters
    ----------
    tau
        Similarity from which on it counts, 0 to 1; ``"auto"`` finds the one at which examples have `target_degree`
        neighbours on average.
    similarity
        ``"cosine"``, or ``"shifted-cosine"``, (1 + cosine) / 2.
    target_degree
        Mean number of neighbours that ``tau="auto"`` aims at.
    allow_zero
        Treat all-zero embeddings as isolated instead of refusing them.
    memory
        Memory the graph may take, such as ``"8GB"``; by default 60 % of what is available.
    """
    compile_loops(request.progress)
    clock = Clock()
    tau = check_tau(tau)
    one_of(similarity, "similarity", SIMILARITIES)
    near = request.serving(signals).neighbourhood(
        tau=tau,
        similarity=similarity,
        target_degree=target_degree,
        allow_zero=allow_zero,
        device=request.device,
        progress=request.progress,
    )
    clock.lap("estimate")
    request.progress.say(near.estimate.describe())
    graph = _graph(near, memory_budget(memory), request.progress)
    clock.lap("graph")
    groups = signals.labels if request.balanced else None
    picks, gains, scores = cover(graph, request.size, groups, request.progress, initial=request.initial)
    clock.lap("greedy")
    stats: dict[str, Any] = {
        "mean_degree": float(graph.degrees.mean()),
        "isolated": float((graph.degrees == 0).mean()),
        "edges": int(graph.indices.size),
        "zero_gain_picks": float((gains == 0).mean()),
        "seconds": clock.laps,
    }
    return Outcome(
        indices=picks,
        gains=gains,
        objective=math.fsum(gains),
        scores=scores,
        options={
            "tau": near.threshold.tau,
            "similarity": similarity,
            "target_degree": float(target_degree),
            "allow_zero": allow_zero,
        },
        stats=stats | ({"approximate": True} if near.backend.approximate else {}),
        notes=_notes(stats),
    )


def _graph(near: Neighbourhood, budget: int, progress: Progress) -> Graph:
    """Build the graph, or say what it would take."""
    estimate = near.estimate
    if estimate.graph_bytes <= budget:
        try:
            return near.graph(max_bytes=budget, progress=progress)
        except TooManyEdges:
            pass
    raise InputError(
        f"the neighbour graph would take about {format_bytes(estimate.graph_bytes)} ({estimate.edges:,} edges, "
        f"{estimate.mean_degree:.0f} an example at tau = {estimate.tau:g}), and {format_bytes(budget)} may be used. "
        "Use tau='auto', a higher tau, a lower target_degree, or more memory"
    )


def _notes(stats: dict[str, Any]) -> tuple[str, ...]:
    notes = []
    if stats["isolated"] > 0.5:
        notes.append(
            f"{stats['isolated']:.0%} of the examples have no neighbour at this tau and stand for themselves only; "
            "lower tau or use tau='auto'."
        )
    if stats["zero_gain_picks"] > 0.05:
        notes.append(
            f"{stats['zero_gain_picks']:.0%} of the picks gained nothing: a pick with similarity 1 stood for them "
            "already, so a smaller subset would do."
        )
    return tuple(notes)


def cover(
    graph: Graph,
    size: int,
    groups: NDArray[np.int64] | None = None,
    progress: Progress | None = None,
    initial: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Pick by lazy greedy; returns the picks, their gains, and everybody's gain as the first pick.

    Gains only fall, so one computed earlier bounds the present one from above: only what comes first in the queue
    is computed anew. Picks begin with the `initial` ones, if any.

    Examples
    --------
    >>> graph = Graph(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32), np.full(4, 0.5, np.float32))
    >>> cover(graph, 2)
    (array([1, 0]), array([2. , 0.5]), array([1.5, 2. , 1.5]))
    """
    n = len(graph)
    parts = Groups.make(n, groups)
    state = _State(
        indptr=graph.indptr,
        indices=graph.indices,
        weights=graph.weights,
        best=np.zeros(n),
        keys=np.empty(n),
        fresh=np.zeros(n, dtype=np.int64),
        left=parts.sizes.copy(),
        taken=np.zeros(len(parts.sizes), dtype=np.int64),
        picks=np.empty(size, dtype=np.int64),
        gains=np.empty(size),
    )
    scores = np.empty(n)
    _first_gains(state, scores)
    start = np.empty(0, dtype=np.int64) if initial is None else initial
    for done, x in enumerate(start.tolist()):
        _take(x, parts.of[x], _gain(x, state), done, state)
    scale = math.ldexp(HIGHEST_KEY, -math.frexp(float(scores.max()))[1])
    queue = make_queue(n, parts.starts, float(scores.max()) * scale)
    _fill(parts.of, scores, scale, state, queue)
    step = max(1, size // STEPS)
    with (progress or Progress()).task("picking", total=size) as advance:
        advance(len(start))
        for begin in range(len(start), size, step):
            end = min(size, begin + step)
            _pick(scale, begin, end, state, queue)
            advance(end - begin)
    return state.picks, state.gains, scores


@compiled
def _gain(x: int, state: _State) -> float:
    """Compute what the objective gains by x; the terms are float32 numbers near 1, so that their sum is exact."""
    total: float = 1.0 - state.best[x]
    for e in range(state.indptr[x], state.indptr[x + 1]):
        total += max(0.0, np.float64(state.weights[e]) - state.best[state.indices[e]])
    return total


@compiled
def _take(x: int, g: int, gain: float, done: int, state: _State) -> None:
    state.picks[done] = x
    state.gains[done] = gain
    state.taken[g] += 1
    state.left[g] -= 1
    state.fresh[x] = GONE
    state.best[x] = 1.0
    for e in range(state.indptr[x], state.indptr[x + 1]):
        v = state.indices[e]
        state.best[v] = max(state.best[v], np.float64(state.weights[e]))


@compiled
def _first_gains(state: _State, scores: NDArray[np.float64]) -> None:
    for x in range(scores.size):
        scores[x] = _gain(x, state)


@compiled
def _fill(group_of: NDArray[np.int64], scores: NDArray[np.float64], scale: float, state: _State, queue: Queue) -> None:
    for x in range(scores.size):
        if state.fresh[x] == GONE:
            continue
        state.keys[x] = scores[x] * scale
        put(queue, group_of[x], x, state.keys[x])


@compiled
def _refresh(x: int, scale: float, done: int, state: _State) -> float:
    key: float = min(state.keys[x], _gain(x, state) * scale)
    state.keys[x] = key
    state.fresh[x] = done
    return key


@compiled
def _pick(scale: float, done: int, until: int, state: _State, queue: Queue) -> None:
    """Go on from `done` to `until` picks."""
    while done < until:
        g = next_group(state.taken, state.left)
        begin = queue.starts[g]
        if queue.heap_sizes[g] == 0:
            waiting = unload(queue, g)
            for at in range(begin, begin + waiting):
                queue.heap_keys[at] = _refresh(queue.heap[at], scale, done, state)
            refill(queue, g, waiting)
            continue
        x = queue.heap[begin]
        if state.fresh[x] != done:
            lower(queue, g, _refresh(x, scale, done, state))
            continue
        pop(queue, g)
        _take(x, g, state.keys[x] / scale, done, state)
        done += 1
