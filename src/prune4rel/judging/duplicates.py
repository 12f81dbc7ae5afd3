"""Examples that are there twice, that lie in the test split, too, or that are unlike all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.judging.similar import Similar, centre_of, nearest_among, unit_rows
from prune4rel.storage import to_table

NEAR = 0.13
"""Near duplicates lie closer than this share of the usual distance to a nearest neighbour."""

LEAST_DISTANCE = 2e-3
"""Rows of length one that are closer are near duplicates in any case."""

FENCE = 3.0
"""How many interquartile ranges above the upper quartile an outlier's distance lies: Tukey's outer fence."""

ALIKE = 10
"""Nearest others that an example is compared with to call it unlike all."""

TRAIN, TEST = "train", "test"


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Groups of examples that are copies of each other, as a table of their members, group by group.

    Parameters
    ----------
    group
        (m,) number of the group, 0 for the first.
    index
        (m,) the example, counted in its split.
    split
        (m,) ``"train"`` or ``"test"``.
    kind
        (m,) ``"exact"`` where all members of the group are equal, else ``"near"``.
    contradicting
        (m,) bool, whether the labels within the group differ.
    """

    group: NDArray[np.int64]
    index: NDArray[np.int64]
    split: NDArray[np.str_]
    kind: NDArray[np.str_]
    contradicting: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of groups."""
        return int(self.group[-1]) + 1 if len(self.group) else 0

    @property
    def in_test(self) -> NDArray[np.int64]:
        """(k,) training examples, ascending, that are in a group with one of the test split."""
        tested = np.unique(self.group[self.split == TEST])
        return np.unique(self.index[(self.split == TRAIN) & np.isin(self.group, tested)])

    def groups_of(self, n: int) -> NDArray[np.int64]:
        """(n,) a number for every training example, the same for copies of each other: to keep them in one fold."""
        groups = np.arange(n)
        mine = self.split == TRAIN
        index, group = self.index[mine], self.group[mine]
        _, first = np.unique(group, return_index=True)
        groups[index] = index[first][np.searchsorted(group[first], group)]
        return groups

    def to_table(self) -> Any:
        """Return the members as an Arrow table, one a row."""
        names = ("group", "index", "split", "kind", "contradicting")
        return to_table({name: getattr(self, name) for name in names})


def find_duplicates(
    embeddings: NDArray[np.floating[Any]],
    labels: NDArray[np.int64],
    similar: Similar,
    *,
    test_embeddings: NDArray[np.floating[Any]] | None = None,
    test_labels: NDArray[np.int64] | None = None,
) -> Duplicates:
    """Find groups of copies.

    Rows that are equal are exact duplicates. Rows are near duplicates if they are each other's neighbours and lie much
    closer than nearest neighbours usually do.

    Parameters
    ----------
    embeddings, labels
        (n, d) and (n,) of the training examples.
    similar
        Their nearest neighbours.
    test_embeddings, test_labels
        (m, d) and (m,) of the test examples; without labels nothing there contradicts.

    Examples
    --------
    >>> from prune4rel.judging.similar import find_similar
    >>> rows = np.random.default_rng(0).normal(size=(9, 4))
    >>> rows[7] = rows[2]
    >>> found = find_duplicates(rows, np.arange(9) % 3, find_similar(unit_rows(rows)))
    >>> found.index.tolist(), found.kind.tolist(), found.contradicting.tolist()
    ([2, 7], ['exact', 'exact'], [True, True])
    """
    n = len(embeddings)
    limit = near_limit(similar)
    row, place = np.nonzero(_distances(similar.similarities) <= limit)
    pairs = [np.stack([row, similar.indices[row, place]], axis=1)]
    digests = _digests(embeddings)
    all_labels = labels
    if test_embeddings is not None:
        digests = np.concatenate([digests, _digests(np.asarray(test_embeddings, dtype=embeddings.dtype))])
        centre = centre_of(embeddings)
        nearest, cosines = nearest_among(unit_rows(test_embeddings, centre), unit_rows(embeddings, centre))
        close = np.flatnonzero(_distances(cosines) <= limit)
        pairs.append(np.stack([n + close, nearest[close]], axis=1))
        unknown = np.full(len(test_embeddings), -1)
        all_labels = np.concatenate([labels, unknown if test_labels is None else test_labels])
    _, first, copy_of = np.unique(digests, return_index=True, return_inverse=True)
    pairs.append(np.stack([np.arange(len(digests)), first[copy_of]], axis=1))
    roots = components(len(digests), np.concatenate(pairs))
    return _groups(roots, copy_of, all_labels, n)


def unlike_others(similar: Similar) -> NDArray[np.int64]:
    """(k,) examples, the loneliest first, that lie far from even their nearest others, as the set goes.

    >>> rows = np.concatenate([np.random.default_rng(0).normal([5, 0, 0], 0.1, (50, 3)), [[-1, 9, 0]]])
    >>> from prune4rel.judging.similar import find_similar
    >>> int(unlike_others(find_similar(unit_rows(rows, np.zeros(3)), k=5))[0])
    50
    """
    if not similar.indices.size:
        return np.empty(0, dtype=np.int64)
    distance = _distances(similar.similarities[:, :ALIKE]).mean(axis=1)
    low, high = np.quantile(distance, [0.25, 0.75])
    far = np.flatnonzero(distance > high + FENCE * (high - low) + LEAST_DISTANCE)
    return far[np.argsort(-distance[far], kind="stable")]


def near_limit(similar: Similar) -> float:
    """Return the distance of unit rows up to which they are near duplicates."""
    if not similar.indices.size:
        return LEAST_DISTANCE
    first = _distances(similar.similarities[:, 0])
    usual = first[first > LEAST_DISTANCE]
    return max(LEAST_DISTANCE, NEAR * float(np.median(usual))) if len(usual) else LEAST_DISTANCE


def components(n: int, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the lowest member of everyone's connected component.

    >>> components(5, np.array([[3, 1], [4, 3]])).tolist()
    [0, 1, 2, 1, 1]
    """
    roots = np.arange(n)
    a, b = pairs[pairs[:, 0] != pairs[:, 1]].T
    while True:
        low = np.minimum(roots[a], roots[b])
        before = roots.copy()
        np.minimum.at(roots, a, low)
        np.minimum.at(roots, b, low)
        np.minimum.at(roots, before[a], low)
        np.minimum.at(roots, before[b], low)
        roots = roots[roots]
        if np.array_equal(before, roots):
            return roots


