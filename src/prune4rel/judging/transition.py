"""How true classes turn into given labels: a matrix, by expectation and maximisation, with heads as they are.

The model has two parts. A head says what an example is, Q[i, c] = softmax(b * scores[i])[c]; the matrix T[c, y] says
how often class c is labelled y. Then label y of example i has the probability sum_c Q[i, c] T[c, y].
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.judging.rows import Floats, for_each_block

ROUNDS = 20
BELIEF = 10.0
"""Labels' worth of belief that a class is labelled as all classes are on average."""

START = 0.8
TINY = 1e-12


class Fit(NamedTuple):
    """(C, C) matrix [true, given], (C, C) expected counts behind it, mean of -log of the labels' probability."""

    matrix: Floats
    counts: Floats
    loss: float


class Evidence(NamedTuple):
    """(n, C) what heads say, rows sorted by given label, and (C + 1,) where the rows of each label begin."""

    probabilities: NDArray[np.float32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, scores: NDArray[np.float32], labels: NDArray[np.int64], sharpness: float) -> "Evidence":
        """Put in order what scores say at some sharpness.

        >>> scores = np.log(np.array([[1, 3], [3, 1]], dtype=np.float32))
        >>> evidence = Evidence.of(scores, np.array([1, 0]), 1.0)
        >>> evidence.probabilities.round(6).tolist(), evidence.starts.tolist()
        ([[0.75, 0.25], [0.25, 0.75]], [0, 1, 2])
        """
        order = np.argsort(labels, kind="stable")
        out = np.empty_like(scores)

        def block(rows: slice) -> None:
            out[rows] = softmax(scores[order[rows]], sharpness)

        for_each_block(block, len(labels))
        return cls(out, np.searchsorted(labels[order], np.arange(scores.shape[1] + 1)))

    def counts(self, matrix: Floats) -> tuple[Floats, float]:
        """(C, C) how many examples of each class are expected behind each label; the mean of -log p(label)."""
        n, n_classes = self.probabilities.shape
        likely = np.ascontiguousarray(matrix.T, dtype=np.float32)
        counts = np.zeros((n_classes, n_classes))
        loss = 0.0
        for label in np.flatnonzero(np.diff(self.starts)):
            rows = self.probabilities[self.starts[label] : self.starts[label + 1]]
            with np.errstate(invalid="ignore"):  # BLAS may flag what lies beside its operands
                evidence = np.maximum(rows @ likely[label], np.float32(TINY))
                counts[:, label] = likely[label] * (np.float32(1.0) / evidence @ rows)
            loss -= float(np.log(evidence).sum(dtype=np.float64))
        return counts, loss / max(n, 1)


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


def fit_transition(evidence: Evidence, *, rounds: int = ROUNDS, belief: float = BELIEF) -> Fit:
    """Fit the matrix to given labels, with the head's probabilities fixed.

    Parameters
    ----------
    evidence
        What heads say that have not learnt from the labels they are asked about.
    rounds
        Of expectation and maximisation.
    belief
        As for `matrix_from`.

    Examples
    --------
    >>> scores = np.repeat(np.array([[9, 0], [0, 9]], dtype=np.float32), 1000, axis=0)
    >>> labels = np.repeat([0, 1, 0], [1000, 750, 250])
    >>> fit_transition(Evidence.of(scores, labels, 1.0)).matrix.round(2).tolist()
    [[1.0, 0.0], [0.25, 0.75]]
    """
    n_classes = evidence.probabilities.shape[1]
    given = np.diff(evidence.starts) + 0.5
    shares = given / given.sum()
    matrix = START * np.eye(n_classes) + (1 - START) * shares
    counts, loss = np.zeros((n_classes, n_classes)), np.inf
    for _ in range(rounds):
        counts, loss = evidence.counts(matrix)
        matrix = matrix_from(counts, shares, belief)
    return Fit(matrix, counts, loss)


def matrix_from(counts: Floats, shares: Floats, belief: float = BELIEF) -> Floats:
    """(C, C) row-stochastic matrix from expected counts, [true, given].

    Wrong labels of a class are drawn towards how classes go wrong on average: as often as all do, and to where labels
    lie, by `belief` labels' worth.

    >>> matrix_from(np.array([[80.0, 20.0], [0.0, 0.0]]), np.array([0.5, 0.5])).round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    everyone = max(counts.sum(), TINY)
    wrong = 1.0 - float(np.trace(counts)) / everyone if counts.any() else 0.0
    away = np.broadcast_to(shares, counts.shape) * (1.0 - np.eye(len(shares)))
    away = away / np.maximum(away.sum(axis=1, keepdims=True), TINY)
    raised = counts + belief * ((1.0 - wrong) * np.eye(len(shares)) + wrong * away)
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
