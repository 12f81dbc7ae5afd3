"""Moderate: neither the typical nor the strange, but the middle of each."""

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import map_blocks
from prune4rel.greedy.groups import Groups
from prune4rel.half import widen
from prune4rel.methods.ranking import keep_best, rounds
from prune4rel.methods.registry import Outcome, Request, register_method
from prune4rel.signals import Floats, Signals


@register_method(
    "moderate",
    needs=("embeddings",),
    cost="two passes over the embeddings",
    citation="Xia, Liu, Yu, Shen, Han, Liu: Moderate Coreset: A Universal Method of Data Selection for Real-world "
    "Data-efficient Deep Learning. ICLR 2023",
)
def moderate(signals: Signals, request: Request) -> Outcome:
    """Keep the examples whose distance from the median of their class is in the middle of the ranking.

    score = -|rank - centre|, highest kept, where rank is the place by distance ‖z - median of the given class‖₂,
    nearest first, among all examples, or with balanced among those of the class.
    """
    if signals.embeddings is None:
        raise AssertionError("select checks for missing signals")
    distances = median_distances(signals.embeddings, signals.labels)
    ranked_with = signals.labels if request.balanced else np.zeros_like(signals.labels)
    return keep_best(middle_scores(distances, ranked_with), signals.labels, request, keep="highest")


def median_distances(embeddings: Floats, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) Euclidean distances of (n, d) embeddings from the median of their class, higher is less typical.

    The median is taken coordinate by coordinate.

    >>> median_distances(np.array([[0, 0], [1, 0], [5, 3]]), np.array([0, 0, 0]))
    array([1., 0., 5.])
    """
    groups = Groups.make(len(labels), labels)
    medians = np.zeros((len(groups.sizes), embeddings.shape[1]))
    for g in np.flatnonzero(groups.sizes):
        medians[g] = _median(embeddings, groups.members[groups.starts[g] :][: groups.sizes[g]])

    def block(start: int, stop: int) -> NDArray[np.float64]:
        distances: NDArray[np.float64] = np.linalg.norm(
            widen(embeddings[start:stop]) - medians[labels[start:stop]], axis=1
        )
        return distances

    return np.concatenate(map_blocks(block, *embeddings.shape))


def _median(embeddings: Floats, members: NDArray[np.int64]) -> NDArray[np.float64]:
    """(d,) median of each coordinate over the members."""

    def block(start: int, stop: int) -> NDArray[np.float64]:
        coordinates = np.ascontiguousarray(widen(embeddings[members, start:stop]).T, dtype=np.float64)
        middle: NDArray[np.float64] = np.median(coordinates, axis=1, overwrite_input=True)
        return middle

    return np.concatenate(map_blocks(block, embeddings.shape[1], len(members)))


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
