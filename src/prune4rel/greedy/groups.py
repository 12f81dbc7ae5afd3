"""Examples by group: whose turn it is, the next candidates of each, and class budgets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled

NOBODY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Groups:
    """Examples by group: group g is ``members[starts[g]:starts[g] + sizes[g]]``, in ascending order."""

    of: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def make(cls, n: int, of: NDArray[np.int64] | None) -> "Groups":
        """Sort n examples by group; one group for all where `of` is None.

        >>> Groups.make(3, np.array([1, 0, 1])).members
        array([1, 0, 2])
        """
        if of is None:
            of = np.zeros(n, dtype=np.int64)
        sizes = np.bincount(of)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        return cls(of, np.argsort(of, kind="stable"), starts, sizes)


@compiled
def next_group(taken: NDArray[np.int64], left: NDArray[np.int64]) -> int:
    """Whose turn it is: the group with the fewest picks that has examples left, the lowest among equals.

    From an empty start this goes round the groups in order; a group that runs out drops out and the others go
    on; an unbalanced start is evened out first.
    """
    best = -1
    for g in range(taken.size):
        if left[g] > 0 and (best < 0 or taken[g] < taken[best]):
            best = g
    return best


@dataclass(frozen=True)
class Part:
    """Examples of one class to select `budget` from, those at the places `first` before all others.

    (m,) `members` are in ascending order; (k,) `first` are places among them.
    """

    label: int
    members: NDArray[np.int64]
    budget: int
    first: NDArray[np.int64] = field(default_factory=NOBODY.copy)

    @classmethod
    def make(cls, label: int, members: NDArray[np.int64], budget: int, initial: NDArray[np.int64]) -> "Part":
        """Find those of the initial picks that are members."""
        return cls(label, members, budget, np.searchsorted(members, initial[np.isin(initial, members)]))


def split(
    labels: NDArray[np.int64],
    size: int,
    *,
    balanced: bool,
    chunk: int | None = None,
    seed: int = 0,
    initial: NDArray[np.int64] = NOBODY,
) -> list[Part]:
    """Cut the examples into classes, and classes of more than `chunk` at random into equal pieces.

    Class budgets are proportional to the class sizes, or as equal as they can be where `balanced`; the budgets
    of the pieces of a class are proportional to their sizes. None is below the number of `initial` picks there, which
    count. Classes without examples have no part.

    Examples
    --------
    >>> [(part.label, part.budget) for part in split(np.array([0, 0, 0, 0, 2]), 3, balanced=False)]
    [(0, 2), (2, 1)]
    """
    rng = np.random.default_rng(seed)
    counts = np.bincount(labels)
    budgets = (even if balanced else proportional)(counts, size, np.bincount(labels[initial], minlength=len(counts)))
    parts = []
    for label in np.flatnonzero(counts):
        members = np.flatnonzero(labels == label)
        pieces = [members]
        if chunk is not None and len(members) > chunk:
            pieces = [np.sort(p) for p in np.array_split(rng.permutation(members), -(-len(members) // chunk))]
        taken = np.array([np.isin(initial, piece).sum() for piece in pieces])
        shares = proportional(np.array([len(piece) for piece in pieces]), int(budgets[label]), taken)
        parts += [Part.make(int(label), p, int(share), initial) for p, share in zip(pieces, shares, strict=True)]
    return parts


def proportional(counts: NDArray[np.int64], size: int, taken: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """(G,) shares of `size` in proportion to the counts; what rounding leaves goes to the largest remainders.

    A group of which more are `taken` already keeps those, and the others share what is left.

    >>> proportional(np.array([5, 3, 0, 2]), 5), proportional(np.array([5, 3, 0, 2]), 5, np.array([0, 3, 0, 0]))
    (array([3, 1, 0, 1]), array([1, 3, 0, 1]))
    """
    if taken is not None and (over := proportional(counts, size) < taken).any():
        rest = proportional(np.where(over, 0, counts), size - int(taken[over].sum()), np.where(over, 0, taken))
        return np.where(over, taken, rest)
    exact = counts * size
    whole = int(counts.sum())
    shares = exact // whole
    left = size - int(shares.sum())
    shares[np.argsort(-(exact % whole), kind="stable")[:left]] += 1
    return shares


def even(counts: NDArray[np.int64], size: int, taken: NDArray[np.int64] | int = 0) -> NDArray[np.int64]:
    """(G,) shares of `size` by going round the groups; one that runs out drops out, and those `taken` count.

    >>> even(np.array([5, 1, 5]), 6), even(np.array([5, 1, 5]), 6, np.array([4, 0, 0]))
    (array([3, 1, 2]), array([4, 1, 1]))
    """
    rounds, beyond = 0, int(counts.max()) + 1
    while beyond - rounds > 1:
        middle = (rounds + beyond) // 2
        if np.maximum(taken, np.minimum(counts, middle)).sum() <= size:
            rounds = middle
        else:
            beyond = middle
    shares: NDArray[np.int64] = np.maximum(taken, np.minimum(counts, rounds))
    shares[np.flatnonzero((shares == rounds) & (counts > rounds))[: size - int(shares.sum())]] += 1
    return shares


def merged(
    parts: Sequence[Part],
    picks: Sequence[NDArray[np.int64]],
    gains: Sequence[NDArray[np.float64]],
    *,
    balanced: bool,
    initial: NDArray[np.int64] = NOBODY,
) -> NDArray[np.int64]:
    """Put the picks of all parts into one order; returns positions in their concatenation.

    The `initial` picks, which lead in their parts, come first, as they were given. Within a part the order stays.
    Between parts the higher gain comes first; where `balanced`, the classes take turns in ascending order.

    Examples
    --------
    >>> parts = [Part(0, np.arange(3), 2), Part(1, np.arange(3, 6), 2)]
    >>> picks, gains = [np.array([2, 0]), np.array([5, 3])], [np.array([4.0, 1.0]), np.array([3.0, 2.0])]
    >>> merged(parts, picks, gains, balanced=False), merged(parts, picks, gains, balanced=True)
    (array([0, 2, 3, 1]), array([0, 2, 1, 3]))
    """
    bounds = []
    for part, gain in zip(parts, gains, strict=True):
        lowest = gain.copy()
        lowest[: len(part.first)] = np.inf
        bounds.append(np.minimum.accumulate(lowest))
    label = np.concatenate([np.full(len(some), part.label) for part, some in zip(parts, picks, strict=True)])
    order = np.lexsort((label, -np.concatenate(bounds)))
    if balanced:
        by_class = order[np.argsort(label[order], kind="stable")]
        counts = np.bincount(label)
        turn = np.arange(len(label)) - np.repeat(np.cumsum(counts) - counts, counts)
        order = by_class[np.argsort(turn, kind="stable")]
    given = np.concatenate(picks)
    mine = np.argsort(given)
    first = mine[np.searchsorted(given[mine], initial)]
    return np.concatenate([first, order[~np.isin(order, first)]])


def batches(size: int, at_once: int, first: int) -> list[tuple[int, int]]:
    """From which pick to which each batch goes: the `first` picks in one, then so many `at_once`.

    >>> batches(8, 3, 2)
    [(0, 2), (2, 5), (5, 8)]
    """
    begins = [*range(first, size, at_once)]
    ends = [*begins[1:], size]
    return [(0, first)] * (first > 0) + list(zip(begins, ends, strict=False))


class Pool(NamedTuple):
    """Candidates, and the best that every group has outside of the pool.

    Keys only fall. So the best of a group's candidates is the best of the whole group as long as its key beats the
    bound.

    Parameters
    ----------
    members, group_of
        (k,) the candidates, and their groups.
    bounds, outside
        Highest key of each group outside of the pool, and who has it, of the lowest index among equals; -inf and the
        largest int64 where nobody is left there.
    """

    members: NDArray[np.int64]
    group_of: NDArray[np.int64]
    bounds: NDArray[np.float64]
    outside: NDArray[np.int64]


def draw_pool(keys: NDArray[np.float64], gone: NDArray[np.bool_], groups: Groups, wanted: int) -> Pool:
    """Draw about `wanted` candidates, equally many from every group that has some left, those with the highest keys.

    Parameters
    ----------
    keys
        (n,) of everybody, higher is better.
    gone
        (n,) who is picked already.

    Examples
    --------
    >>> groups = Groups.make(4, np.array([0, 0, 0, 1]))
    >>> pool = draw_pool(np.array([1.0, 3.0, 2.0, 9.0]), np.array([False, True, False, False]), groups, 2)
    >>> pool.members.tolist(), pool.bounds.tolist(), int(pool.outside[0])
    ([2, 3], [1.0, -inf], 0)
    """
    left = []
    for start, size in zip(groups.starts, groups.sizes, strict=True):
        members = groups.members[start : start + size]
        left.append(members[~gone[members]])
    share = max(1, wanted // max(1, sum(len(members) > 0 for members in left)))
    best = [members[best_first(keys[members], share + 1)] for members in left]
    drawn = np.concatenate([members[:share] for members in best])
    bounds = np.full(len(best), -np.inf)
    outside = np.full(len(best), np.iinfo(np.int64).max)
    for g, members in enumerate(best):
        if len(members) > share:
            outside[g] = members[share]
            bounds[g] = keys[outside[g]]
    return Pool(drawn, groups.of[drawn], bounds, outside)


def best_first(keys: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Positions of the `count` highest keys, highest first, the lowest position among equals.

    >>> best_first(np.array([1, 3, 2, 3]), 3)
    array([1, 3, 2])
    """
    if len(keys) > count:
        some = np.flatnonzero(keys >= np.partition(keys, len(keys) - count)[len(keys) - count])
    else:
        some = np.arange(len(keys))
    return some[np.argsort(-keys[some], kind="stable")][:count]
