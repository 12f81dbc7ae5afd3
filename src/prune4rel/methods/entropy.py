"""Entropy: what spreads the model's belief over many classes is worth learning."""

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import map_blocks
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best
from prune4rel.signals import Floats, Signals


@register_method(
    "entropy",
    needs=("probabilities",),
    cost="one pass over the probabilities",
    by_row=True,
    citation="Coleman et al.: Selection via Proxy: Efficient Data Selection for Deep Learning. ICLR 2020",
)
def entropy(signals: Signals, request: Request) -> Outcome:
    """Keep the examples whose predicted classes have the highest entropy.

    score = -Σ p log p over the classes, highest kept. The given labels play no part in it.
    """
    return keep_best(entropies(signals.need("probabilities")), signals.labels, request, keep="highest")


def entropies(probabilities: Floats) -> NDArray[np.float64]:
    """(n,) entropy in nats of the rows of (n, C) probabilities, 0 to log C, higher is less sure; 0 log 0 is 0.

    >>> entropies(np.array([[1, 0], [0.5, 0.5]]))
    array([0.        , 0.69314718])
    """

    def block(start: int, stop: int) -> NDArray[np.float64]:
        rows = np.ascontiguousarray(probabilities[start:stop], dtype=np.float64)
        total: NDArray[np.float64] = (rows * np.log(np.where(rows > 0, rows, 1.0))).sum(axis=1)
        return 0.0 - total

    return np.concatenate(map_blocks(block, *probabilities.shape))
