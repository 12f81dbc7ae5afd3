"""How many wrong labels are left: calibrated scores, corrected by what was decided so far, with an interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

BINS = 24
"""Scores are put together where they are as suspicious, and where they stand as far in front."""

SHARPEST = 12.0
"""Log-odds beyond which scores are not told apart."""

SCALES, BELIEFS = (0.3, 1.0, 3.0), (0.25, 0.3, 0.45)
"""By how much scores may be off, in log-odds, and how likely that is before anything is decided: where heads know a set
well, little; where people err where heads do, by three and more. See ``benchmarks/reviewing.py left``."""

SLOPE, WIGGLE, REACH = 0.15, 0.7, 2.0
"""Per unit of that: how much surer than they should be scores may be, by how much more each may be off by itself, and
how far, in log-odds, one score's error reaches."""

DRAWS = 2000
LEVEL = 0.9


@dataclass(frozen=True)
class Left:
    """Expected number of wrong labels among some examples, and an interval for it."""

    expected: float
    low: int
    high: int


class ScoreBins:
    """Scores put together with those that are as suspicious and stand as far in front.

    Parameters
    ----------
    label_score
        (n,) calibrated probability that the given label is right.
    """

    def __init__(self, label_score: NDArray[np.float64]) -> None:
        claimed = np.log1p(-np.minimum(label_score, 1 - 1e-12)) - np.log(np.maximum(label_score, 1e-12))
        claimed = np.clip(claimed, -SHARPEST, SHARPEST)
        edges = np.quantile(claimed, np.arange(1, BINS) / BINS)
        edges = np.unique(np.concatenate([edges, np.linspace(-SHARPEST, SHARPEST, BINS + 1)[1:-1]]))
        place = np.searchsorted(edges, claimed, side="right")
        used = np.bincount(place, minlength=len(edges) + 1) > 0
        self.bin_of: NDArray[np.int64] = (np.cumsum(used) - 1)[place]
        rates = np.bincount(self.bin_of, _chance(claimed)) / np.bincount(self.bin_of)
        self.claimed: NDArray[np.float64] = np.log(rates) - np.log1p(-rates)

    def count(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """(B,) how many of some rows are in each bin; rows are numbers, or one bool for each."""
        return np.bincount(self.bin_of[rows], minlength=len(self.claimed))


class Expectation:
    """What the decisions so far say about how often labels of each score are wrong.

    The log-odds that scores claim are off by a smooth function of the score, a Gaussian process of one of three scales;
    each one's posterior given the decisions is taken as normal about its mode, and the scales are weighed by how well
    they foretell the decisions. So where nothing was decided the scores are believed, but not much; and where much was
    decided the decisions are.

    Parameters
    ----------
    bins
        Of the scores.
    reviewed, wrong
        (n,) bool: whose label somebody settled after a look; whose turned out to be wrong.
    """

    def __init__(self, bins: ScoreBins, reviewed: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> None:
        self.bins = bins
        claimed, seen, found = bins.claimed, bins.count(reviewed), bins.count(reviewed & wrong)
        rng = np.random.default_rng(0)
        with threadpool_limits(1, "blas"):
            fits = [_posterior(claimed, _prior(claimed, scale), seen, found) for scale in SCALES]
            evidence = np.log(BELIEFS) + [fit.evidence for fit in fits]
            weights = np.exp(evidence - evidence.max())
            weights /= weights.sum()
            shares = np.diff(np.rint(np.cumsum([0.0, *weights]) * DRAWS).astype(np.int64))
            drawn = [
                rng.multivariate_normal(fit.off, fit.covariance, size=k) for fit, k in zip(fits, shares, strict=True)
            ]
        self._rates = _chance(claimed + np.concatenate(drawn))
        self._likeliest = sum(w * _chance(claimed + fit.off) for w, fit in zip(weights, fits, strict=True))

    def among(self, rows: NDArray[np.int64]) -> Left:
        """Return what to expect among examples that nobody has decided."""
        counts = self.bins.count(rows)
        expected = float(self._likeliest @ counts)
        drawn = np.random.default_rng(1).binomial(counts, self._rates).sum(axis=1)
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
        return Left(expected, min(int(low), int(expected)), max(int(high), -int(-expected // 1)))


def expect_left(
    label_score: NDArray[np.float64],
    reviewed: NDArray[np.bool_],
    wrong: NDArray[np.bool_],
    rows: NDArray[np.int64],
) -> Left:
    """Return how many of some undecided labels to expect to be wrong, with an interval meant to cover in 90 %.

    Parameters
    ----------
    label_score
        (n,) calibrated probability that the given label is right.
    reviewed, wrong
        (n,) bool: whose label somebody settled after a look; whose turned out to be wrong.
    rows
        (k,) the examples to count among.

    Examples
    --------
    Scores that claim one in ten is wrong, of which a hundred were looked at and twenty were wrong:

    >>> n = 1000
    >>> reviewed = np.arange(n) < 100
    >>> left = expect_left(np.full(n, 0.9), reviewed, np.arange(n) < 20, np.flatnonzero(~reviewed))
    >>> left.low < 180 < left.high, left.low > 90
    (True, True)
    """
    return Expectation(ScoreBins(label_score), reviewed, wrong).among(rows)


@dataclass(frozen=True)
class _Fit:
    """Mode and covariance of by how much the claimed log-odds are off, and the logarithm of the evidence for it."""

    off: NDArray[np.float64]
    covariance: NDArray[np.float64]
    evidence: float


def _chance(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    chance: NDArray[np.float64] = 1 / (1 + np.exp(-log_odds))
    return chance


def _prior(claimed: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    apart = claimed[:, None] - claimed
    shape = 1 + SLOPE**2 * np.outer(claimed, claimed) + WIGGLE**2 * np.exp(-0.5 * (apart / REACH) ** 2)
    prior: NDArray[np.float64] = scale**2 * shape + 1e-6 * np.eye(len(claimed))
    return prior


def _posterior(
    claimed: NDArray[np.float64], prior: NDArray[np.float64], seen: NDArray[np.int64], wrong: NDArray[np.int64]
) -> _Fit:
    """Laplace's approximation, by Newton's method."""
    off, eye = np.zeros(len(claimed)), np.eye(len(claimed))
    for _ in range(50):
        rates = _chance(claimed + off)
        weight = seen * rates * (1 - rates)
        # Mode of a normal prior times the likelihood's quadratic: K (I + W K)^-1 (W f + gradient).
        step = prior @ np.linalg.solve(eye + weight[:, None] * prior, weight * off + wrong - seen * rates)
        if np.abs(step - off).max() < 1e-8:
            break
        off = off + np.clip(step - off, -2, 2)
    rates = _chance(claimed + off)
    weight = seen * rates * (1 - rates)
    within = eye + weight[:, None] * prior
    covariance = prior @ np.linalg.inv(within)
    likelihood = -wrong @ np.logaddexp(0, -claimed - off) - (seen - wrong) @ np.logaddexp(0, claimed + off)
    evidence = likelihood - 0.5 * off @ (wrong - seen * rates) - 0.5 * np.linalg.slogdet(within)[1]
    return _Fit(off, (covariance + covariance.T) / 2 + 1e-9 * eye, float(evidence))
