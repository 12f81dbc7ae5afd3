"""The objective, its gains, and the arithmetic that keeps them exact where tanh saturates.

With support N_v = sum over the picked x near v of w_vx c_x (in units of eta), the objective is the sum of
tanh(N_v). A pick adds tanh(N + a) - tanh(N), which in floating point is 0 from N = 9 (float32) or 19 (float64)
on. With E = exp(-2 N) and e = exp(-2 a) it is

    2 E (1 - e) / ((1 + E e) (1 + E)),

where nothing cancels; and where E itself underflows, its logarithm -2 N is at hand. So gains are compared as
logarithms. They are rounded to a grid of 2^-30, which makes two gains that differ only by rounding errors
equal: ties then go to the lowest index on every machine.
"""

import math

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled

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
def _term(shrunk: float, amount: float) -> float:
    """Return tanh(N + amount) - tanh(N), for shrunk = exp(-2 N)."""
    lost = math.expm1(-2.0 * amount)
    return -2.0 * shrunk * lost / ((1.0 + shrunk * (1.0 + lost)) * (1.0 + shrunk))


@compiled
def log_coverage_gain(
    x: int,
    confidence: float,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    support: NDArray[np.float64],
    shrunk: NDArray[np.float64],
) -> float:
    """Logarithm of what adding x adds to the objective, over x itself and its neighbours."""
    if confidence <= 0.0:
        return -math.inf
    total = _term(shrunk[x], confidence)
    for e in range(indptr[x], indptr[x + 1]):
        total += _term(shrunk[indices[e]], np.float64(weights[e]) * confidence)
    if total > TINY:
        return math.log(total)
    # Everything around x is saturated: the same sum with the largest exp(-2 N) taken out.
    least = support[x]
    for e in range(indptr[x], indptr[x + 1]):
        least = min(least, support[indices[e]])
    total = 2.0 * math.exp(-2.0 * (support[x] - least)) * -math.expm1(-2.0 * confidence)
    for e in range(indptr[x], indptr[x + 1]):
        amount = np.float64(weights[e]) * confidence
        total += 2.0 * math.exp(-2.0 * (support[indices[e]] - least)) * -math.expm1(-2.0 * amount)
    return math.log(total) - 2.0 * least


@compiled
def add_support(
    x: int,
    confidence: float,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    support: NDArray[np.float64],
    shrunk: NDArray[np.float64],
) -> None:
    """Let x, newly picked, support itself and its neighbours."""
    support[x] += confidence
    shrunk[x] = math.exp(-2.0 * support[x])
    for e in range(indptr[x], indptr[x + 1]):
        v = indices[e]
        support[v] += np.float64(weights[e]) * confidence
        shrunk[v] = math.exp(-2.0 * support[v])


def objective(support: NDArray[np.float64]) -> float:
    """Value of the objective, given every example's support in units of eta."""
    return float(np.tanh(support).sum())
