"""Small loss: what the model fits early is probably labelled right."""

import numpy as np

from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best
from prune4rel.signals import Signals


@register_method(
    "small-loss",
    needs=("losses|probabilities",),
    cost="one pass over the probabilities",
    by_row=True,
    citation="Jiang, Zhou, Leung, Li, Fei-Fei: MentorNet. ICML 2018",
)
def small_loss(signals: Signals, request: Request) -> Outcome:
    """Keep the examples with the smallest cross-entropy of their given label.

    score = -log p(given label | x), lowest kept. `losses` are used where given, else the probabilities.
    """
    return keep_best(cross_entropy(signals), signals.labels, request, keep="lowest")


def cross_entropy(signals: Signals) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """(n,) cross-entropy of the given labels; infinite where the model rules the label out.

    >>> float(cross_entropy(Signals(labels=[0], probabilities=[[0.5, 0.5]]))[0])
    0.6931471805599453
    """
    if signals.losses is not None:
        return np.asarray(signals.losses, dtype=np.float64)
    given = signals.need("probabilities")[np.arange(len(signals)), signals.labels]
    with np.errstate(divide="ignore"):
        return -np.log(given.astype(np.float64))
