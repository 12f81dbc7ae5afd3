"""Selecting class by class: who gets how many, and one order for all picks in the end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Part:
    """Examples of one class to select `budget` from: (m,) `members` in ascending order."""

    label: int
    members: NDArray[np.int64]
    budget: int


def split(
    labels: NDArray[np.int64], size: int, *, balanced: bool, chunk: int | None = None, seed: int = 0
) -> list[Part]:
    """Cut the examples into classes, and classes of more than `chunk` at random into equal pieces.

    Class budgets are proportional to the class sizes, or as equal as they can be where `balanced`; the budgets
    of the pieces of a class are proportional to their sizes. Classes without examples have no part.

    Examples
    --------
    >>> [(part.label, part.budget) for part in split(np.array([0, 0, 0, 0, 2]), 3, balanced=False)]
    [(0, 2), (2, 1)]
    """
    rng = np.random.default_rng(seed)
    counts = np.bincount(labels)
    budgets = even(counts, size) if balanced else proportional(counts, size)
    parts = []
    for label in np.flatnonzero(counts):
        members = np.flatnonzero(labels == label)
        pieces = [members]
        if chunk is not None and len(members) > chunk:
            pieces = [np.sort(p) for p in np.array_split(rng.permutation(members), -(-len(members) // chunk))]
        shares = proportional(np.array([len(piece) for piece in pieces]), int(budgets[label]))
        parts += [Part(int(label), piece, int(share)) for piece, share in zip(pieces, shares, strict=True)]
    return parts


def proportional(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """(G,) shares of `size` in proportion to the counts; what rounding leaves goes to the largest remainders.

    >>> proportional(np.array([5, 3, 0, 2]), 5)
    array([3, 1, 0, 1])
    """
    exact = counts * size
    whole = int(counts.sum())
    shares = exact // whole
    left = size - int(shares.sum())
    shares[np.argsort(-(exact % whole), kind="stable")[:left]] += 1
    return shares


def even(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """(G,) shares of `size` by going round the groups; one that runs out drops out.

    >>> even(np.array([5, 1, 5]), 6)
    array([3, 1, 2])
    """
    levels = np.sort(counts)
    reached = np.concatenate([[0], np.cumsum(levels)[:-1]]) + levels * np.arange(len(levels), 0, -1)
    at = int(np.searchsorted(reached, size))
    full = int(levels[at - 1]) if at else 0
    before = int(reached[at - 1]) if at else 0
    rounds, left = divmod(size - before, max(1, len(levels) - at))
    shares = np.minimum(counts, full + rounds)
    shares[np.flatnonzero(counts > full + rounds)[:left]] += 1
    return shares


def merged(
    parts: Sequence[Part], picks: Sequence[NDArray[np.int64]], gains: Sequence[NDArray[np.float64]], *, balanced: bool
) -> NDArray[np.int64]:
    """Put the picks of all parts into one order; returns positions in their concatenation.

    Within a part the order stays. Between parts the higher gain comes first; where `balanced`, the classes take
    turns in ascending order.

    Examples
    --------
    >>> parts = [Part(0, np.arange(3), 2), Part(1, np.arange(3, 6), 2)]
    >>> picks, gains = [np.array([2, 0]), np.array([5, 3])], [np.array([4.0, 1.0]), np.array([3.0, 2.0])]
    >>> merged(parts, picks, gains, balanced=False), merged(parts, picks, gains, balanced=True)
    (array([0, 2, 3, 1]), array([0, 2, 1, 3]))
    """
    bounds = np.concatenate([np.minimum.accumulate(gain) for gain in gains])
    label = np.concatenate([np.full(len(some), part.label) for part, some in zip(parts, picks, strict=True)])
    order = np.lexsort((label, -bounds))
    if not balanced:
        return order
    by_class = order[np.argsort(label[order], kind="stable")]
    counts = np.bincount(label)
    turn = np.arange(len(label)) - np.repeat(np.cumsum(counts) - counts, counts)
    return by_class[np.argsort(turn, kind="stable")]
