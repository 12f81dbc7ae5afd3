"""Which example comes when: decided by a seed, and by nothing else."""

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

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
