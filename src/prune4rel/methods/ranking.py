"""What rankings share: how sure a model is of an example, and keeping the best, in all or class by class."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.blocks import over_rows
from prune4rel.greedy.groups import proportional
from prune4rel.methods.method import Outcome, Request
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


Keep = Literal["highest", "lowest"]


def keep_best(
    scores: ArrayLike,
    labels: NDArray[np.int64],
    request: Request,
    *,
    keep: Keep,
    same_share: bool = False,
    **options: Any,
) -> Outcome:
    """Keep the examples with the highest or lowest scores; ties go to the lowest index.

    Parameters
    ----------
    scores
        (n,) one number an example; infinities are fine.
    labels
        (n,) classes to go round where ``request.balanced``: the class with the fewest picks comes next, the
        lowest among equals; a class that runs out drops out.
    request
        How many, and whether balanced; examples that were picked before lead and count.
    same_share
        Where not balanced, keep the same share of every class, up to rounding.
    options
        What the method was asked for, as the selection should record it.

    Examples
    --------
    >>> keep_best([3, 1, 2], np.array([0, 0, 1]), Request(size=2), keep="highest").indices
    array([0, 2])
    """
    values = np.asarray(scores, dtype=np.float64)
    worth = values if keep == "highest" else -values
    order = np.argsort(-worth, kind="stable")
    first = np.empty(0, dtype=np.int64)
    taken = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    if request.initial is not None:
        first = request.initial
        taken += np.bincount(labels[first], minlength=len(taken))
        order = order[~np.isin(order, first)]
    classes = labels[order]
    if request.balanced:
        order = order[np.lexsort((classes, taken[classes] + rounds(classes)))]
    elif same_share:
        late = rounds(classes) >= (proportional(np.bincount(labels), request.size) - taken)[classes]
        order = order[np.argsort(late, kind="stable")]
    picked = np.concatenate([first, order])[: request.size].astype(np.int64)
    return Outcome(
        indices=picked,
        gains=worth[picked],
        scores=values,
        options=options,
        stats={"keep": keep},
        ranking={"keep": keep, "same_share": same_share},
    )


def rounds(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """(m,) how many earlier entries have the same label: the round in which each gets its turn.

    >>> rounds(np.array([5, 5, 7, 5]))
    array([0, 1, 0, 2])
    """
    order = np.argsort(labels, kind="stable")
    sorted_labels = labels[order]
    first = np.searchsorted(sorted_labels, sorted_labels)
    result = np.empty(len(labels), dtype=np.int64)
    result[order] = np.arange(len(labels)) - first
    return result
