"""EL2N: an early error that is large marks what matters for training."""

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import map_blocks
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best
from prune4rel.signals import Floats, Signals


@register_method(
    "el2n",
    needs=("el2n|probabilities",),
    cost="one pass over the probabilities",
    by_row=True,
    citation="Paul, Ganguli, Dziugaite: Deep Learning on a Data Diet: Finding Important Examples Early in Training. "
    "NeurIPS 2021",
)
def el2n(signals: Signals, request: Request) -> Outcome:
    """Keep the examples with the largest error of the predicted probabilities.

    score = ‖p - onehot(given label)‖₂, highest kept. The signal `el2n`, averaged over warm-ups, is used where
    given, else the probabilities of the one warm-up.
    """
    scores = signals.el2n
    if scores is None:
        scores = error_norms(signals.need("probabilities"), signals.labels)
    return keep_best(scores, signals.labels, request, keep="highest")


def error_norms(probabilities: Floats, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) distance of (n, C) probabilities from the one-hot given labels, 0 to √2, higher is more wrong.

    >>> error_norms(np.array([[1, 0], [0.5, 0.5], [0, 1]]), np.array([0, 0, 0]))
    array([0.        , 0.70710678, 1.41421356])
    """

    def block(start: int, stop: int) -> NDArray[np.float64]:
        errors = np.array(probabilities[start:stop], dtype=np.float64, order="C")
        errors[np.arange(stop - start), labels[start:stop]] -= 1
        norms: NDArray[np.float64] = np.linalg.norm(errors, axis=1)
        return norms

    return np.concatenate(map_blocks(block, *probabilities.shape))
