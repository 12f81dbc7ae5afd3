"""One rank's part of every batch, where several train together."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from prune4rel.errors import InputError
from prune4rel.loading.batch import DrawnTransform, Transform
from prune4rel.loading.schedule import Indices

Shard = tuple[int, int]
"""Which rank this is, and of how many."""


class Part(NamedTuple):
    """What is loaded of a chunk.

    Parameters
    ----------
    batches
        Examples of every batch, as far as they are this rank's.
    rows
        (k,) int64, which rows of the whole chunk they are.
    whole
        Rows of the whole chunk.
    """

    batches: list[Indices]
    rows: Indices
    whole: int


def part_of(chunk: Sequence[Indices], shard: Shard | None) -> Part:
    """Return a rank's part of a chunk of batches: consecutive rows of each batch, in order, as equal as can be.

    >>> part = part_of([np.array([10, 11, 12]), np.array([13])], (1, 2))
    >>> [batch.tolist() for batch in part.batches], part.rows.tolist(), part.whole
    ([[11, 12], [13]], [1, 2, 3], 4)
    """
    rank, world = shard or (0, 1)
    batches, rows, whole = [], [], 0
    for batch in chunk:
        start, stop = len(batch) * rank // world, len(batch) * (rank + 1) // world
        batches.append(batch[start:stop])
        rows.append(np.arange(whole + start, whole + stop))
        whole += len(batch)
    return Part(batches, np.concatenate(rows), whole)


def check_shard(shard: Shard | None, transform: Transform | None) -> None:
    """Refuse a rank that cannot be, and a transform that cannot tell the draws of some rows from those of all."""
    if shard is None:
        return
    if len(shard) != 2 or not 0 <= shard[0] < shard[1]:
        raise InputError(f"shard must be (rank, number of ranks) with a rank from 0, not {shard}", "shard")
    if transform is not None and not isinstance(transform, DrawnTransform):
        raise InputError(
            f"shard needs a transform with draw and apply, such as the views in prune4rel.augment, not {transform!r}: "
            "the ranks draw for the whole chunk and apply their own rows' part",
            "transform",
        )
