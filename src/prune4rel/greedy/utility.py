"""The objective, its gains, and the arithmetic that keeps them exact where tanh saturates.

With support N_v = sum over the picked x near v of w_vx c_x (in units of eta), the objective is the sum of
tanh(N_v). A pick adds tanh(N + a) - tanh(N), which in floating point is 0 from N = 9 (float32) or 19 (float64)
on. With E = exp(-2 N) and e = exp(-2 a) it is

    2 E / (1 + E) * (1 - e) / (1 + E e),

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
def log_own_gain(support: float, amount: float) -> float:
    """Logarithm of tanh(support + amount) - tanh(support): the score of the paper's Algorithm 1."""
    if amount <= 0.0:
        return -math.inf
    return (
        math.log(2.0)
        - 2.0 * support
        + math.log(-math.expm1(-2.0 * amount))
        - math.log1p(math.exp(-2.0 * (support + amount)))
        - math.log1p(math.exp(-2.0 * support))
    )


@compiled
def losses_of_rows(
    start: int,
    stop: int,
    confidence: NDArray[np.float64],
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    lost: NDArray[np.float64],
) -> None:
    """For every edge of some rows x, e - 1 = expm1(-2 w c_x): all a gain needs to know of the edge."""
    for x in range(start, stop):
        for k in range(indptr[x], indptr[x + 1]):
            lost[k] = math.expm1(-2.0 * np.float64(weights[k]) * confidence[x])


@compiled_reduction
def _sum_of_gains(lost: NDArray[np.float64], near: NDArray[np.int32], shrunk: NDArray[np.float64]) -> float:
    total = 0.0
    for k in range(near.size):
        v = near[k]
        total -= shrunk[v, 1] * lost[k] / (1.0 + shrunk[v, 0] * (1.0 + lost[k]))
    return total


@compiled
def log_coverage_gain(
    x: int,
    confidence: float,
    indices: NDArray[np.int32],
    lost: NDArray[np.float64],
    support: NDArray[np.float64],
    shrunk: NDArray[np.float64],
) -> float:
    """Logarithm of what adding x adds to the objective, over x itself and its neighbours `indices`.

    `shrunk` holds E and 2 E / (1 + E) side by side.
    """
    if confidence <= 0.0:
        return -math.inf
    own = math.expm1(-2.0 * confidence)
    total = -shrunk[x, 1] * own / (1.0 + shrunk[x, 0] * (1.0 + own)) + _sum_of_gains(lost, indices, shrunk)
    if total > TINY:
        return math.log(total)
    # Everything around x is saturated: the same sum with the largest exp(-2 N) taken out.
    least = support[x]
    for k in range(indices.size):
        least = min(least, support[indices[k]])
    total = -2.0 * math.exp(-2.0 * (support[x] - least)) * own
    for k in range(indices.size):
        total -= 2.0 * math.exp(-2.0 * (support[indices[k]] - least)) * lost[k]
    return math.log(total) - 2.0 * least


@compiled
def add_support(
    x: int,
    confidence: float,
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    support: NDArray[np.float64],
    shrunk: NDArray[np.float64],
) -> None:
    """Let x, newly picked, support itself and its neighbours `indices`."""
    support[x] += confidence
    _shrink(x, support, shrunk)
    for k in range(indices.size):
        v = indices[k]
        support[v] += np.float64(weights[k]) * confidence
        _shrink(v, support, shrunk)


@compiled
def _shrink(v: int, support: NDArray[np.float64], shrunk: NDArray[np.float64]) -> None:
    value = math.exp(-2.0 * support[v])
    shrunk[v, 0] = value
    shrunk[v, 1] = 2.0 * value / (1.0 + value)


def objective(support: NDArray[np.float64]) -> float:
    """Value of the objective, given every example's support in units of eta."""
    return float(np.tanh(support).sum())
