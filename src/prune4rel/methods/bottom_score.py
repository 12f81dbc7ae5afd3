"""Bottom score: a score of the user's own, lowest first."""

from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best
from prune4rel.signals import Signals


@register_method("bottom-score", needs=("scores",), cost="one sort", by_row=True)
def bottom_score(signals: Signals, request: Request) -> Outcome:
    """Keep the examples with the lowest scores of your own.

    score = the signal `scores`, lowest kept.
    """
    return keep_best(signals.need("scores"), signals.labels, request, keep="lowest")
