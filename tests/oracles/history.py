"""What happened to every example in training, looked up one at a time."""

import math
from itertools import pairwise

import numpy as np


def histories(said, labels):
    """Forgetting events and areas under the margin from (row, logits) in the order they were said."""
    forgetting, aum = [], []
    for row, label in enumerate(labels):
        hits, margins = [], []
        for other, logits in said:
            if other != row:
                continue
            p = [math.exp(x) for x in logits]
            p = [x / sum(p) for x in p]
            hits.append(int(np.argmax(logits)) == label)
            margins.append(p[label] - max(x for k, x in enumerate(p) if k != label))
        events = sum(before and not after for before, after in pairwise(hits))
        forgetting.append(events if any(hits) else math.inf)
        aum.append(sum(margins) / len(margins) if margins else 0.0)
    return np.array(forgetting), np.array(aum)
