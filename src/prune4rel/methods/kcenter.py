"""k-center: every example close to a pick, by always picking the farthest."""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.greedy.groups import Groups, Pool, draw_pool, next_group
from prune4rel.methods.checks import one_of
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.neighbours.euclidean import (
    CHUNK,
    Space,
    column_sums,
    limit_for,
    squared_distance,
    squared_distances_to,
)
from prune4rel.neighbours.similarity import Points
from prune4rel.signals import Signals

Start = Literal["random", "first", "medoid"]
STARTS: tuple[str, ...] = get_args(Start)
SMALLEST_POOL = 1024
LARGEST_POOL = 4096


class _State(NamedTuple):
    """What grows with the picks: squared distances to the nearest pick, and who is picked."""

    nearest: NDArray[np.float64]
    gone: NDArray[np.bool_]
    taken: NDArray[np.int64]
    left: NDArray[np.int64]
    picks: NDArray[np.int64]
    gains: NDArray[np.float64]


@register_method(
    "kcenter",
    needs=("embeddings",),
    cost="n s d multiplications in matrix products, memory for n distances",
    citation="Sener, Savarese: Active Learning for Convolutional Neural Networks: A Core-Set Approach. ICLR 2018",
    extends=True,
    seeded=True,
)
def kcenter(signals: Signals, request: Request, *, start: Start = "random") -> Outcome:
    """Pick the example farthest from all picks so far, again and again.

    score = Euclidean distance to the nearest pick, farthest picked first. This greedy keeps the largest distance
    of any example to its nearest pick, the objective, within twice the optimum. Balanced goes round the classes
    and takes the farthest of each from the picks of all classes; that bound is lost then.

    Parameters
    ----------
    start
        The first pick, unless there is an `initial` one: ``"random"`` by the seed, ``"first"`` (row 0) or
        ``"medoid"`` (nearest to the mean); where balanced, among the first class.
    """
    one_of(start, "start", STARTS)
    points = Points(signals.need("embeddings"), signals.squared_norms["embeddings"])
    space = _space(points, request.device)
    groups = Groups.make(len(points), signals.labels if request.balanced else None)
    initial = request.initial
    if initial is None:
        initial = np.array([_first(space, groups, start, request.seed)])
    state, rounds = farthest_first(space, groups, initial, request)
    distances = np.sqrt(state.nearest)
    return Outcome(
        indices=state.picks,
        gains=np.sqrt(state.gains),
        objective=float(distances.max()),
        scores=distances,
        options={"start": start},
        stats={"rounds": rounds},
    )


def _space(points: Points, device: str) -> Space:
    if not device.startswith("cuda"):
        return Space.of(points)
    from prune4rel.neighbours.euclidean_cuda import TorchSpace  # noqa: PLC0415 - imports torch

    return TorchSpace.on(Space.of(points), device)


def _first(space: Space, groups: Groups, start: str, seed: int) -> int:
    members = groups.members[: groups.sizes[groups.sizes > 0][0]]
    if start == "first":
        return int(members[0])
    if start == "random":
        return int(np.random.default_rng(seed).choice(members))
    total = column_sums(space.points, slice(None))
    return int(members[np.argmin(squared_distances_to(space.points, members, total, len(space.points)))])


