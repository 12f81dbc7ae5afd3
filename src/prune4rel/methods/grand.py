"""GraNd: an example counts by how far it would move the weights."""

import numpy as np
from numpy.typing import NDArray

from prune4rel.methods.el2n import error_norms
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best
from prune4rel.signals import Floats, Signals


@register_method(
    "grand",
    needs=("grad_norms|probabilities", "grad_norms|embeddings"),
    cost="one pass over the probabilities",
    by_row=True,
    citation="Paul, Ganguli, Dziugaite: Deep Learning on a Data Diet: Finding Important Examples Early in Training. "
    "NeurIPS 2021",
)
def grand(signals: Signals, request: Request) -> Outcome:
    """Keep the examples with the largest gradient norm of the last layer.

    score = ‖p - onehot(given label)‖₂ · √(1 + ‖z‖²), highest kept: the norm of the cross-entropy's gradient by
    the weights and the bias of a linear last layer on the embedding z. The signal `grad_norms`, averaged over
    warm-ups, is used where given, else probabilities and embeddings of the one warm-up.
    """
    scores = signals.grad_norms
    if scores is None:
        scores = gradient_norms(signals.need("probabilities"), signals.labels, signals.squared_norms["embeddings"])
    return keep_best(scores, signals.labels, request, keep="highest")


def gradient_norms(
    probabilities: Floats, labels: NDArray[np.int64], squared_norms: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n,) last-layer gradient norms, 0 or more, higher moves the weights further.

    Parameters
    ----------
    probabilities
        (n, C) of the model whose last layer it is.
    labels
        (n,) given labels.
    squared_norms
        (n,) squared lengths of the embeddings that the last layer sees; 1 is added for the bias.

    Examples
    --------
    >>> gradient_norms(np.array([[0, 1], [1, 0]]), np.array([0, 0]), np.array([1.0, 3.0]))
    array([2., 0.])
    """
    return error_norms(probabilities, labels) * np.sqrt(1 + squared_norms)
