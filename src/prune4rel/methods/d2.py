"""D2 pruning: difficult and diverse, by messages between nearest neighbours."""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.errors import InputError
from prune4rel.greedy.groups import Groups, next_group
from prune4rel.machine import Clock
from prune4rel.methods.checks import number, one_of, whole
from prune4rel.methods.el2n import error_norms
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.signals import Signals

Scale = Literal["mean", "none"]
SCALES: tuple[str, ...] = get_args(Scale)
GRID_BITS = 40
LARGEST_EXPONENT = 1000
STEPS = 100


class _Graph(NamedTuple):
    """(n, k) nearest neighbours, and the share of a pick's score that each of them loses."""

    neighbours: NDArray[np.int64]
    shares: NDArray[np.float64]


class _Heaps(NamedTuple):
    """One max-heap a group of all that are not picked, by score on a grid, then lowest index.

    Group g's heap is ``order[starts[g]:starts[g] + sizes[g]]``; x stands at ``place[x]`` there, or at GONE.
    """

    scores: NDArray[np.float64]
    keys: NDArray[np.float64]
    order: NDArray[np.int64]
    place: NDArray[np.int64]
    group_of: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    taken: NDArray[np.int64]


GONE = -1


@register_method(
    "d2",
    needs=("embeddings", "scores|probabilities"),
    cost="n²d/2 multiplications for the nearest neighbours, then s k log n",
    citation="Maharana, Yadav, Bansal: D2 Pruning: Message Passing for Balancing Diversity and Difficulty in Data "
    "Pruning. ICLR 2024",
    asks=("nearest",),
    extends=True,
)
def d2(signals: Signals, request: Request, *, k: int = 5, gamma: float = 0.1, scale: Scale = "mean") -> Outcome:
    """Pick difficult examples in difficult surroundings, each pick lowering its neighbours' scores.

    Forward, every score becomes s_i + Σ_j exp(-d_ij) s_j over the k nearest neighbours j. Then, again and again,
    the highest score is picked, and its neighbours lose exp(-gamma d_ij) times that score. It starts from the
    signal `scores` (higher is harder) where given, else from ‖p - onehot(given label)‖₂.

    Parameters
    ----------
    k
        Nearest neighbours, by Euclidean distance of the embeddings.
    gamma
        How fast a pick's effect on its neighbours fades with their distance; 0 for not at all.
    scale
        ``"mean"``: distances in units of the mean distance to a neighbour, so that the same gamma suits every
        network; ``"none"``: as they are.
    """
    k, gamma = whole(k, "k"), number(gamma, "gamma")
    one_of(scale, "scale", SCALES)
    clock = Clock()
    start = difficulty(signals)
    n = len(signals)
    near = request.serving(signals).nearest("embeddings", k, request.progress)
    clock.lap("neighbours")
    distances = np.sqrt(near.squared)
    unit = float(distances.mean()) if scale == "mean" and distances.any() else 1.0
    scores = start + (np.exp(-distances / unit) * start[near.indices]).sum(axis=1)
    graph = _Graph(near.indices, np.exp(-gamma * distances / unit))
    picks, gains = pick_and_lower(graph, scores, Groups.make(n, signals.labels if request.balanced else None), request)
    clock.lap("picking")
    return Outcome(
        indices=picks,
        gains=gains,
        scores=scores,
        options={"k": k, "gamma": gamma, "scale": scale},
        stats={"mean_neighbour_distance": float(distances.mean()) if distances.size else 0.0, "seconds": clock.laps},
    )


def difficulty(signals: Signals) -> NDArray[np.float64]:
    """(n,) how hard every example is by itself, higher is harder.

    >>> difficulty(Signals(labels=[0, 0], probabilities=[[1, 0], [0.5, 0.5]]))
    array([0.        , 0.70710678])
    """
    if signals.scores is None:
        return error_norms(signals.need("probabilities"), signals.labels)
    if (bad := np.flatnonzero(~np.isfinite(signals.scores))).size:
        raise InputError(
            f"scores: row {bad[0]} is infinite, and d2 adds scores up; give it a large but finite one", "scores"
        )
    return np.asarray(signals.scores, dtype=np.float64)


