"""The best candidates of every group, drawn before any of them is looked at closely."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.greedy.groups import Groups


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
