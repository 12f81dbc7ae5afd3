"""Margin: examples between two classes teach where the border runs."""

import numpy as np
from numpy.typing import NDArray

from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import confidence_of, keep_best
from prune4rel.signals import Signals


@register_method(
    "margin",
    needs=("probabilities",),
    cost="one pass over the probabilities",
    by_row=True,
    citation="Coleman et al.: Selection via Proxy: Efficient Data Selection for Deep Learning. ICLR 2020",
)
def margin(signals: Signals, request: Request) -> Outcome:
    """Keep the examples whose two likeliest classes are closest.

    score = highest minus second-highest probability, lowest kept. The given labels play no part in it.
    """
    return keep_best(margins(signals), signals.labels, request, keep="lowest")


def margins(signals: Signals) -> NDArray[np.float64]:
    """(n,) highest minus second-highest probability, 0 to 1, higher is surer; a lone class counts in full.

    >>> margins(Signals(labels=[0, 0], probabilities=[[0.5, 0.25, 0.25], [0.5, 0.5, 0]]))
    array([0.25, 0.  ])
    """
    return confidence_of(signals, "diff-prob")
