"""Uniform: every example is as good as any other."""

import numpy as np

from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best
from prune4rel.signals import Signals


@register_method("uniform", needs=(), cost="n random numbers", extends=True, seeded=True)
def uniform(signals: Signals, request: Request) -> Outcome:
    """Draw examples at random without replacement; balanced makes it stratified with equal class counts.

    Every example gets a random number between 0 and 1 from the seed, and the highest are kept.
    """
    scores = np.random.default_rng(request.seed).random(len(signals))
    return keep_best(scores, signals.labels, request, keep="highest")
