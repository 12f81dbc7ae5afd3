"""CRAIG: the examples whose gradients stand for the gradients around them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel._compiled import compiled
from prune4rel.blocks import rows_per_block, spans
from prune4rel.errors import InputError
from prune4rel.gradients import Gradients, gradients_of
from prune4rel.greedy.groups import Part, merged, split
from prune4rel.machine import Clock, format_bytes, memory_budget, threads
from prune4rel.methods.checks import whole
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.signals import Signals

CHUNK = 20_000
STEPS = 2**24
"""Distances are counted in steps of this part of the largest: whole numbers, whose sums are exact in any order."""

EQUAL = 2.0**-44
"""Squared distances below this share of the squared lengths are rounding errors of equal gradients."""

_CUT = (
    "Approximate: classes of more than {chunk} examples were cut at random, into {pieces} pieces in all; a larger "
    "chunk takes more memory, 4 chunk² bytes."
)


@register_method(
    "craig",
    needs=("embeddings", "probabilities"),
    cost="m²(d + C)/2 multiplications for every class of m examples, and 4 m² bytes for one class at a time",
    citation="Mirzasoleiman, Bilmes, Leskovec: Coresets for Data-efficient Training of Machine Learning Models. "
    "ICML 2020",
    extends=True,
    in_parts="shares",
)
def craig(signals: Signals, request: Request, *, chunk: int = CHUNK) -> Outcome:
    """Cover every class by the examples with the most typical last-layer gradients.

    Maximises, class by class, Σ_i max_{j picked} (K - ‖g_i - g_j‖), K the largest distance in the class, by the
    greedy algorithm. Classes get picks in proportion to their size, or equally many where balanced. The score of
    an example is its gain as the first pick of its class, highest kept.

    Parameters
    ----------
    chunk
        Larger classes are cut at random into pieces of at most this many examples, each with its share of the
        picks. Approximate; the seed matters then, and only then.
    """
    chunk = whole(chunk, "chunk")
    clock = Clock()
    balanced, first = request.balanced, request.first
    parts = split(signals.labels, request.size, balanced=balanced, chunk=chunk, seed=request.seed, initial=first)
    approximate = len(parts) > len(np.unique(signals.labels))
    scores = np.empty(len(signals))
    with request.progress.task("covering", total=len(signals)) as advance:

        def cover(part: Part) -> _Cover:
            result = _cover(gradients_of(signals, part.members), part.budget, part.first)
            scores[part.members] = result.first_gains
            advance(len(part.members))
            return result

        with threadpool_limits(1, "blas"), ThreadPoolExecutor(_workers(parts)) as pool:
            covers = list(pool.map(cover, parts))
    clock.lap("covering")
    picks = [part.members[found.places] for part, found in zip(parts, covers, strict=True)]
    order = merged(parts, picks, [found.gains for found in covers], balanced=balanced, initial=first)
    weights = np.concatenate([found.weights for found in covers])[order]
    return Outcome(
        indices=np.concatenate(picks)[order],
        gains=np.concatenate([found.gains for found in covers])[order],
        objective=float(sum(found.gains.sum() for found in covers)),
        scores=scores,
        weights=weights.astype(np.float64),
        options={"chunk": chunk},
        stats={"approximate": approximate, "largest_weight": int(weights.max()), "seconds": clock.laps},
        notes=(_CUT.format(chunk=chunk, pieces=len(parts)),) * approximate,
    )


def _workers(parts: list[Part]) -> int:
    """Return how many parts may be worked on at once without running out of memory."""
    largest = max(len(part.members) for part in parts)
    needed = 4 * largest**2
    room = memory_budget(None)
    if needed > room:
        raise InputError(
            f"method 'craig' holds the distances within {largest} examples of a class, {format_bytes(needed)}, and "
            f"{format_bytes(room)} may be used here; pass a smaller chunk"
        )
    return min(threads(), len(parts), room // needed)


@dataclass(frozen=True)
class _Cover:
    """Places of the picks in their part, gains and weights of the picks, and everybody's gain as a first pick."""

    places: NDArray[np.int64]
    gains: NDArray[np.float64]
    weights: NDArray[np.int64]
    first_gains: NDArray[np.float64]


def _cover(gradients: Gradients, budget: int, first: NDArray[np.int64]) -> _Cover:
    distances, step = _distances(gradients)
    most = int(distances.max())
    first_gains = np.array([most * len(row) - row.sum(dtype=np.int64) for row in distances])
    places, gains, owners = _greedy(distances, most, first_gains.copy(), budget, first)
    weights = np.bincount(owners, minlength=budget)[:budget]
    return _Cover(places, gains.astype(np.float64) * step, weights, first_gains.astype(np.float64) * step)


def _distances(gradients: Gradients) -> tuple[NDArray[np.int32], float]:
    """(m, m) distances between gradients in whole steps, and the length of a step."""
    m = len(gradients)
    squares = gradients.squares()
    unit = 2.0 * float(np.sqrt(squares.max())) or 1.0
    lengths = np.empty((m, m), dtype=np.float32)
    for start, stop in spans(m, rows_per_block(m)):
        both = squares[start:stop, None] + squares[None, start:]
        square = both - 2.0 * gradients[start:stop].inner(gradients[start:])
        square[square <= EQUAL * both] = 0.0
        lengths[start:stop, start:] = np.sqrt(square) / unit
        lengths[start:, start:stop] = lengths[start:stop, start:].T
    np.fill_diagonal(lengths, 0.0)
    longest = float(lengths.max()) or 1.0
    steps = lengths.view(np.int32)
    for start, stop in spans(m, rows_per_block(m)):
        steps[start:stop] = np.rint(lengths[start:stop] * np.float32(STEPS / longest))
    return steps, longest * unit / STEPS


@compiled
def _greedy(
    distances: NDArray[np.int32], most: int, gains: NDArray[np.int64], budget: int, first: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pick the `first` and then the highest gain, the lowest place among equals.

    `gains` are those of first picks, and kept up to date. Everybody starts at the distance `most`. A pick comes nearer
    to some, and only they change the gains of others, so every step costs m operations for each of them. Returns
    places and gains of the picks, and the number of the pick that is nearest to each example.
    """
    m = gains.size
    nearest = np.full(m, most, dtype=np.int32)
    owners = np.zeros(m, dtype=np.int64)
    gone = np.zeros(m, dtype=np.bool_)
    places = np.empty(budget, dtype=np.int64)
    worth = np.empty(budget, dtype=np.int64)
    for pick in range(budget):
        best = first[pick] if pick < first.size else -1
        for x in range(m if best < 0 else 0):
            if not gone[x] and (best < 0 or gains[x] > gains[best]):
                best = x
        places[pick] = best
        worth[pick] = gains[best]
        gone[best] = True
        for v in range(m):
            before, now = nearest[v], distances[best, v]
            if now < before:
                nearest[v] = now
                owners[v] = pick
                for x in range(m):
                    gains[x] -= before - min(max(distances[v, x], now), before)
    return places, worth, owners
