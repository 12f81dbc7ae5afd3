"""How many wrong labels are left: calibrated scores, corrected by what was decided so far, with an interval."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 24
SHARPEST = 8.0
"""Log-odds beyond which scores are not told apart."""

OVERALL, WIGGLE, REACH = 0.5, 0.5, 2.0
"""How far scores may be off before anything is decided, in log-odds: all alike, each by itself, and how far one bin's
error reaches. Chosen so that intervals cover in simulations; see ``benchmarks/review.py coverage``."""

DRAWS = 2000
LEVEL = 0.9


@dataclass(frozen=True)
class Left:
    """Expected number of wrong labels among some examples, and an interval for it."""

    expected: float
    low: int
    high: int


class Expectation:
    """What the decisions so far say about how often labels of each score are wrong.

    The log-odds that scores claim are off by a smooth function of the score, a Gaussian process; its posterior given
    the decisions is taken as normal about its mode. So where nothing was decided the scores are believed, within
    reason, and where much was decided the decisions are.

    Parameters
    ----------
    label_score
        (n,) calibrated probability that the given label is right.
    reviewed, wrong
        (n,) bool: whose label somebody settled after a look; whose turned out to be wrong.
    """

    def __init__(self, label_score: NDArray[np.float64], reviewed: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> None:
        claimed = np.log1p(-np.minimum(label_score, 1 - 1e-12)) - np.log(np.maximum(label_score, 1e-12))
        claimed = np.clip(claimed, -SHARPEST, SHARPEST)
        self.bin_of = np.minimum(((claimed + SHARPEST) / (2 * SHARPEST) * BINS).astype(np.int64), BINS - 1)
        counts = np.bincount(self.bin_of, minlength=BINS)
        centres = (np.arange(BINS) + 0.5) * 2 * SHARPEST / BINS - SHARPEST
        rates = np.bincount(self.bin_of, 1 / (1 + np.exp(-claimed)), minlength=BINS) / np.maximum(counts, 1)
        self.claimed = np.where(counts > 0, np.log(np.maximum(rates, 1e-9) / np.maximum(1 - rates, 1e-9)), centres)
        self.off, self.covariance = _posterior(
            self.claimed,
            centres,
            np.bincount(self.bin_of[reviewed], minlength=BINS),
            np.bincount(self.bin_of[reviewed & wrong], minlength=BINS),
        )
        rng = np.random.default_rng(0)
        self._off = rng.multivariate_normal(self.off, self.covariance, size=DRAWS, method="cholesky")

    def among(self, rows: NDArray[np.int64]) -> Left:
        """Return what to expect among examples that nobody has decided."""
        counts = np.bincount(self.bin_of[rows], minlength=BINS)
        rates = 1 / (1 + np.exp(-(self.claimed + self._off)))
        expected = float((rates @ counts).mean())
        drawn = np.random.default_rng(1).binomial(counts, rates).sum(axis=1)
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
        return Left(expected, int(low), int(high))


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
    return Expectation(label_score, reviewed, wrong).among(rows)


def _posterior(
    claimed: NDArray[np.float64], centres: NDArray[np.float64], seen: NDArray[np.int64], wrong: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mode and covariance of by how much the claimed log-odds are off, by Newton's method."""
    apart = centres[:, None] - centres
    prior = OVERALL**2 + WIGGLE**2 * np.exp(-0.5 * (apart / REACH) ** 2) + 1e-6 * np.eye(BINS)
    off = np.zeros(BINS)
    for _ in range(50):
        rates = 1 / (1 + np.exp(-(claimed + off)))
        weight = seen * rates * (1 - rates)
        # Mode of a normal prior times the likelihood's quadratic: K (I + W K)^-1 (W f + gradient).
        step = prior @ np.linalg.solve(np.eye(BINS) + weight[:, None] * prior, weight * off + wrong - seen * rates)
        if np.abs(step - off).max() < 1e-8:
            break
        off = off + np.clip(step - off, -2, 2)
    rates = 1 / (1 + np.exp(-(claimed + off)))
    weight = seen * rates * (1 - rates)
    covariance = prior @ np.linalg.inv(np.eye(BINS) + weight[:, None] * prior)
    return off, (covariance + covariance.T) / 2 + 1e-9 * np.eye(BINS)
