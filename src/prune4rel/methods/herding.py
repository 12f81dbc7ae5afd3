"""Herding: the subset whose mean stays at the mean of the set."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.blocks import map_blocks, spans
from prune4rel.greedy.groups import Part, merged, split
from prune4rel.machine import threads
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.neighbours.euclidean import column_sums, squared_distances_to
from prune4rel.neighbours.similarity import Points
from prune4rel.progress import Advance
from prune4rel.signals import Signals

ROW_CODES = 127
TARGET_CODES = 2**15 - 1
SLACK = 1e-11
WORTH_THREADS = 2**21


class _Codes(NamedTuple):
    """Rows in a quarter of the memory: row - mean = step * code, off by a vector of length `error` at most.

    `codes` is (m, d); the others are (m,), with the row's length and square, both after subtracting the mean.
    """

    codes: NDArray[np.int8]
    steps: NDArray[np.float64]
    errors: NDArray[np.float64]
    lengths: NDArray[np.float64]
    squares: NDArray[np.float64]

    def part(self, a: int, b: int) -> "_Codes":
        """Rows a to b, in the same memory."""
        return _Codes(self.codes[a:b], self.steps[a:b], self.errors[a:b], self.lengths[a:b], self.squares[a:b])


class _Target(NamedTuple):
    """What rows should be close to, after subtracting the mean: step * code, off by `error` at most."""

    codes: NDArray[np.int16]
    step: float
    error: float
    length: float


@register_method(
    "herding",
    needs=("embeddings",),
    cost="n s d multiplications of small integers, n d bytes of memory",
    citation="Welling: Herding Dynamical Weights to Learn. ICML 2009",
    extends=True,
)
def herding(signals: Signals, request: Request) -> Outcome:
    """Pick the example that brings the mean of the picks closest to the mean of all examples.

    With t examples S picked, x = argmin ‖(t + 1) μ - Σ_S z - z_x‖ is next, and minus that length is its gain. The
    score of an example is -‖z - μ‖, highest picked first. Balanced herds every class to its own mean, in turns.
    """
    points = Points(signals.need("embeddings"), signals.squared_norms["embeddings"])
    classes = signals.labels if request.balanced else np.zeros_like(signals.labels)
    parts = split(classes, request.size, balanced=True, initial=request.first)
    scores = np.empty(len(points))
    picks, gains = [], []
    with request.progress.task("picking", total=request.size) as advance:
        for part in parts:
            total = column_sums(points, part.members)
            m = len(part.members)
            scores[part.members] = 0.0 - np.sqrt(squared_distances_to(points, part.members, total, m)) / m
            chosen, worth = herd(points, part, total, advance)
            picks.append(chosen)
            gains.append(worth)
    order = merged(parts, picks, gains, balanced=True, initial=request.first)
    final = [-worth[-1] / len(worth) for worth in gains if len(worth)]
    return Outcome(
        indices=np.concatenate(picks)[order],
        gains=np.concatenate(gains)[order],
        objective=float(np.mean(final)),
        scores=scores,
    )


def herd(
    points: Points, part: Part, total: NDArray[np.float64], advance: Advance
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pick the budget of a part, whose sum is `total`; returns the picks and minus the lengths they left.

    A pick needs the product of all rows with one vector. Rows of 8-bit integers give it up to a known error, at
    the speed at which memory is read; the few that may be the best are computed in double precision.
    """
    members, size, first = part.members, part.budget, part.first
    m = len(members)
    codes = _encode(points, members, total / m)
    chosen = np.zeros(points.dim)
    free = np.ones(m, dtype=np.bool_)
    lows = np.empty(m)
    picks = np.empty(size, dtype=np.int64)
    gains = np.empty(size)
    with ThreadPoolExecutor(threads()) as pool:
        bound = _bounder(pool, codes, free, lows)
        for t in range(size):
            wanted = (t + 1) * total - m * chosen
            if t < len(first):
                some = first[t : t + 1]
            else:
                best_high = bound(_as_target((t * total - m * chosen) / m))
                some = np.flatnonzero(lows <= best_high)
            lengths = squared_distances_to(points, members[some], wanted, m)
            best = int(np.argmin(lengths))
            picks[t] = some[best]
            gains[t] = 0.0 - math.sqrt(lengths[best]) / m
            free[some[best]] = False
            chosen += points.raw(members[some[best : best + 1]])[0]
            advance(1)
    return members[picks], gains


