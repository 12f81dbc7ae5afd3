"""Algorithms 1 and 2 of the paper and the greedy on the objective's true gain, as textbook loops.

`weights` is (n, n) with 1 on the diagonal; `confidence` is in units of eta. Gains are kept as logarithms, so that
they can be compared where tanh is 1 to all digits.
"""

import itertools
import math
from dataclasses import dataclass

import mpmath
import numpy as np

TIE = 1e-9
SURE_TIE = 1e-11
SURE_GAP = 3e-9


@dataclass(frozen=True)
class Picks:
    """`clear` says whether no decision hung on gains so close that rounding may order them either way."""

    indices: list[int]
    gains: np.ndarray
    objective: float
    clear: bool


def exact_log_gains(weights, confidence, gain):
    """tanh(N + w c) - tanh(N), literally, with as many digits as it takes."""
    n = len(confidence)
    amounts = weights * confidence
    smallest = min(amounts[amounts > 0], default=1.0)

    def measure(support):
        digits = 60 + int(max(support) + max(confidence) - min(0, math.log10(smallest)))
        with mpmath.workdps(digits):
            now = [mpmath.tanh(s) for s in support]

            def log_gain(x):
                around = [x] if gain == "paper" else [v for v in range(n) if weights[v, x] > 0]
                total = mpmath.fsum(
                    mpmath.tanh(mpmath.mpf(support[v]) + mpmath.mpf(weights[v, x]) * confidence[x]) - now[v]
                    for v in around
                )
                return float(mpmath.log(total)) if total > 0 else -math.inf

            return np.array([log_gain(x) for x in range(n)])

    return measure


def log_gains(weights, confidence, gain):
    """sinh(a) / (cosh(N + a) cosh(N)) in logarithms and float64, for hundreds of examples."""
    x, v = (np.arange(len(confidence)),) * 2 if gain == "paper" else np.nonzero(weights.T)
    first = np.flatnonzero(np.r_[True, x[1:] != x[:-1]])
    a = weights[v, x] * confidence[x]

    def measure(support):
        N = support[v]
        with np.errstate(divide="ignore"):
            terms = _log_sinh(a) - _log_cosh(N + a) - _log_cosh(N)
            most = np.maximum.reduceat(terms, first)
            shift = np.where(np.isfinite(most), most, 0.0)
            return np.log(np.add.reduceat(np.exp(terms - shift[x]), first)) + shift

    return measure


def _log_sinh(a):
    return a + np.log(-np.expm1(-2 * a)) - math.log(2)


def _log_cosh(a):
    return a + np.log1p(np.exp(-2 * a)) - math.log(2)


def confidence_of(probabilities, labels, kind):
    """Confidence in every example, row by row."""
    pairs = zip(probabilities, labels, strict=True)
    if kind == "label-prob":
        return np.array([float(row[label]) for row, label in pairs])
    tops = [sorted(map(float, row), reverse=True) for row, _ in pairs]
    return np.array([top[0] if kind == "max-prob" or len(top) == 1 else top[0] - top[1] for top in tops])


def greedy(weights, confidence, size, *, gain, groups=None, initial=(), measure=log_gains):
    """Take the highest gain, the lowest index among equals; with groups, from the class whose turn it is."""
    n = len(confidence)
    support = np.zeros(n)
    measured = measure(weights, confidence, gain)
    indices: list[int] = []
    logs, clear = [], True
    for step in range(size):
        found = measured(support)
        if step < len(initial):
            pick = int(initial[step])
        else:
            left = np.setdiff1d(np.arange(n), indices)
            if groups is not None:
                left = left[groups[left] == next_class(groups, indices, left)]
            best = found[left].max()
            with np.errstate(invalid="ignore"):
                behind = np.where(found[left] == best, 0.0, best - found[left])
            pick = int(left[behind <= TIE][0])
            clear = clear and not ((behind > SURE_TIE) & (behind < SURE_GAP)).any()
        indices.append(pick)
        logs.append(found[pick])
        support += weights[:, pick] * confidence[pick]
    return Picks(indices, np.exp(logs), objective(weights, confidence, indices), clear)


def next_class(groups, indices, left):
    """Return the class with the fewest picks that still has members, the lowest among equals."""
    return min(set(groups[left].tolist()), key=lambda g: ((groups[indices] == g).sum(), g))


def objective(weights, confidence, indices):
    """Sum over all examples of tanh of the confidence that the picks near them lend."""
    return math.fsum(
        math.tanh(math.fsum(weights[v, x] * confidence[x] for x in indices)) for v in range(len(confidence))
    )


def optimum(weights, confidence, size):
    """Highest objective of all subsets, by trying them."""
    every = itertools.combinations(range(len(confidence)), size)
    return max(objective(weights, confidence, subset) for subset in every)
