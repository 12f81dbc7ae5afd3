"""How much heads are shrunk and how sharply they speak: by how well they foretell labels that they have not seen."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.judging.rows import Floats
from prune4rel.judging.transition import BELIEF, Evidence, fit_transition, softmax

SHARPEST = 32.0
BLUNTEST = 1e-3
COARSE, FINE = 1.5, 1.1
SHARPENINGS = tuple(1.2**k for k in range(9))
BELIEFS = (BELIEF, 10 * BELIEF, 100 * BELIEF)
ROUNDS = 8
MOST_LOSS, MOST_LOSS_EVEN, MOST_SHARE = 0.012, 0.006, 0.45
"""How much likelihood may be given away for a sharper head: nats a label, fewer where all classes go wrong alike, and a
share of what sharpening gained."""

TINY = 1e-12


class Voice(NamedTuple):
    """How heads are to be read: scores times `sharpness`, through a matrix held by `belief`.

    `plain` is the sharpness that fits the labels best if none were wrong. `losses` are the held-out ones of
    `SHARPENINGS` times that.
    """

    sharpness: float
    belief: float
    plain: float
    losses: tuple[float, ...]


def plain_loss(scores: NDArray[np.float32], labels: NDArray[np.int64]) -> tuple[float, float]:
    """Least mean of -log softmax(b * scores)[label] over b, and the b that gives it.

    This is what heads say of labels if none is wrong.

    >>> scores = np.array([[1, 0], [0, 1], [0, 1], [0, 1]], dtype=np.float32)
    >>> loss, sharpness = plain_loss(scores, np.array([0, 1, 1, 0]))
    >>> round(loss, 3), round(sharpness, 1)
    (0.562, 1.1)
    """
    rows = np.arange(len(labels))
    return _least(lambda sharpness: softmax(scores, sharpness)[rows, labels])


def loss_through(scores: NDArray[np.float32], labels: NDArray[np.int64], matrix: Floats) -> tuple[float, float]:
    """Least mean of -log sum_c softmax(b * scores)[c] matrix[c, label] over b, and the b that gives it.

    >>> scores = np.array([[1, 0], [0, 1], [0, 1], [0, 1]], dtype=np.float32)
    >>> loss, sharpness = loss_through(scores, np.array([0, 1, 1, 0]), np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> round(loss, 3), sharpness > 10
    (0.562, True)
    """
    likely = np.ascontiguousarray(matrix.T, dtype=np.float32)[labels]
    return _least(lambda sharpness: np.einsum("ij,ij->i", softmax(scores, sharpness), likely))


def _least(chances: Callable[[float], NDArray[np.float32]]) -> tuple[float, float]:
    def loss(sharpness: float) -> float:
        return float(-np.log(np.maximum(chances(sharpness), TINY)).mean(dtype=np.float64))

    best = _descend(loss, 1.0, COARSE)
    best = _descend(loss, best, FINE)
    return loss(best), best


def choose_voice(scores: NDArray[np.float32], labels: NDArray[np.int64], halves: NDArray[np.bool_]) -> Voice:
    """Choose how sharply heads speak, and how much is believed of the matrix beforehand.

    Each half's labels are foretold by heads and the matrix of the other half. Without noise, heads that are as sharp
    as the labels are sure foretell them best. Where labels are wrong, sharper heads do, whose certainty the matrix
    takes back: that is how noise shows. The sharpest head that foretells them nearly as well as the best is taken, as
    people err where examples are hard, and such errors look like a blunt head. Errors that go anywhere are not
    people's; there less is given away.

    Parameters
    ----------
    scores
        (n, C) of heads that have not learnt from the labels they are asked about.
    labels
        (n,) given labels.
    halves
        (n,) which half each row is in.
    """
    n_classes = scores.shape[1]
    plain = plain_loss(scores, labels)[1]
    beliefs: Sequence[float] = BELIEFS if n_classes > 2 else BELIEFS[:1]
    first = {belief: held_out_loss(scores, labels, halves, SHARPENINGS[2] * plain, belief) for belief in beliefs}
    belief = min(first, key=lambda each: first[each])
    losses = np.array([held_out_loss(scores, labels, halves, factor * plain, belief) for factor in SHARPENINGS])
    if (
        not losses.argmin()
    ):  # nothing speaks for noise, and what a matrix explains besides are the heads' own confusions
        return Voice(plain, beliefs[-1], plain, tuple(float(loss) for loss in losses))
    taken = sharpest(losses, MOST_LOSS_EVEN if belief == BELIEFS[-1] else MOST_LOSS)
    return Voice(SHARPENINGS[taken] * plain, belief, plain, tuple(float(loss) for loss in losses))


def sharpest(losses: Floats, most: float) -> int:
    """Last of some losses that is nearly as low as the lowest: by so many nats at most.

    >>> sharpest(np.array([1.0, 0.95, 0.952, 0.96]), 0.006), sharpest(np.array([1.0, 1.001, 1.002]), 0.006)
    (2, 0)
    """
    gained = losses[0] - losses.min()
    allowed = losses.min() + min(most, MOST_SHARE * gained)
    return int(np.flatnonzero(losses <= allowed)[-1])


def held_out_loss(
    scores: NDArray[np.float32],
    labels: NDArray[np.int64],
    halves: NDArray[np.bool_],
    sharpness: float,
    belief: float = BELIEF,
) -> float:
    """Mean of -log p(label), each half's by the matrix that was fitted to the other."""
    parts = [Evidence.of(scores[half], labels[half], sharpness) for half in (halves, ~halves)]
    loss = 0.0
    for part, other in (parts, parts[::-1]):
        matrix = fit_transition(other, rounds=ROUNDS, belief=belief).matrix
        loss += part.counts(matrix)[1] * len(part.probabilities)
    return loss / len(labels)


def _descend(loss: Callable[[float], float], start: float, factor: float) -> float:
    """Multiply or divide by a factor as long as that lowers a loss."""
    best, least = start, loss(start)
    for step in (factor, 1.0 / factor):
        while BLUNTEST < best * step < SHARPEST and (here := loss(best * step)) < least:
            best, least = best * step, here
    return best
