"""Going round classes: examples sorted by group, and whose turn it is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled


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
