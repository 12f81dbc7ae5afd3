"""The second look: heads learn from judged labels, neighbours vote with them, and all are heard together.

The first look says what each example probably is. Heads that learn from that, rather than from given labels, know more,
and so do nearest neighbours that vote with it. Neither is trusted alone: rare classes and weak features may be lost on
the way. So first and second heads are heard alike, and the votes as much as given labels speak for it. How labels go
wrong is not estimated again: a second estimate confirms the first.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.judging.choose import loss_through
from prune4rel.judging.heads import Sums, discriminants, scores_of
from prune4rel.judging.rows import Floats, for_each_block

if TYPE_CHECKING:
    from prune4rel.judging.arithmetic import Arithmetic

Rows = NDArray[np.float32]

SHARE_OF_SECOND = 0.5
SHARES_OF_VOTES = (0.0, 0.25, 0.5, 0.75)
LEAST_COSINE = 1e-3
PRIOR = 1.0
"""Votes that a neighbourhood has beforehand, by how frequent classes are."""

FLOOR = 0.02
"""Votes that every class has beforehand."""


class Look(NamedTuple):
    """(n, p) features, the sums that the first heads were made of, and how much these were shrunk."""

    features: Any
    sums: Sums
    shrinkage: float


class Heard(NamedTuple):
    """(n, C) scores of all who are heard, how sharply they are read, and the share of the votes."""

    scores: Any
    sharpness: float
    votes: float


def shrinkages_beside(shrinkage: float) -> Sequence[float]:
    """Return a shrinkage, and one below and one above it.

    >>> shrinkages_beside(0.5)
    (0.25, 0.5, 0.75)
    """
    return tuple(sorted({shrinkage / 2, shrinkage, (1 + shrinkage) / 2}))


def second_heads(
    numbers: "Arithmetic",
    first: Look,
    folds: NDArray[np.int64],
    q: Any,
    use: NDArray[np.bool_],
    *,
    matrix: Floats,
    labels: NDArray[np.int64],
    some: NDArray[np.int64],
) -> tuple[Any, float]:
    """Train heads on what examples probably are; returns their (n, C) scores, and how sharply they are read.

    Parameters
    ----------
    numbers
        Where the work is done.
    first
        What the first heads were made of; only sums by class are taken anew.
    folds
        (n,) of the rows.
    q, use
        (n, C) what each example probably is, and (n,) which take part.
    matrix, labels, some
        How labels go wrong; (n,) given ones; rows by which the shrinkage is settled.
    """
    classes, counts = numbers.soft_sums(first.features, folds, q, use)
    heads = discriminants(Sums(first.sums.products, classes, counts), shrinkages_beside(first.shrinkage))
    seen, given = numbers.host(first.features, some), labels[some]
    losses = [loss_through(scores_of(seen, folds[some], head), given, matrix) for head in heads]
    best = int(np.argmin([loss for loss, _ in losses]))
    return numbers.scores(first.features, folds, heads[best]), losses[best][1]


def with_votes(
    numbers: "Arithmetic", scores: Any, votes: Any, matrix: Floats, labels: NDArray[np.int64], some: NDArray[np.int64]
) -> Heard:
    """Mix scores and votes as given labels speak for it."""
    mine, theirs, given = numbers.host(scores, some), numbers.host(votes, some), labels[some]
    sharp = loss_through(mine, given, matrix)[1], loss_through(theirs, given, matrix)[1]
    mixed = {
        share: loss_through(
            np.float32((1 - share) * sharp[0]) * mine + np.float32(share * sharp[1]) * theirs, given, matrix
        )
        for share in SHARES_OF_VOTES
    }
    share = min(mixed, key=lambda each: mixed[each][0])
    return Heard(scores * ((1 - share) * sharp[0]) + votes * (share * sharp[1]), mixed[share][1], share)


def vote_weights(
    indices: NDArray[np.int64], cosines: Rows, use: NDArray[np.bool_], groups: NDArray[np.int64] | None
) -> Rows:
    """(n, k) what each neighbour's vote counts: the square of its cosine; copies and who takes no part have none.

    >>> cosines = np.float32([[0.5, 0.25], [0.5, -1], [1, 0]])
    >>> indices = np.array([[1, 2], [0, 2], [0, 1]])
    >>> vote_weights(indices, cosines, np.array([True, True, False]), None)[0].tolist()
    [0.25, 0.0]
    """
    weights: Rows = np.maximum(cosines, np.float32(LEAST_COSINE)) ** 2
    weights *= use[indices]
    if groups is not None:
        weights *= groups[indices] != groups[:, None]
    return weights


def cast_votes(q: Rows, indices: NDArray[np.int64], weights: Rows) -> Rows:
    """(n, C) logarithms of the votes of everyone's neighbours, whose own label has no part in it.

    >>> q = np.float32([[1, 0], [1, 0], [0, 1]])
    >>> cast_votes(q, np.array([[1], [0], [0]]), np.ones((3, 1), np.float32)).argmax(axis=1).tolist()
    [0, 0, 0]
    """
    out = np.empty_like(q)
    beforehand = (PRIOR * q.mean(axis=0, dtype=np.float64) + FLOOR).astype(np.float32)

    def block(rows: slice) -> None:
        _vote(q, indices[rows], weights[rows], beforehand, out[rows])

    for_each_block(block, len(q))
    return out


def cast_label_votes(labels: NDArray[np.int64], n_classes: int, indices: NDArray[np.int64], weights: Rows) -> Rows:
    """(m, C) logarithms of the votes of the neighbours of m examples, each for its own label.

    It is what `cast_votes` says where all of them are certain.

    >>> labels, near = np.array([0, 0, 1]), np.array([[1], [0], [0]])
    >>> certain = cast_votes(np.eye(2, dtype=np.float32)[labels], near, np.ones((3, 1), np.float32))
    >>> bool(np.allclose(cast_label_votes(labels, 2, near, np.ones((3, 1), np.float32)), certain))
    True
    """
    shares = np.bincount(labels, minlength=n_classes) / len(labels)
    voters = (weights > 0).sum(axis=1)
    scaled = weights * (voters / np.maximum(weights.sum(axis=1), LEAST_COSINE**2))[:, None]
    places = np.arange(len(indices))[:, None] * n_classes + labels[indices]
    votes = np.bincount(places.ravel(), weights=scaled.ravel(), minlength=len(indices) * n_classes)
    return np.log(votes.reshape(-1, n_classes) + PRIOR * shares + FLOOR).astype(np.float32)


@compiled
def _vote(q: Rows, indices: NDArray[np.int64], weights: Rows, beforehand: Rows, out: Rows) -> None:
    n_classes = q.shape[1]
    for row in range(len(out)):
        total, voters = np.float32(0), 0
        for place in range(indices.shape[1]):
            total += weights[row, place]
            voters += weights[row, place] > 0
        scale = np.float32(voters) / total if voters else np.float32(0)
        for c in range(n_classes):
            out[row, c] = beforehand[c]
        for place in range(indices.shape[1]):
            weight = weights[row, place] * scale
            if weight > 0:
                other = indices[row, place]
                for c in range(n_classes):
                    out[row, c] += weight * q[other, c]
        for c in range(n_classes):
            out[row, c] = np.log(out[row, c])
