"""Multinomial logistic regression on soft labels: what to train on labels that were judged."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from prune4rel.judging.folds import assign_folds
from prune4rel.machine import MULTIPLICATIONS

Floats = NDArray[np.floating[Any]]

STRENGTHS = (1e-3, 1e-2, 0.1, 0.3, 1.0)
"""Of the penalty, beside the mean loss, on standardised features."""

FOLDS = 3
CHOOSING = 4_000
"""Rows on which the strength is chosen."""

ROUNDS = 100
TOLERANCE = 1e-5
LEAST_SPREAD = 1e-6


class LinearHead(NamedTuple):
    """(d, C) weights and (C,) biases: logits are ``rows @ weights + biases``; and the strength of the penalty."""

    weights: NDArray[np.float32]
    biases: NDArray[np.float32]
    strength: float

    def logits(self, rows: Floats) -> NDArray[np.float32]:
        """(n, C) of some rows."""
        return rows.astype(np.float32) @ self.weights + self.biases


def fit_logistic(
    rows: Floats,
    targets: ArrayLike,
    *,
    n_classes: int | None = None,
    weights: ArrayLike | None = None,
    strength: float | None = None,
    seed: int = 0,
) -> LinearHead:
    """Fit logistic regression.

    Minimises the weighted mean of -sum target log p, plus ``strength / 2`` times the squared weights on features of
    mean 0 and variance 1.

    Parameters
    ----------
    rows
        (n, d) features.
    targets
        (n,) labels, or (n, C) probabilities of each class.
    n_classes
        C, where targets are labels.
    weights
        (n,) how much each example counts; all alike unless told.
    strength
        Of the penalty; unless told, that of `STRENGTHS` under which held-out targets are likeliest.
    seed
        Of the folds.

    Examples
    --------
    >>> rows = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> head = fit_logistic(rows, [0, 0, 1, 1], strength=0.01)
    >>> head.logits(rows).argmax(axis=1)
    array([0, 0, 1, 1])
    """
    soft = np.asarray(targets)
    if soft.ndim == 1:
        soft = np.eye(int(soft.max()) + 1 if n_classes is None else n_classes, dtype=np.float32)[soft]
    soft = soft.astype(np.float32)
    counts = np.ones(len(soft), dtype=np.float32) if weights is None else np.asarray(weights, dtype=np.float32)
    mean = rows.mean(axis=0, dtype=np.float64)
    spread = np.sqrt(np.maximum(rows.var(axis=0, dtype=np.float64), 0.0))
    scale = np.where(spread > LEAST_SPREAD * max(1e-30, float(spread.max())), 1 / np.maximum(spread, 1e-30), 0.0)
    standard = ((rows - mean) * scale).astype(np.float32)
    with threadpool_limits(1, "blas"):  # products with few columns only lose by sharing their work
        if strength is None:
            strength = _choose(standard, soft, counts, seed)
        solution = _minimise(standard, soft, counts, strength)
    slopes = scale[:, None] * solution[:-1]
    return LinearHead(slopes.astype(np.float32), (solution[-1] - mean @ slopes).astype(np.float32), strength)


def seconds_to_fit(n: int, dim: int, n_classes: int) -> float:
    """Return roughly how many seconds a fit to n examples takes on two cores.

    >>> 1 < seconds_to_fit(50_000, 512, 10) < 60
    True
    """
    return ROUNDS * 4.0 * n * dim * n_classes / MULTIPLICATIONS


def _choose(rows: Floats, soft: Floats, counts: Floats, seed: int) -> float:
    some = np.random.default_rng(seed).permutation(len(rows))[:CHOOSING]
    if len(some) < 2 * FOLDS:
        return STRENGTHS[len(STRENGTHS) // 2]
    rows, soft, counts = rows[some], soft[some], counts[some]
    folds = assign_folds(soft.argmax(axis=1), FOLDS, seed=seed)
    solutions: list[NDArray[np.float64] | None] = [None] * FOLDS
    best, lowest = STRENGTHS[-1], np.inf
    for strength in sorted(STRENGTHS, reverse=True):
        loss = 0.0
        for fold in range(FOLDS):
            fit, ask = folds != fold, folds == fold
            solutions[fold] = found = _minimise(rows[fit], soft[fit], counts[fit], strength, start=solutions[fold])
            logits = rows[ask] @ found[:-1] + found[-1]
            loss -= float((counts[ask, None] * soft[ask] * _log_softmax(logits)).sum())
        if loss >= lowest:  # weaker ones would only be worse, and take longest
            break
        best, lowest = strength, loss
    return best


def _minimise(
    rows: Floats, soft: Floats, counts: Floats, strength: float, start: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """(d + 1, C) weights and, last, biases."""
    from scipy.optimize import minimize  # noqa: PLC0415 - a second that not every user need spend

    d, C = rows.shape[1], soft.shape[1]
    share = (counts / max(float(counts.sum()), 1e-30)).astype(np.float32)

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        solution = flat.reshape(d + 1, C)
        logs = _log_softmax(rows @ solution[:-1].astype(np.float32) + solution[-1].astype(np.float32))
        rest = (np.exp(logs) * soft.sum(axis=1, keepdims=True) - soft) * share[:, None]
        value = -float((share[:, None] * soft * logs).sum(dtype=np.float64))
        gradient = np.empty((d + 1, C))
        gradient[:-1] = rows.T @ rest
        gradient[-1] = rest.sum(axis=0)
        gradient[:-1] += strength * solution[:-1]
        return value + strength / 2 * float((solution[:-1] ** 2).sum()), gradient.ravel()

    begin = np.zeros((d + 1) * C) if start is None else start.ravel()
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS, "gtol": TOLERANCE})
    solution: NDArray[np.float64] = found.x.reshape(d + 1, C)
    return solution


def _log_softmax(logits: Floats) -> Floats:
    shifted: Floats = logits - logits.max(axis=1, keepdims=True)
    logs: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logs
