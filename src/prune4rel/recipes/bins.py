"""Figure 2: whether labels come out right more often where there is more confidence around."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 15


@dataclass(frozen=True)
class Bin:
    """Examples whose neighbourhood confidence lies from `low` to `high`."""

    low: float
    high: float
    examples: int
    confidence: float
    accuracy: float


def bins_of(confidence: NDArray[np.float64], right: NDArray[np.bool_], count: int = BINS) -> list[Bin]:
    """Cut examples into bins of as equal a number as ties allow, by neighbourhood confidence.

    Parameters
    ----------
    confidence
        (n,) N(x; S), higher is surer. Equal values stay together.
    right
        (n,) whether the label ended up right.
    count
        How many bins, at most.

    Examples
    --------
    >>> [(each.low, each.high, each.accuracy) for each in bins_of(np.arange(4.0), np.array([0, 0, 0, 1], bool), 2)]
    [(0.0, 1.0, 0.0), (2.0, 3.0, 0.5)]
    """
    if not len(confidence):
        return []
    edges = np.unique(np.quantile(confidence, np.arange(1, count) / count, method="higher"))
    place = np.searchsorted(edges, confidence, side="right")
    found = []
    for number in np.unique(place):
        inside = place == number
        values = confidence[inside]
        found.append(
            Bin(
                float(values.min()),
                float(values.max()),
                int(inside.sum()),
                float(values.mean()),
                float(right[inside].mean()),
            )
        )
    return found


def correlation(bins: Sequence[Bin]) -> float | None:
    """Return Pearson's coefficient of mean confidence and accuracy over the bins; None where it has no meaning.

    >>> bins = [Bin(0, 1, 5, 0.5, 0.2), Bin(1, 2, 5, 1.5, 0.4), Bin(2, 3, 5, 2.5, 0.6)]
    >>> round(correlation(bins), 6)
    1.0
    """
    x = np.array([each.confidence for each in bins])
    y = np.array([each.accuracy for each in bins])
    if len(bins) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def rank_correlation(bins: Sequence[Bin]) -> float | None:
    """Return Spearman's coefficient over the bins, which come in order of confidence: 1 where accuracy only rises.

    >>> bins = [Bin(0, 1, 5, 0.5, 0.2), Bin(1, 2, 5, 1.5, 0.59), Bin(2, 3, 5, 2.5, 0.6)]
    >>> round(rank_correlation(bins), 6)
    1.0
    """
    accuracies = np.array([each.accuracy for each in bins])
    values, place, counts = np.unique(accuracies, return_inverse=True, return_counts=True)
    if len(values) < 2:
        return None
    middle = np.cumsum(counts) - (counts - 1) / 2
    return float(np.corrcoef(np.arange(len(bins)), middle[place])[0, 1])
