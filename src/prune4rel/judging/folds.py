"""Folds for cross-fitting: every class spread evenly, duplicates kept together."""

import numpy as np
from numpy.typing import NDArray

FOLDS = 10


def assign_folds(
    labels: NDArray[np.int64], folds: int = FOLDS, *, groups: NDArray[np.int64] | None = None, seed: int = 0
) -> NDArray[np.int64]:
    """(n,) which fold each row belongs to, 0 to `folds` - 1.

    Rows are dealt out class by class, so every fold holds the same number of every class give or take one. Rows of
    one group go together, by the label of the group's first row: a copy in another fold would vouch for its twin.

    Parameters
    ----------
    labels
        (n,) class numbers.
    folds
        How many.
    groups
        (n,) any number that rows of one group share; every row by itself if left out.
    seed
        Same seed, same folds.

    Examples
    --------
    >>> folds = assign_folds(np.array([0, 0, 0, 0, 1, 1]), 2)
    >>> np.bincount(folds[:4]).tolist(), np.bincount(folds[4:]).tolist()
    ([2, 2], [1, 1])
    >>> folds = assign_folds(np.array([0, 0, 1, 1]), 2, groups=np.array([7, 3, 7, 5]))
    >>> bool(folds[0] == folds[2])
    True
    """
    rng = np.random.default_rng(seed)
    if groups is None:
        return _deal(labels, folds, rng)
    _, first, member = np.unique(groups, return_index=True, return_inverse=True)
    return _deal(labels[first], folds, rng)[member]


def _deal(labels: NDArray[np.int64], folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    order = np.lexsort((rng.random(len(labels)), labels))
    dealt = np.empty(len(labels), dtype=np.int64)
    dealt[order] = np.arange(len(labels)) % folds
    return dealt
