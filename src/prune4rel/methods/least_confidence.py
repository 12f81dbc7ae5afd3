"""Least confidence: what the model is unsure of is worth learning."""

import numpy as np
from numpy.typing import NDArray

from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import confidence_of, keep_best
from prune4rel.signals import Signals


@register_method(
    "least-confidence",
    needs=("probabilities",),
    cost="one pass over the probabilities",
    by_row=True,
    citation="Coleman et al.: Selection via Proxy: Efficient Data Selection for Deep Learning. ICLR 2020",
)
def least_confidence(signals: Signals, request: Request) -> Outcome:
    """Keep the examples whose likeliest class is the least likely.

    score = highest probability, lowest kept. The given labels play no part in it.
    """
    return keep_best(top_probabilities(signals), signals.labels, request, keep="lowest")


def top_probabilities(signals: Signals) -> NDArray[np.float64]:
    """(n,) highest probability, 1/C to 1, higher is surer.

    >>> top_probabilities(Signals(labels=[0, 0], probabilities=[[0.5, 0.25, 0.25], [0, 1, 0]]))
    array([0.5, 1. ])
    """
    return confidence_of(signals, "max-prob")