def pick_and_lower(
    graph: _Graph, scores: NDArray[np.float64], groups: Groups, request: Request
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pick the highest score after the initial picks, lower its neighbours', and so on.

    Returns the picks and their scores by then.

    Scores are compared on a grid of 2^-40 of the largest, so that rounding errors decide nothing; ties go to the
    lowest index.
    """
    n, size = len(scores), request.size
    heaps = _Heaps(
        scores=scores.copy(),
        keys=np.empty(n),
        order=groups.members.copy(),
        place=np.empty(n, dtype=np.int64),
        group_of=groups.of,
        starts=groups.starts,
        sizes=groups.sizes.copy(),
        taken=np.zeros(len(groups.sizes), dtype=np.int64),
    )
    grid = math.ldexp(1.0, min(GRID_BITS - math.frexp(float(np.abs(scores).max()))[1], LARGEST_EXPONENT))
    picks, gains = np.empty(size, dtype=np.int64), np.empty(size)
    _build(grid, heaps)
    step = max(1, size // STEPS)
    with request.progress.task("picking", total=size) as advance:
        for begin in range(0, size, step):
            end = min(size, begin + step)
            _pick(graph, grid, begin, end, request.first, picks, gains, heaps)
            advance(end - begin)
    return picks, gains


@compiled
def _build(grid: float, heaps: _Heaps) -> None:
    for x in range(heaps.scores.size):
        heaps.keys[x] = np.rint(heaps.scores[x] * grid)
    for g in range(heaps.sizes.size):
        for at in range(heaps.sizes[g]):
            heaps.place[heaps.order[heaps.starts[g] + at]] = at
        for at in range(heaps.sizes[g] // 2 - 1, -1, -1):
            _sink(heaps.order[heaps.starts[g] + at], heaps)


@compiled
def _pick(
    graph: _Graph,
    grid: float,
    begin: int,
    end: int,
    first: NDArray[np.int64],
    picks: NDArray[np.int64],
    gains: NDArray[np.float64],
    heaps: _Heaps,
) -> None:
    for done in range(begin, end):
        if done < first.size:
            x = first[done]
            g = heaps.group_of[x]
            heaps.keys[x] = np.inf
            _rise(x, heaps)
        else:
            g = next_group(heaps.taken, heaps.sizes)
            x = heaps.order[heaps.starts[g]]
        picks[done] = x
        gains[done] = heaps.scores[x]
        heaps.taken[g] += 1
        _remove_first(g, heaps)
        for e in range(graph.neighbours.shape[1]):
            v = graph.neighbours[x, e]
            if heaps.place[v] != GONE:
                heaps.scores[v] -= graph.shares[x, e] * heaps.scores[x]
                heaps.keys[v] = np.rint(heaps.scores[v] * grid)
                _rise(v, heaps)
                _sink(v, heaps)


@compiled
def _before(x: int, y: int, heaps: _Heaps) -> bool:
    return heaps.keys[x] > heaps.keys[y] or (heaps.keys[x] == heaps.keys[y] and x < y)


@compiled
def _remove_first(g: int, heaps: _Heaps) -> None:
    begin = heaps.starts[g]
    first = heaps.order[begin]
    heaps.sizes[g] -= 1
    last = heaps.order[begin + heaps.sizes[g]]
    heaps.order[begin] = last
    heaps.place[last] = 0
    heaps.place[first] = GONE
    if heaps.sizes[g] > 0:
        _sink(last, heaps)


@compiled
def _rise(x: int, heaps: _Heaps) -> None:
    """Move x up to where it belongs."""
    begin = heaps.starts[heaps.group_of[x]]
    at = heaps.place[x]
    while at > 0:
        above = (at - 1) // 2
        y = heaps.order[begin + above]
        if not _before(x, y, heaps):
            break
        heaps.order[begin + at] = y
        heaps.place[y] = at
        at = above
    heaps.order[begin + at] = x
    heaps.place[x] = at


@compiled
def _sink(x: int, heaps: _Heaps) -> None:
    """Move x down to where it belongs."""
    g = heaps.group_of[x]
    begin, size = heaps.starts[g], heaps.sizes[g]
    at = heaps.place[x]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _before(heaps.order[begin + below + 1], heaps.order[begin + below], heaps):
            below += 1
        y = heaps.order[begin + below]
        if not _before(y, x, heaps):
            break
        heaps.order[begin + at] = y
        heaps.place[y] = at
        at = below
    heaps.order[begin + at] = x
    heaps.place[x] = at
