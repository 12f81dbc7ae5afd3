"""How sure a model is of an example, by its probabilities."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import over_rows
from prune4rel.signals import Floats, Signals

Confidence = Literal["max-prob", "diff-prob", "label-prob"]
CONFIDENCES: tuple[str, ...] = get_args(Confidence)


def confidence_of(signals: Signals, kind: str) -> NDArray[np.float64]:
    """(n,) confidence in every example, 0 to 1, higher is surer.

    >>> signals = Signals(labels=[1], probabilities=[[0.7, 0.2, 0.1]])
    >>> [round(float(confidence_of(signals, kind)[0]), 3) for kind in CONFIDENCES]
    [0.7, 0.5, 0.2]
    """
    return over_rows(confidence_of_rows, [signals.need("probabilities"), signals.labels], kind)


def confidence_of_rows(probabilities: Floats, labels: NDArray[np.int64], kind: str) -> NDArray[np.float64]:
    """(m,) the same for the (m, C) rows of a block."""
    rows = np.asarray(probabilities, dtype=np.float64)
    if kind == "label-prob":
        mine: NDArray[np.float64] = rows[np.arange(len(rows)), labels]
        return mine
    if kind == "max-prob" or rows.shape[1] == 1:
        highest: NDArray[np.float64] = rows.max(axis=1)
        return highest
    top = np.partition(rows, rows.shape[1] - 2, axis=1)[:, -2:]
    return top[:, 1] - top[:, 0]
