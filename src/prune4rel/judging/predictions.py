"""Labels judged by what a network in training said of every example before it learnt from it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.judging.judge import judge
from prune4rel.labels import Labels

LEAST = 1e-6
"""A probability below this counts as this."""

NOBODY = -1
"""In `speakers`: nobody said anything of the example."""


def judge_predictions(
    probabilities: NDArray[np.floating[Any]],
    given: NDArray[np.int64],
    class_names: Sequence[str],
    *,
    speakers: NDArray[np.integer[Any]] | None = None,
    verified: ArrayLike | None = None,
    removed: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    about: Mapping[str, Any] | None = None,
) -> Labels:
    """Judge labels by predictions that were made without them.

    A label's score is the geometric mean of how likely it is right, by everything the predictions tell of how labels
    go wrong, and of its share of what the network gave to it and to the likeliest other class. As many labels are
    issues, the lowest scores first, as predictions surely contradict.

    Parameters
    ----------
    probabilities
        (n, C) out of sample: of a memory of a training, or of examples a model was not trained on.
    given
        (n,) given labels, in ``range(C)``.
    class_names
        C names.
    speakers
        (n,) which of several models, as sure as they are, said each row: every one's predictions are judged by
        themselves. `NOBODY` where there is no prediction: such labels stay, judged by nobody.
    verified, removed
        (n,) bool, whose label is settled, so that it is no issue; who was thrown out, and does not count.
    ids
        (n,) your own names for the examples.
    about
        What to note of how they were made.

    Examples
    --------
    >>> sure = np.tile(np.linspace(0.8, 0.95, 10), 2)[:, None]
    >>> given = np.repeat([0, 1], 10)
    >>> p = np.where(np.eye(2)[given] > 0, sure, 1 - sure)
    >>> given[8] = 1
    >>> labels = judge_predictions(p, given, ("cat", "dog"))
    >>> np.flatnonzero(labels.is_label_issue), int(labels.predicted_label[8]), round(labels.noise_rate, 2)
    (array([8]), 0, 0.07)
    """
    n, C = probabilities.shape
    said = np.zeros(n, dtype=np.int64) if speakers is None else np.asarray(speakers)
    certain = None if verified is None else np.asarray(verified, dtype=np.bool_)
    gone = np.zeros(n, dtype=np.bool_) if removed is None else np.asarray(removed, dtype=np.bool_)
    predicted, score, confidence = given.copy(), np.ones(n), np.zeros(n)
    issue = np.zeros(n, dtype=np.bool_)
    counts, contradicted, known = np.zeros((C, C)), 0.0, 0
    for speaker in np.unique(said[said != NOBODY]):
        some = np.flatnonzero(said == speaker)
        p, own = probabilities[some], given[some]
        every = np.arange(len(some))
        others = p.copy()
        others[every, own] = -1.0
        other = others.argmax(axis=1) if C > 1 else own
        against = np.maximum(others[every, other], 0)
        share = p[every, own] / np.maximum(p[every, own] + against, LEAST)
        settled = None if certain is None else certain[some]
        judged = judge(None, own, n_classes=C, probabilities=p, verified=settled, removed=gone[some]).label_score
        score[some] = np.sqrt(judged * share).clip(0, 1)
        doubtful = ~gone[some] if settled is None else ~(gone[some] | settled)
        seen, rate = doubted(p[doubtful], own[doubtful]) if doubtful.any() else (np.eye(C), 0.0)
        counts += seen
        contradicted += rate * doubtful.sum()
        known += int(doubtful.sum())
        candidates = np.flatnonzero(doubtful)
        worst = candidates[np.argsort(score[some][candidates], kind="stable")[: round(rate * len(candidates))]]
        issue[some[worst]] = True
        predicted[some] = np.where(issue[some], other, own)
        confidence[some] = p[every, predicted[some]].clip(0, 1)
    source = np.where(said == NOBODY, "nobody", "training")
    if certain is not None:
        score, confidence = np.where(certain, 1.0, score), np.where(certain, 1.0, confidence)
        source = np.where(certain, "person", source)
    return Labels(
        given_label=given,
        predicted_label=predicted,
        label_score=score,
        is_label_issue=issue,
        confidence=confidence,
        class_names=tuple(class_names),
        verified=certain,
        removed=None if removed is None else gone,
        ids=None if ids is None else np.asarray(ids),
        source=source,
        noise_rate=contradicted / known if known else None,
        noise_matrix=counts / counts.sum(axis=1, keepdims=True) if known else None,
        about=dict(about or {}),
    )


def doubted(p: NDArray[np.floating[Any]], given: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
    """Count labels that predictions contradict, each class by its own measure of what is sure.

    A class is said surely of an example where its probability is at least what it has, on average, for examples that
    are given it (Northcutt et al., Confident Learning, JAIR 2021). So the count depends little on how early or late in
    its training a network was.

    Parameters
    ----------
    p
        (n, C) predictions.
    given
        (n,) labels.

    Returns
    -------
    (C, C) how often each class [surely said, given], 1 at least on the diagonal; and the share of labels contradicted.

    Examples
    --------
    >>> p = np.float32([[0.6, 0.4], [0.7, 0.3], [0.3, 0.7], [0.8, 0.2]])
    >>> doubted(p, np.array([0, 0, 1, 1]))[1]
    0.3333333333333333
    """
    n, C = p.shape
    total = np.bincount(given, weights=p[np.arange(n), given], minlength=C)
    members = np.bincount(given, minlength=C)
    measure = np.where(members > 0, total / np.maximum(members, 1), np.inf)
    sure = p >= measure
    said, surely = np.where(sure, p, -1.0).argmax(axis=1), sure.any(axis=1)
    counts = np.zeros((C, C))
    np.add.at(counts, (said[surely], given[surely]), 1.0)
    rate = float((said != given)[surely].mean()) if surely.any() else 0.0
    np.fill_diagonal(counts, np.maximum(counts.diagonal(), 1.0))
    return counts, rate