def _encode(points: Points, members: NDArray[np.int64], mean: NDArray[np.float64]) -> _Codes:
    m = len(members)
    codes = _Codes(np.empty((m, points.dim), dtype=np.int8), np.empty(m), np.empty(m), np.empty(m), np.empty(m))

    def block(start: int, stop: int) -> None:
        _encode_rows(points.raw(members[start:stop]), mean, codes.part(start, stop))

    map_blocks(block, m, points.dim)
    return codes


def _as_target(vector: NDArray[np.float64]) -> _Target:
    """Write a vector in 16-bit integers, or so few bits that its product with a row fits into 32."""
    most = max(1, min(TARGET_CODES, (2**31 - 1) // (ROW_CODES * len(vector))))
    step = float(np.abs(vector).max()) / most
    if step == 0.0:
        return _Target(np.zeros(len(vector), dtype=np.int16), 0.0, 0.0, 0.0)
    codes = np.rint(vector / step)
    error = float(np.linalg.norm(vector - step * codes))
    return _Target(codes.astype(np.int16), step, error, float(np.linalg.norm(vector)))


def _bounder(
    pool: ThreadPoolExecutor, codes: _Codes, free: NDArray[np.bool_], lows: NDArray[np.float64]
) -> Callable[[_Target], float]:
    """Return a function that fills `lows` for a target and returns the lowest high, in threads where it pays."""
    m, dim = codes.codes.shape
    pieces = list(spans(m, m if m * dim < WORTH_THREADS else -(-m // threads())))

    def bound(target: _Target) -> float:
        def piece(span: tuple[int, int]) -> float:
            return _bounds(codes.part(*span), free[slice(*span)], lows[slice(*span)], target)

        return piece(pieces[0]) if len(pieces) == 1 else min(pool.map(piece, pieces))

    return bound


@compiled
def _encode_rows(rows: NDArray[np.float32], mean: NDArray[np.float64], out: _Codes) -> None:
    for i in range(rows.shape[0]):
        largest, square, error = 0.0, 0.0, 0.0
        for k in range(mean.size):
            value = np.float64(rows[i, k]) - mean[k]
            largest = max(largest, abs(value))
            square += value * value
        step = largest / ROW_CODES
        for k in range(mean.size):
            value = np.float64(rows[i, k]) - mean[k]
            code = np.rint(value / step) if step > 0.0 else 0.0
            error += (value - step * code) ** 2
            out.codes[i, k] = np.int8(code)
        out.steps[i] = step
        out.errors[i] = math.sqrt(error)
        out.lengths[i] = math.sqrt(square)
        out.squares[i] = square


@compiled
def _bounds(codes: _Codes, free: NDArray[np.bool_], lows: NDArray[np.float64], target: _Target) -> float:
    """Fill `lows` with what |row|^2 - 2 <row, target> is at least; returns the lowest that it is at most."""
    lowest = math.inf
    for i in range(codes.codes.shape[0]):
        if not free[i]:
            lows[i] = math.inf
            continue
        product = np.int32(0)
        for k in range(codes.codes.shape[1]):
            product = np.int32(product + np.int32(np.int32(codes.codes[i, k]) * np.int32(target.codes[k])))
        middle = codes.squares[i] - 2.0 * codes.steps[i] * target.step * product
        error = codes.errors[i] * target.length + (codes.lengths[i] + codes.errors[i]) * target.error
        error += SLACK * (codes.squares[i] + target.length * target.length)
        lows[i] = middle - 2.0 * error
        lowest = min(lowest, middle + 2.0 * error)
    return lowest
