"""The processes a batch is spread over, and each one's part: one alone, unless `training.distributed` says more."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor, nn

from prune4rel.errors import InputError
from prune4rel.loading.schedule import DrawnTransform, Indices, Transform


class Ranks:
    """One process that does everything; the many-process version has the same methods.

    A learner writes its loss as a share: the shares of all ranks sum to the loss of the whole batch. What every rank
    computes alike counts `once`; sums over the batch go through `sum`, which gradients pass.

    Examples
    --------
    >>> import torch
    >>> ranks = Ranks()
    >>> ranks.sum(torch.tensor(2.0)), ranks.once(torch.tensor(2.0)), ranks.gather(torch.arange(2))
    (tensor(2.), tensor(2.), tensor([0, 1]))
    """

    rank = 0
    world = 1

    @property
    def shard(self) -> tuple[int, int] | None:
        """Which part of every batch a loader should hand out, and of how many; None for all of it."""
        return None if self.world == 1 else (self.rank, self.world)

    def sum(self, values: Tensor) -> Tensor:
        """Sum over all ranks; gradients flow back to every rank's share."""
        return values

    def once(self, value: Tensor) -> Tensor:
        """Return the share of a term that every rank computes alike."""
        return value

    def gather(self, rows: Tensor) -> Tensor:
        """Rows of all ranks, in order, without gradients."""
        return rows.detach()

    def mine(self, rows: Tensor) -> Tensor:
        """Return this rank's rows of something that all ranks hold whole."""
        return rows

    def reduce_(self, gradients: list[Tensor]) -> None:
        """Sum gradients over all ranks, in place."""

    def barrier(self) -> None:
        """Wait for the others."""

    def check_alike(self, text: str, what: str) -> None:
        """Refuse to go on where another rank calls with another text; `what` it is about is for the message."""

    def prepare(self, learner: nn.Module) -> None:
        """Check that all ranks begin with the same numbers, and let layers that need the whole batch have it."""


def first_and_last(count: int, rank: int, world: int) -> tuple[int, int]:
    """Return where a rank's part of `count` rows begins and ends.

    >>> [first_and_last(7, rank, 2) for rank in range(2)]
    [(0, 3), (3, 7)]
    """
    return count * rank // world, count * (rank + 1) // world


Shard = tuple[int, int]
"""Which rank this is, and of how many."""


class OwnRows(NamedTuple):
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


def own_rows_of(chunk: Sequence[Indices], shard: Shard | None) -> OwnRows:
    """Return a rank's part of a chunk of batches: consecutive rows of each batch, in order, as equal as can be.

    >>> part = own_rows_of([np.array([10, 11, 12]), np.array([13])], (1, 2))
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
    return OwnRows(batches, np.concatenate(rows), whole)


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