def farthest_first(space: Space, groups: Groups, initial: NDArray[np.int64], request: Request) -> tuple[_State, int]:
    """Pick `request.size` examples, `initial` (one at least) before all; also tells how many pools it took.

    A pool holds the farthest examples. Distances only fall, so the farthest of the pool is the farthest of all
    as long as it is at least as far as the farthest outside was when the pool was drawn. Its picks need the
    distances within the pool only; all others catch up with all picks of the pool in one matrix product.
    """
    n, size = len(groups.of), request.size
    state = _State(
        nearest=np.full(n, np.inf),
        gone=np.zeros(n, dtype=np.bool_),
        taken=np.zeros(len(groups.sizes), dtype=np.int64),
        left=groups.sizes.copy(),
        picks=np.empty(size, dtype=np.int64),
        gains=np.empty(size),
    )
    _take(initial[0], groups.of[initial[0]], math.inf, 0, state)
    space.lower_nearest(state.picks[:1], state.nearest)
    done, rounds, wanted = 1, 0, SMALLEST_POOL
    with request.progress.task("picking", total=size) as advance:
        advance(1)
        while done < len(initial):
            members = initial[done : done + SMALLEST_POOL]
            raw, products = space.points.raw(members), space.products(members)
            _take_all(members, groups.of[members], products, raw, space.halves[members], space.unit, done, state)
            space.lower_nearest(members, state.nearest)
            done += len(members)
            advance(len(members))
        while done < size:
            pool = draw_pool(state.nearest, state.gone, groups, wanted)
            raw = space.points.raw(pool.members)
            before, products = done, space.products(pool.members)
            done = _pick(products, raw, space.halves[pool.members], space.unit, pool, done, state)
            space.lower_nearest(state.picks[before:done], state.nearest)
            advance(done - before)
            rounds += 1
            wanted = min(max(3 * (done - before), SMALLEST_POOL), max(n // 24, SMALLEST_POOL), LARGEST_POOL)
    return state, rounds


@compiled
def _take(x: int, g: int, squared: float, done: int, state: _State) -> None:
    state.picks[done] = x
    state.gains[done] = squared
    state.gone[x] = True
    state.taken[g] += 1
    state.left[g] -= 1


@compiled
def _take_all(
    members: NDArray[np.int64],
    group_of: NDArray[np.int64],
    products: NDArray[np.float32],
    raw: NDArray[np.float32],
    halves: NDArray[np.float32],
    unit: float,
    done: int,
    state: _State,
) -> None:
    """Take all members in their order, each for the distance it has by then."""
    keys = state.nearest[members]
    limits = np.empty(members.size, dtype=np.float32)
    for k in range(members.size):
        limits[k] = limit_for(halves[k], keys[k], unit)
    for k in range(members.size):
        _take(members[k], group_of[k], keys[k], done + k, state)
        _come_nearer(k, products[k], raw, halves, unit, keys, limits)


@compiled
def _pick(
    products: NDArray[np.float32],
    raw: NDArray[np.float32],
    halves: NDArray[np.float32],
    unit: float,
    pool: Pool,
    done: int,
    state: _State,
) -> int:
    """Pick while the pool's farthest is surely the farthest of all; returns how many are picked in all."""
    keys = np.empty(pool.members.size)
    limits = np.empty(pool.members.size, dtype=np.float32)
    for k in range(keys.size):
        keys[k] = state.nearest[pool.members[k]]
        limits[k] = limit_for(halves[k], keys[k], unit)
    while done < state.picks.size:
        g = next_group(state.taken, state.left)
        best = _farthest(g, keys, pool, state)
        if best < 0 or keys[best] < pool.bounds[g]:
            break
        x = pool.members[best]
        if keys[best] == pool.bounds[g] and pool.outside[g] < x:
            break
        _take(x, g, keys[best], done, state)
        done += 1
        _come_nearer(best, products[best], raw, halves, unit, keys, limits)
    return done


@compiled
def _farthest(g: int, keys: NDArray[np.float64], pool: Pool, state: _State) -> int:
    """Place of group g's farthest in the pool, of the lowest index among equals, or -1."""
    best = -1
    for k in range(keys.size):
        if pool.group_of[k] != g or state.gone[pool.members[k]]:
            continue
        if best >= 0 and (keys[k] < keys[best] or (keys[k] == keys[best] and pool.members[k] > pool.members[best])):
            continue
        best = k
    return best


@compiled
def _come_nearer(
    picked: int,
    products: NDArray[np.float32],
    raw: NDArray[np.float32],
    halves: NDArray[np.float32],
    unit: float,
    keys: NDArray[np.float64],
    limits: NDArray[np.float32],
) -> None:
    """Lower the pool's squared distances to the one picked."""
    half = halves[picked]
    for begin in range(0, keys.size, CHUNK):
        part = products[begin : begin + CHUNK]
        some = limits[begin : begin + CHUNK]
        hit = False
        for k in range(part.size):
            hit = hit | (part[k] - half > some[k])
        if not hit:
            continue
        for k in range(part.size):
            if part[k] - half > some[k]:
                found = squared_distance(raw[picked], raw[begin + k])
                if found < keys[begin + k]:
                    keys[begin + k] = found
                    some[k] = limit_for(halves[begin + k], found, unit)
