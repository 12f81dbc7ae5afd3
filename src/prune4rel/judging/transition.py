"""How true classes turn into given labels: a matrix, by expectation and maximisation, with heads as they are.

The model has two parts. A head says what an example is, Q[i, c] = softmax(b * scores[i])[c]; the matrix T[c, y] says
how often class c is labelled y. Then label y of example i has the probability sum_c Q[i, c] T[c, y].
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.judging.rows import Floats, for_each_block, total

ROUNDS = 20
PSEUDO = 2.0
"""Labels' worth of belief that a class is labelled as all classes are on average."""

START = 0.8
TINY = 1e-12


class Fit(NamedTuple):
    """(C, C) matrix [true, given], (C, C) expected counts behind it, mean of -log of the labels' probability."""

    matrix: Floats
    counts: Floats
    loss: float


def softmax(scores: NDArray[np.float32], sharpness: float) -> NDArray[np.float32]:
    """(n, C) probabilities, the softmax of `sharpness` times the scores.

    >>> softmax(np.log(np.array([[1, 3]], dtype=np.float32)), 1.0).round(6).tolist()
    [[0.25, 0.75]]
    """
    out = scores * np.float32(sharpness)
    out -= out.max(axis=1, keepdims=True)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)
    return out


def fit_transition(
    scores: NDArray[np.float32],
    labels: NDArray[np.int64],
    sharpness: float,
    *,
    rounds: int = ROUNDS,
    start: Floats | None = None,
) -> Fit:
    """Fit the matrix to given labels, with the head's probabilities fixed.

    Parameters
    ----------
    scores
        (n, C) of heads that have not learnt from the labels they are asked about.
    labels
        (n,) given labels.
    sharpness
        What scores are multiplied by.
    rounds
        Of expectation and maximisation.
    start
        (C, C) matrix to start from.

    Examples
    --------
    >>> scores = np.repeat(np.array([[9, 0], [0, 9]], dtype=np.float32), 100, axis=0)
    >>> labels = np.repeat([0, 1, 0], [100, 75, 25])
    >>> fit_transition(scores, labels, 1.0).matrix.round(1).tolist()
    [[1.0, 0.0], [0.2, 0.8]]
    """
    n, n_classes = scores.shape
    shares = (np.bincount(labels, minlength=n_classes) + 0.5) / (n + 0.5 * n_classes)
    matrix = START * np.eye(n_classes) + (1 - START) * shares if start is None else start
    counts, loss = np.zeros((n_classes, n_classes)), np.inf
    for _ in range(rounds):
        counts, loss = expected_counts(scores, labels, sharpness, matrix)
        matrix = matrix_from(counts, shares)
    return Fit(matrix, counts, loss)


def expected_counts(
    scores: NDArray[np.float32], labels: NDArray[np.int64], sharpness: float, matrix: Floats
) -> tuple[Floats, float]:
    """(C, C) how many examples of each class are expected behind each label, and the mean of -log p(label)."""
    n_classes = scores.shape[1]
    if not len(scores):
        return np.zeros((n_classes, n_classes)), 0.0
    likely = np.ascontiguousarray(matrix.T, dtype=np.float32)

    def block_counts(block: slice) -> tuple[Floats, float]:
        given = labels[block]
        joint = softmax(scores[block], sharpness) * likely[given]
        evidence = joint.sum(axis=1)
        joint /= np.maximum(evidence, np.float32(TINY))[:, None]
        order = np.argsort(given, kind="stable")
        present, starts = np.unique(given[order], return_index=True)
        counts = np.zeros((n_classes, n_classes))
        counts[present] = np.add.reduceat(joint[order], starts, axis=0, dtype=np.float64)
        return counts, float(-np.log(np.maximum(evidence, TINY), dtype=np.float64).sum())

    counts, loss = total(block_counts, len(scores))
    return counts.T, float(loss) / max(len(scores), 1)


def matrix_from(counts: Floats, shares: Floats) -> Floats:
    """(C, C) row-stochastic matrix from expected counts, [true, given].

    Wrong labels of a class are drawn towards how classes go wrong on average: as often as all do, and to where labels
    lie, by `PSEUDO` labels' worth.

    >>> matrix_from(np.array([[8.0, 2.0], [0.0, 0.0]]), np.array([0.5, 0.5])).round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    everyone = max(counts.sum(), TINY)
    wrong = 1.0 - float(np.trace(counts)) / everyone if counts.any() else 0.0
    away = np.broadcast_to(shares, counts.shape) * (1.0 - np.eye(len(shares)))
    away = away / np.maximum(away.sum(axis=1, keepdims=True), TINY)
    prior = (1.0 - wrong) * np.eye(len(shares)) + wrong * away
    raised = counts + PSEUDO * prior
    matrix: Floats = raised / raised.sum(axis=1, keepdims=True)
    return matrix


def posterior(
    scores: NDArray[np.float32], labels: NDArray[np.int64], sharpness: float, matrix: Floats
) -> NDArray[np.float32]:
    """(n, C) what each example is, by the head and by its given label.

    >>> scores = np.zeros((1, 2), dtype=np.float32)
    >>> posterior(scores, np.array([0]), 1.0, np.array([[0.75, 0.25], [0.25, 0.75]])).tolist()
    [[0.75, 0.25]]
    """
    likely = np.ascontiguousarray(matrix.T, dtype=np.float32)
    out = np.empty_like(scores)

    def block_posterior(block: slice) -> None:
        joint = softmax(scores[block], sharpness) * likely[labels[block]]
        out[block] = joint / np.maximum(joint.sum(axis=1, keepdims=True), np.float32(TINY))

    for_each_block(block_posterior, len(scores))
    return out
