"""The objective, its gains, and the arithmetic that keeps them exact where tanh saturates.

With support N_v = sum over the picked x near v of w_vx c_x (in units of eta), the objective is the sum of
tanh(N_v). A pick adds tanh(N + a) - tanh(N), which in floating point is 0 from N = 9 (float32) or 19 (float64)
on. With E = exp(-2 N) and l = expm1(-2 a) it is

    2 E / (1 + E) * -l / (1 + E (1 + l)),

where nothing cancels; and where E itself underflows, its logarithm -2 N is at hand. So gains are compared as
logarithms. They are rounded to a grid of 2^-30, which makes two gains that differ only by rounding errors
equal: ties then go to the lowest index on every machine.
"""

import math

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled, compiled_reduction

GRID = 2.0**30
TINY = 1e-250


@compiled
def on_grid(log_gain: float) -> float:
    """Round a logarithm so that gains equal up to rounding errors compare equal."""
    return math.floor(log_gain * GRID + 0.5) / GRID if log_gain > -math.inf else log_gain


@compiled
def log_own_gain(support: float, lost: float) -> float:
    """Logarithm of tanh(support + a) - tanh(support), for lost = expm1(-2 a): the score of Algorithm 1."""
    if lost >= 0.0:
        return -math.inf
    shrunk = math.exp(-2.0 * support)
    return math.log(-2.0 * lost / ((1.0 + shrunk * (1.0 + lost)) * (1.0 + shrunk))) - 2.0 * support


@compiled
def losses_of_rows(
    start: int,
    stop: int,
    example: NDArray[np.int32],
    confidence: NDArray[np.float64],
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    ends: NDArray[np.int64],
    lost: NDArray[np.float64],
) -> None:
    """Compute expm1(-2 w c_x) for every edge of some x: all a gain needs to know of the edge.

    Row k of the result, from ``ends[k]`` on, is that of ``example[k]``, whose weights begin at its `indptr`.
    """
    for row in range(start, stop):
        x = example[row]
        shift = indptr[x] - ends[row]
        for k in range(ends[row], ends[row + 1]):
            lost[k] = math.expm1(-2.0 * np.float64(weights[k + shift]) * confidence[x])


@compiled_reduction
def _sum_of_gains(
    begin: int, end: int, lost: NDArray[np.float64], near: NDArray[np.int32], shrunk: NDArray[np.float64]
) -> float:
    total = 0.0
    for k in range(begin, end):
        v = near[k]
        total -= shrunk[v, 1] * lost[k] / (1.0 + shrunk[v, 0] * (1.0 + lost[k]))
    return total


@compiled
def log_coverage_gain(
    own: float,
    own_support: float,
    begin: int,
    end: int,
    lost: NDArray[np.float64],
    near: NDArray[np.int32],
    shrunk: NDArray[np.float64],
) -> float:
    """Logarithm of what adding x adds to the objective, over x itself and its neighbours.

    Parameters
    ----------
    own, own_support
        expm1(-2 c_x), and the support of x.
    begin, end
        Which edges are x's. (Slices would count references, in all threads at once.)
    lost, near
        expm1(-2 w c_x) of the edges, and where the neighbours are in `shrunk`.
    shrunk
        E, 2 E / (1 + E) and -log(E) / 2 = N of every example, side by side.
    """
    if own >= 0.0:
        return -math.inf
    mine = math.exp(-2.0 * own_support)
    total = -2.0 * mine / (1.0 + mine) * own / (1.0 + mine * (1.0 + own))
    total += _sum_of_gains(begin, end, lost, near, shrunk)
    if total > TINY:
        return math.log(total)
    # Everything around x is saturated, or x adds next to nothing: the same sum with the largest exp(-2 N) taken out.
    least = own_support
    for k in range(begin, end):
        least = min(least, shrunk[near[k], 2])
    total = -2.0 * math.exp(-2.0 * (own_support - least)) * own / ((1.0 + mine) * (1.0 + mine * (1.0 + own)))
    for k in range(begin, end):
        v = near[k]
        part = 2.0 * math.exp(-2.0 * (shrunk[v, 2] - least)) * lost[k]
        total -= part / ((1.0 + shrunk[v, 0]) * (1.0 + shrunk[v, 0] * (1.0 + lost[k])))
    return math.log(total) - 2.0 * least


@compiled
def add_support(v: int, amount: float, shrunk: NDArray[np.float64]) -> None:
    """Raise the support of v, and what follows from it."""
    support = shrunk[v, 2] + amount
    value = math.exp(-2.0 * support)
    shrunk[v, 0] = value
    shrunk[v, 1] = 2.0 * value / (1.0 + value)
    shrunk[v, 2] = support


def objective(support: NDArray[np.float64]) -> float:
    """Value of the objective, given every example's support in units of eta.

    >>> objective(np.array([0.0, 0.0]))
    0.0
    """
    return float(np.tanh(support).sum())
