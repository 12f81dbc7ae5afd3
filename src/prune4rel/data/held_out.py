"""Holding examples back to test on, where a set has no test split of its own."""

from dataclasses import replace

import numpy as np

from prune4rel.data.dataset import Split
from prune4rel.errors import InputError

OWN_STREAM = 0x74657374
"""Keeps the draw apart from others that begin with the same seed."""


def hold_out(split: Split, share: float, seed: int) -> tuple[Split, Split | None]:
    """Cut a share of the examples off, drawn at random; the rest keeps its order.

    The examples cut off get their true labels, where those are known. A share of 0 cuts nothing off.

    Examples
    --------
    >>> train, test = hold_out(Split(labels=np.arange(8) % 2, features=np.eye(8)), 0.25, seed=0)
    >>> len(train), len(test)
    (6, 2)
    """
    if not 0 <= share < 1:
        raise InputError(f"the share to hold out must be at least 0 and below 1, not {share!r}")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, not {seed!r}")
    count = round(share * len(split))
    if count == 0:
        return split, None
    if count == len(split):
        raise InputError(f"holding out {share:.0%} of {len(split)} examples leaves none to train on")
    order = np.random.default_rng([seed, OWN_STREAM]).permutation(len(split))
    test = split.subset(np.sort(order[:count]))
    if test.clean_labels is not None:
        test = replace(test, labels=test.clean_labels)
    return split.subset(np.sort(order[count:])), test
