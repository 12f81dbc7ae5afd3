"""Judging labels: embeddings (or probabilities) and labels in; how likely each label is right, and what else it may be.

Everything is out of sample: no example is judged by a head that has learnt from its own label.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.errors import InputError
from prune4rel.judging.features import features_of
from prune4rel.judging.folds import FOLDS, assign_folds
from prune4rel.judging.heads import SHRINKAGES, discriminants, scores_of, sums_of
from prune4rel.judging.transition import expected_counts, fit_transition, posterior
from prune4rel.progress import Progress

Floats = NDArray[np.float64]

SHARPNESS = (0.06, 0.12, 0.25, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 3.0, 4.0)
FEWEST_OTHERS = 2
FLOOR = 1e-7
CHOOSING = 20_000
"""Rows on which the strength of heads is chosen."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """What judging says of n examples in C classes.

    Parameters
    ----------
    probabilities
        (n, C) float32, how likely each class is the true one, by everything that is known; rows sum to 1.
    label_score
        (n,) float64, how likely the given label is right; low is suspicious.
    predicted_label
        (n,) int64, the likeliest class.
    is_label_issue
        (n,) whether the label had better be changed.
    confidence
        (n,) float64, how likely `predicted_label` is right.
    noise_rate
        Estimated share of wrong labels; NaN where nothing can be said.
    noise_rate_interval
        Between what it lies, nine times in ten.
    noise_matrix
        (C, C) float64 [true, given], how often each class is given each label; rows sum to 1.
    noise_matrix_error
        (C, C) float64 its standard errors.
    notes
        What a user should know.
    stats, options
        Numbers about the work, and how it was done.
    """

    probabilities: NDArray[np.float32]
    label_score: Floats
    predicted_label: NDArray[np.int64]
    is_label_issue: NDArray[np.bool_]
    confidence: Floats
    noise_rate: float
    noise_rate_interval: tuple[float, float]
    noise_matrix: Floats
    noise_matrix_error: Floats
    notes: tuple[str, ...]
    stats: dict[str, Any]
    options: dict[str, Any]


def judge(
    embeddings: Any,
    labels: ArrayLike,
    *,
    n_classes: int | None = None,
    probabilities: ArrayLike | None = None,
    verified: ArrayLike | None = None,
    removed: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neighbours: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Judgement:
    """Judge labels by what other examples are like.

    Parameters
    ----------
    embeddings
        (n, d) numbers, dense or a SciPy sparse matrix in compressed rows; None where only probabilities are given.
    labels
        (n,) given labels, integers from 0 on.
    n_classes
        C; the largest label + 1 if left out.
    probabilities
        (n, C) of a model of your own that has not learnt from the labels it is asked about.
    verified
        (n,) labels that are settled: they count as right and are never an issue.
    removed
        (n,) examples that are no part of it: nothing is learnt from them.
    groups
        (n,) a number that copies of one example share; they are judged by others only.
    neighbours
        (n, k) indices of everyone's nearest others, and (n, k) their cosines.
    seed
        Of the folds.
    device
        ``"cpu"`` or ``"cuda"``.
    progress
        Told how far the work is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> true = np.arange(300) % 3
    >>> embeddings = 6 * np.eye(8)[true] + rng.normal(size=(300, 8))
    >>> labels = true.copy()
    >>> labels[:30] = (true[:30] + 1) % 3
    >>> found = judge(embeddings, labels)
    >>> np.flatnonzero(found.is_label_issue).tolist() == list(range(30))
    True
    >>> (found.predicted_label == true).all(), round(found.noise_rate, 1)
    (np.True_, 0.1)
    """
    del neighbours, device
    progress = Progress() if progress is None else progress
    given = np.asarray(labels, dtype=np.int64)
    n = len(given)
    if n == 0:
        raise InputError("labels are empty: there is nothing to judge", "labels")
    if embeddings is None and probabilities is None:
        raise InputError("give embeddings, or probabilities of a model of your own, or both", "embeddings")
    classes = max(int(given.max()) + 1, n_classes or 0)
    settled = np.zeros(n, dtype=bool) if verified is None else np.asarray(verified, dtype=bool)
    use = np.ones(n, dtype=bool) if removed is None else ~np.asarray(removed, dtype=bool)
    folds = assign_folds(given, max(2, min(FOLDS, n)), groups=None if groups is None else np.asarray(groups), seed=seed)
    candidates = []
    with progress.task("judging labels", 6.0 * n) as advance:
        if probabilities is not None:
            own = np.maximum(np.asarray(probabilities, dtype=np.float32), np.float32(FLOOR))
            candidates.append(np.log(own / own.sum(axis=1, keepdims=True)))
        if embeddings is not None:
            features = features_of(embeddings, advance=advance)
            sums = sums_of(features, folds, given, classes, int(folds.max()) + 1, use=use, advance=advance)
            heads = discriminants(sums)
            rng = np.random.default_rng(seed)
            pool = np.flatnonzero(use & ~settled)
            some = np.sort(rng.choice(pool, min(len(pool), CHOOSING), replace=False))
            losses = [
                _choose(scores_of(features[some], folds[some], head), given[some], folds[some])[0] for head in heads
            ]
            best = int(np.argmin(losses))
            candidates.append(scores_of(features, folds, heads[best], advance=advance))
        scores = candidates[-1]
        fitted = use & ~settled
        rows = slice(None) if fitted.all() else np.flatnonzero(fitted)
        sharpness = _choose(scores[rows][:CHOOSING], given[rows][:CHOOSING], folds[rows][:CHOOSING])[1]
        fit = fit_transition(scores[rows], given[rows], sharpness)
        q = posterior(scores, given, sharpness, fit.matrix)
    q[settled] = np.eye(classes, dtype=np.float32)[given[settled]]
    predicted = q.argmax(axis=1).astype(np.int64)
    score = q[np.arange(n), given].astype(np.float64)
    known = np.bincount(given[use], minlength=classes)[given] > FEWEST_OTHERS
    issue = (predicted != given) & use & ~settled & known
    rate = float(1.0 - score[use].mean()) if use.any() else float("nan")
    error = np.sqrt(fit.matrix * (1 - fit.matrix) / np.maximum(fit.counts.sum(axis=1, keepdims=True), 1.0))
    spread = 1.645 * float(np.sqrt(max(rate * (1 - rate), 0.0) / n))
    return Judgement(
        probabilities=q,
        label_score=score,
        predicted_label=predicted,
        is_label_issue=issue,
        confidence=q.max(axis=1).astype(np.float64),
        noise_rate=rate,
        noise_rate_interval=(max(0.0, rate - spread), min(1.0, rate + spread)),
        noise_matrix=fit.matrix,
        noise_matrix_error=error,
        notes=(),
        stats={"loss": fit.loss},
        options={"seed": seed, "folds": int(folds.max()) + 1, "sharpness": sharpness, "shrinkages": SHRINKAGES},
    )


def _choose(scores: NDArray[np.float32], labels: NDArray[np.int64], folds: NDArray[np.int64]) -> tuple[float, float]:
    """Least loss of labels whose matrix was fitted to the other half of the folds, and the sharpness it takes."""
    half = folds % 2 == 0
    found = []
    for sharpness in SHARPNESS:
        loss = 0.0
        for part in (half, ~half):
            matrix = fit_transition(scores[~part], labels[~part], sharpness, rounds=8).matrix
            loss += expected_counts(scores[part], labels[part], sharpness, matrix)[1] * part.sum()
        found.append((loss / len(labels), sharpness))
    return min(found)
