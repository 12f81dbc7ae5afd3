"""Which example comes when, decided by a seed and nothing else; the batch that comes; each process's part of it."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from prune4rel.augment.draws import Draws
from prune4rel.blocks import spans
from prune4rel.errors import InputError

Indices = NDArray[np.int64]

CHUNK_BYTES = 32 * 2**20
"""Inputs that are loaded and transformed together unless told otherwise: much for a launch, little for a memory."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """The order of the examples in every epoch, cut into batches, and those into chunks.

    The order of an epoch is a permutation drawn from a CPU generator seeded by (seed, epoch). A chunk is what is
    loaded and transformed together; its random numbers come from a CPU generator, too, seeded by (seed, epoch, number
    of the chunk). So any batch can be made again without the ones before it, and on any device.

    Parameters
    ----------
    examples
        (m,) numbers of the examples to go over, each once.
    batch
        Examples a batch; the last one of an epoch may be smaller.
    seed
        0 or more.
    shuffle
        Draw an order for every epoch, or keep the order of `examples`.
    drop_last
        Leave a last batch that is too small out.
    chunk
        Batches a chunk.

    Examples
    --------
    >>> schedule = Schedule(np.arange(10, 15), batch=2, seed=0)
    >>> [batch.tolist() for batch in schedule.batches(epoch=0)]
    [[11, 12], [10, 14], [13]]
    >>> [batch.tolist() for batch in schedule.batches(epoch=1)]
    [[14, 13], [10, 12], [11]]
    """

    examples: Indices
    batch: int
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False
    chunk: int = 1

    def __post_init__(self) -> None:
        for name in ("batch", "chunk"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, not {getattr(self, name)}", name)
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more, not {self.seed}", "seed")
        if self.drop_last and self.batch > len(self.examples):
            raise InputError(
                f"batch is {self.batch}, but there are only {len(self.examples)} examples, and drop_last leaves "
                "nothing of them; choose a smaller batch",
                "batch",
            )

    def __len__(self) -> int:
        return len(self.examples) // self.batch if self.drop_last else -(-len(self.examples) // self.batch)

    def order(self, epoch: int) -> Indices:
        """Return the examples (m,) in the order of an epoch."""
        if not self.shuffle:
            return self.examples
        generator = torch.Generator("cpu").manual_seed(seed_of(self.seed, epoch))
        order: Indices = torch.randperm(len(self.examples), generator=generator, device="cpu").numpy()
        return self.examples[order]

    def batches(self, epoch: int) -> list[Indices]:
        """Return the examples of every batch of an epoch."""
        order = self.order(epoch)
        return [order[start:stop] for start, stop in spans(len(order), self.batch)][: len(self)]

    def generator(self, epoch: int, chunk: int) -> torch.Generator:
        """Return the source of random numbers for one chunk, on the CPU wherever the inputs are."""
        return torch.Generator("cpu").manual_seed(seed_of(self.seed, epoch, chunk))

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What has to be the same for a position in one schedule to mean something in another."""
        return {
            "examples": len(self.examples),
            "fingerprint": zlib.crc32(self.examples.tobytes()),
            "batch": self.batch,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
            "chunk": self.chunk,
        }


def seed_of(seed: int, *path: int) -> int:
    """Return a seed for one place of a program, from the seed of the whole and the way to that place.

    >>> seed_of(0, 1, 2) == seed_of(0, 1, 2), seed_of(0, 1, 2) == seed_of(0, 2, 1)
    (True, False)
    """
    return int(np.random.SeedSequence(seed, spawn_key=path).generate_state(1, np.uint64)[0] >> np.uint64(1))


def check_subset(subset: ArrayLike | torch.Tensor, n: int) -> Indices:
    """Check that a subset names examples of a split of `n`, each at most once.

    >>> check_subset([4, 2], 5)
    array([4, 2])
    >>> check_subset([4, 5], 5)
    Traceback (most recent call last):
    prune4rel.errors.InputError: subset: holds 5, but the split has examples 0 to 4
    """
    given = np.asarray(subset.cpu() if isinstance(subset, torch.Tensor) else subset)
    if given.size == 0:
        raise InputError("subset: is empty; there is nothing to load", "subset")
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError(
            f"subset: has shape {given.shape} and type {given.dtype}; expected (m,) numbers of examples", "subset"
        )
    bad = np.flatnonzero((given < 0) | (given >= n))
    if bad.size:
        raise InputError(f"subset: holds {given[bad[0]]}, but the split has examples 0 to {n - 1}", "subset")
    if (twice := np.flatnonzero(np.bincount(given, minlength=n) > 1)).size:
        raise InputError(f"subset: holds {twice[0]} more than once; name each example once", "subset")
    return np.ascontiguousarray(given, dtype=np.int64)


def default_chunk(batch: int, bytes_of_one: int) -> int:
    """Return how many batches make a chunk; the same on every machine, because random numbers go by the chunk.

    >>> default_chunk(128, 3 * 32 * 32), default_chunk(32, 3 * 256 * 256), default_chunk(4096, 3 * 256 * 256)
    (85, 5, 1)
    """
    return max(1, CHUNK_BYTES // max(1, batch * bytes_of_one))


Views: TypeAlias = Tensor | tuple[Tensor, ...]
"""One tensor, or one for each view, whose first axis is the example."""

Transform: TypeAlias = Callable[[Tensor, torch.Generator], Views]
"""Turns the inputs of a chunk into what the batches hold; draws from the CPU generator and from nothing else."""


@runtime_checkable
class DrawnTransform(Protocol):
    """A transform that draws for a whole chunk and can apply a part of that, as all views do."""

    def __call__(self, inputs: Tensor, generator: torch.Generator, /) -> Views:
        """Draw and apply."""
        ...

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> Draws:
        """Parameters of inputs of the given shape, the example first."""
        ...

    def apply(self, inputs: Tensor, drawn: Any) -> Views:
        """Turn B inputs into what batches hold, with the parameters of the same B."""
        ...


class Batch(NamedTuple):
    """Some examples, on the device.

    Parameters
    ----------
    indices
        (B,) int64, numbers of the examples in the split, whatever subset of it is gone over.
    inputs
        What the transform made of the inputs, a tuple where it made several views. Without a transform uint8
        (B, 3, H, W) for images and float32 (B, d) for features.
    labels
        (B,) int64 given labels.

    Examples
    --------
    >>> batch = Batch(torch.tensor([7, 3]), torch.zeros(2, 5), torch.tensor([1, 0]))
    >>> [view.shape for view in batch.views]
    [torch.Size([2, 5])]
    """

    indices: Tensor
    inputs: Views
    labels: Tensor

    @property
    def views(self) -> tuple[Tensor, ...]:
        """The inputs as a tuple, also where there is but one view."""
        return self.inputs if isinstance(self.inputs, tuple) else (self.inputs,)


def views_of(result: Views, rows: int) -> Views:
    """Check that a transform kept one row an example."""
    for view in result if isinstance(result, tuple) else (result,):
        if len(view) != rows:
            raise ValueError(f"the transform made {len(view)} rows of {rows} inputs; it must keep one row an example")
    return result


def cut(views: Views, start: int, stop: int) -> Views:
    """Return some rows of every view, without a copy."""
    return tuple(view[start:stop] for view in views) if isinstance(views, tuple) else views[start:stop]


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