def _distances(cosines: NDArray[np.float32]) -> NDArray[np.float64]:
    """Distances of rows of length one."""
    distances: NDArray[np.float64] = np.sqrt(np.maximum(0.0, 2.0 - 2.0 * cosines.astype(np.float64)))
    return distances


def _digests(rows: NDArray[Any]) -> NDArray[Any]:
    plain = rows + 0  # minus zero is zero
    return np.array([blake2b(np.ascontiguousarray(row).data, digest_size=16).hexdigest() for row in plain])


def _groups(roots: NDArray[np.int64], copy_of: NDArray[np.int64], labels: NDArray[np.int64], n: int) -> Duplicates:
    sizes = np.bincount(roots, minlength=len(roots))
    members = np.flatnonzero(sizes[roots] > 1)
    members = members[np.argsort(roots[members], kind="stable")]
    starts, group = np.unique(roots[members], return_inverse=True)

    def differ(values: NDArray[np.int64], counted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        lowest = np.full(len(starts), np.iinfo(np.int64).max)
        highest = np.full(len(starts), np.iinfo(np.int64).min)
        np.minimum.at(lowest, group[counted], values[counted])
        np.maximum.at(highest, group[counted], values[counted])
        return (highest > lowest)[group]

    everyone = np.ones(len(members), dtype=np.bool_)
    return Duplicates(
        group=group,
        index=np.where(members < n, members, members - n),
        split=_words(members < n, TRAIN, TEST),
        kind=_words(differ(copy_of[members], everyone), "near", "exact"),
        contradicting=differ(labels[members], labels[members] >= 0),
    )


def _words(flags: NDArray[np.bool_], yes: str, no: str) -> NDArray[np.str_]:
    words: Sequence[str] = (no, yes)
    return np.array(words)[flags.astype(np.int64)]
