"""Moderate: neither the typical nor the strange, but the middle of each."""

import numpy as np
from numpy.typing import NDArray

from prune4rel.engines.engine import Engine
from prune4rel.half import widen
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best, rounds
from prune4rel.signals import Floats, Signals


@register_method(
    "moderate",
    needs=("embeddings",),
    cost="two passes over the embeddings",
    citation="Xia, Liu, Yu, Shen, Han, Liu: Moderate Coreset: A Universal Method of Data Selection for Real-world "
    "Data-efficient Deep Learning. ICLR 2023",
    asks=("rows",),
    extends=True,
    in_parts="shares",
)
def moderate(signals: Signals, request: Request) -> Outcome:
    """Keep the examples whose distance from the median of their class is in the middle of the ranking.

    score = -|rank - centre|, highest kept, where rank is the place by distance ‖z - median of the given class‖₂,
    nearest first, among all examples, or with balanced among those of the class.
    """
    distances = median_distances(request.serving(signals))
    ranked_with = signals.labels if request.balanced else np.zeros_like(signals.labels)
    return keep_best(middle_scores(distances, ranked_with), signals.labels, request, keep="highest")


def median_distances(engine: Engine) -> NDArray[np.float64]:
    """(n,) Euclidean distances of the embeddings from the median of their class, higher is less typical.

    The median is taken coordinate by coordinate.

    >>> from prune4rel.engines.local import LocalEngine
    >>> median_distances(LocalEngine(Signals(labels=[0, 0, 0], embeddings=[[0, 0], [1, 0], [5, 3]])))
    array([1., 0., 5.])
    """
    return engine.per_example(distances_of_rows, ("embeddings", "labels"), engine.class_medians("embeddings"))


def distances_of_rows(rows: Floats, labels: NDArray[np.int64], medians: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,) Euclidean distances of some rows from the (C, d) medians of their classes."""
    distances: NDArray[np.float64] = np.linalg.norm(widen(rows) - medians[labels], axis=1)
    return distances


def middle_scores(distances: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) closeness to the middle of the group's ranking by distance, below 0, highest in the middle.

    -|rank - centre| with ranks 0, 1, ... by distance (ties to the lowest index) and the centre a quarter below
    the middle rank, so that of two ranks equally far from it the nearer to the median goes first.

    >>> middle_scores(np.array([9.0, 1.0, 4.0, 2.0]), np.zeros(4, dtype=np.int64))
    array([-1.75, -1.25, -0.75, -0.25])
    """
    order = np.argsort(distances, kind="stable")
    rank = np.empty(len(distances))
    rank[order] = rounds(groups[order])
    middle: NDArray[np.float64] = (np.bincount(groups)[groups] - 1) / 2
    return -np.abs(rank - (middle - 0.25))
