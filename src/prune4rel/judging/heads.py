"""Linear heads in closed form, cross-fitted: what each row is, by rows of other folds.

All a linear discriminant needs to know of the rows are sums: of their outer products, and of the rows of each class.
They are taken once, fold by fold; what a head of fold k learns from is the whole less fold k. One eigendecomposition
of the pooled covariance a fold then gives the heads of all shrinkages.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel.judging.rows import Floats, for_each_block, total
from prune4rel.progress import Advance, no_advance

SHRINKAGES = (0.02, 0.1, 0.35, 0.65, 0.8, 0.9, 0.97, 1.0)
NOBODY = 0.5
"""How many members a class counts as that has none: it stays possible, and improbable."""

TINY = 1e-12


class Sums(NamedTuple):
    """What the folds add up to: (K, p, p) outer products, (K, C, p) rows by class, (K, C) how many."""

    products: Floats
    classes: Floats
    counts: Floats

    def without(self, fold: int) -> "Sums":
        """Return the sums over all folds but one, as those of a single fold."""
        others = np.arange(len(self.counts)) != fold
        return Sums(*(each[others].sum(axis=0)[None] for each in self))


class Heads(NamedTuple):
    """One linear head a fold: scores are ``rows @ weights[fold] + biases[fold]``. (K, p, C) and (K, C), float32."""

    weights: NDArray[np.float32]
    biases: NDArray[np.float32]


def sums_of(
    features: NDArray[np.float32],
    folds: NDArray[np.int64],
    labels: NDArray[np.int64],
    n_classes: int,
    n_folds: int,
    *,
    use: NDArray[np.bool_] | None = None,
    advance: Advance = no_advance,
) -> Sums:
    """Add up the rows of every fold.

    Parameters
    ----------
    features
        (n, p) float32.
    folds, labels
        (n,) the fold of each row, and its class.
    n_classes, n_folds
        How many there are of both.
    use
        (n,) which rows count; all if left out.

    Examples
    --------
    >>> rows = np.array([[1], [2], [4]], dtype=np.float32)
    >>> found = sums_of(rows, np.array([0, 1, 1]), np.array([0, 0, 1]), 2, 2)
    >>> found.products.ravel().tolist(), found.classes.tolist(), found.without(0).counts.tolist()
    ([1.0, 20.0], [[[1.0], [0.0]], [[2.0], [4.0]]], [[1.0, 1.0]])
    """
    width = features.shape[1]

    def block_sums(block: slice) -> tuple[NDArray[Any], ...]:
        products = np.zeros((n_folds, width, width), dtype=np.float32)
        classes = np.zeros((n_folds, n_classes, width))
        counts = np.zeros((n_folds, n_classes))
        here = folds[block] if use is None else np.where(use[block], folds[block], -1)
        for fold in range(n_folds):
            chosen = np.flatnonzero(here == fold)
            rows, given = features[block][chosen], labels[block][chosen]
            products[fold] = rows.T @ rows
            order = np.argsort(given, kind="stable")
            present, starts = np.unique(given[order], return_index=True)
            if len(present):
                classes[fold, present] = np.add.reduceat(rows[order], starts, axis=0, dtype=np.float64)
            counts[fold] = np.bincount(given, minlength=n_classes)
        return products, classes, counts

    return Sums(*total(block_sums, len(features), advance))


def soft_sums_of(
    features: NDArray[np.float32],
    folds: NDArray[np.int64],
    q: NDArray[np.float32],
    n_folds: int,
    *,
    use: NDArray[np.bool_] | None = None,
) -> tuple[Floats, Floats]:
    """(K, C, p) rows by class and (K, C) how many, where each row counts for class c as much as `q` says.

    >>> rows, q = np.array([[1], [2], [4]], dtype=np.float32), np.float32([[1, 0], [0.5, 0.5], [0, 1]])
    >>> classes, counts = soft_sums_of(rows, np.array([0, 1, 1]), q, 2)
    >>> classes[..., 0].tolist(), counts.tolist()
    ([[1.0, 0.0], [1.0, 5.0]], [[1.0, 0.0], [0.5, 1.5]])
    """
    width, n_classes = features.shape[1], q.shape[1]

    def block_sums(block: slice) -> tuple[NDArray[Any], ...]:
        classes = np.zeros((n_folds, n_classes, width), dtype=np.float32)
        counts = np.zeros((n_folds, n_classes))
        here = folds[block] if use is None else np.where(use[block], folds[block], -1)
        for fold in range(n_folds):
            chosen = np.flatnonzero(here == fold)
            weights = q[block][chosen]
            classes[fold] = weights.T @ features[block][chosen]
            counts[fold] = weights.sum(axis=0, dtype=np.float64)
        return classes, counts

    classes, counts = total(block_sums, len(features))
    return classes, counts


def discriminants(sums: Sums, shrinkages: Sequence[float] = SHRINKAGES) -> list[Heads]:
    """Linear discriminants for each shrinkage, each fold's from the sums of the others.

    The shared covariance S of the classes becomes (1 - a) S + a tr(S) / p I; the score of class c is the logarithm
    of its share times its normal density, up to what all classes have in common.

    Examples
    --------
    >>> rows = np.array([[0], [1], [5], [6], [0], [1], [5], [6]], dtype=np.float32)
    >>> folds, labels = np.arange(8) // 4, np.array([0, 0, 1, 1] * 2)
    >>> (head,) = discriminants(sums_of(rows, folds, labels, 2, 2), [0.1])
    >>> scores = scores_of(rows, folds, head)
    >>> scores.argmax(axis=1).tolist()
    [0, 0, 1, 1, 0, 0, 1, 1]
    """
    n_folds, n_classes, width = sums.classes.shape
    heads = [
        Heads(np.empty((n_folds, width, n_classes), np.float32), np.empty((n_folds, n_classes), np.float32))
        for _ in shrinkages
    ]
    with threadpool_limits(1, "blas"):
        for fold in range(n_folds):
            products, classes, counts = (each[0] for each in sums.without(fold))
            everyone = max(counts.sum(), 1.0)
            filled = np.maximum(counts, NOBODY)
            means = np.where(counts[:, None] > 0, classes / filled[:, None], classes.sum(axis=0) / everyone)
            within = (products - (means * counts[:, None]).T @ means) / everyone
            values, vectors = np.linalg.eigh((within + within.T) / 2)
            values = np.maximum(values, 0.0)
            level = max(float(values.mean()), TINY)
            turned = means @ vectors
            shares = np.log(filled / filled.sum())
            for head, shrinkage in zip(heads, shrinkages, strict=True):
                scaled = turned / ((1.0 - shrinkage) * values + shrinkage * level)
                head.weights[fold] = vectors @ scaled.T
                head.biases[fold] = shares - 0.5 * (scaled * turned).sum(axis=1)
    return heads


def scores_of(
    features: NDArray[np.float32], folds: NDArray[np.int64], heads: Heads, *, advance: Advance = no_advance
) -> NDArray[np.float32]:
    """(n, C) scores of every row by the head of its own fold, which has not learnt from that fold."""
    n_folds, n_classes = heads.biases.shape
    out = np.empty((len(features), n_classes), dtype=np.float32)

    def score(block: slice) -> None:
        rows, here, scores = features[block], folds[block], out[block]
        for fold in range(n_folds):
            chosen = np.flatnonzero(here == fold)
            scores[chosen] = rows[chosen] @ heads.weights[fold] + heads.biases[fold]

    for_each_block(score, len(features), advance)
    return out
