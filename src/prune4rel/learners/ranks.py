"""The processes a batch is spread over. Alone, unless `training.distributed` says otherwise."""

from torch import Tensor, nn


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
