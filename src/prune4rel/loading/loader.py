"""Loaders: from a split, on the device or read while it is used, to batches in an order that a seed decides."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from copy import copy
from itertools import accumulate, chain, islice, pairwise
from typing import Any, Self, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from prune4rel.blocks import spans
from prune4rel.data.decode import Fit, Size
from prune4rel.errors import InputError
from prune4rel.loading.schedule import (
    Batch,
    DrawnTransform,
    Indices,
    OwnRows,
    Schedule,
    Shard,
    Transform,
    Views,
    check_shard,
    check_subset,
    cut,
    default_chunk,
    own_rows_of,
    views_of,
)
from prune4rel.loading.source import Piece, SplitLike, source_of, stream
from prune4rel.machine import available_memory, parse_bytes, resolve_device, send
from prune4rel.progress import Progress

SIZE = 256
"""Height and width of decoded image files unless told otherwise: enough to crop 224 from."""


class Course(TypedDict, total=False):
    """How the examples are gone over, besides by which batch and seed."""

    shuffle: bool
    drop_last: bool
    chunk: int | None
    transform: Transform | None
    shard: Shard | None


class LoaderOptions(Course, total=False):
    """What may differ between loaders of the same inputs."""

    batch: int
    seed: int


class AllLoaderOptions(Course, total=False):
    """All options of a loader besides device, batch and seed."""

    subset: ArrayLike | Tensor | None
    size: int | Size
    fit: Fit
    workers: int | None
    skip_broken: bool
    progress: Progress | None


class Loader(ABC):
    """Hands out the batches of a split, epoch after epoch. Use `DeviceLoader`, `StreamLoader` or `make_loader`.

    Iterating gives what is left of the current epoch, and then the next epoch is the current one. Every batch is
    decided by the options, the epoch and its number, whatever happened before.

    Parameters
    ----------
    split
        Labels, and images, files or features.
    device
        Where batches are wanted: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``.
    batch
        Examples a batch.
    seed
        Decides the order and, by chunk, the random numbers of the transform.
    subset
        Numbers of the examples to go over; all unless told. Batches always report numbers in the split.
    shuffle
        A new order every epoch; else that of `subset`.
    drop_last
        Leave a last batch that is too small out.
    chunk
        Batches that are loaded and transformed together; about 32 MiB of inputs unless told. OwnRows of what decides
        the random numbers.
    transform
        ``transform(inputs, generator)`` gets the inputs of a whole chunk, uint8 (N, 3, H, W) or float32 (N, d), on
        the device, and returns one tensor or a tuple of them (views) with N rows each. The generator is on the CPU,
        so that numbers are the same everywhere.
    shard
        ``(rank, world)`` where `world` processes train together: batches hold only this rank's rows, from B rank //
        world up to B (rank + 1) // world of the whole batch's B rows, possibly none. Only these are loaded and
        transformed, with the random numbers the whole chunk would have had: the ranks' batches side by side are the
        batch without `shard`, bit for bit. The transform needs `draw` and `apply`, as all views have.
    size, fit
        For files: height and width to scale images to, and how (see `read_image`).
    workers
        For files: processes that decode; as many as there are cores, but no more than 16, unless told.
    skip_broken
        Leave files that cannot be read out of their batch and list them in `broken`, rather than raise.
    progress
        Told how reading a whole split comes along.

    Attributes
    ----------
    device
        The device batches are on.
    shape
        Shape of one input before the transform.
    broken
        Numbers of the examples that could not be read, and why.
    """

    def __init__(
        self,
        split: SplitLike,
        *,
        device: str | torch.device = "auto",
        batch: int = 128,
        seed: int = 0,
        subset: ArrayLike | Tensor | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        chunk: int | None = None,
        transform: Transform | None = None,
        shard: Shard | None = None,
        size: int | Size = SIZE,
        fit: Fit = "crop",
        workers: int | None = None,
        skip_broken: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.device = torch.device(resolve_device(str(device)))
        self.broken: dict[int, str] = {}
        self._skip_broken = skip_broken
        self._source = source_of(split, size=size, fit=fit, workers=workers)
        self.shape = self._source.shape
        self._labels = self._send(split.labels)
        self._options: LoaderOptions = {
            "batch": batch,
            "seed": seed,
            "shuffle": shuffle,
            "drop_last": drop_last,
            "chunk": chunk,
            "transform": transform,
            "shard": shard,
        }
        self._epoch = self._done = 0
        self._plan(np.arange(self._source.n) if subset is None else check_subset(subset, self._source.n))
        self._prepare(progress or Progress())

    def _plan(self, examples: Indices) -> None:
        settings = self._options
        check_shard(settings["shard"], settings["transform"])
        batch, chunk = settings["batch"], settings["chunk"]
        self._schedule = Schedule(
            examples,
            batch=batch,
            seed=settings["seed"],
            shuffle=settings["shuffle"],
            drop_last=settings["drop_last"],
            chunk=default_chunk(batch, self._source.bytes_of_one) if chunk is None else chunk,
        )

    @abstractmethod
    def _prepare(self, progress: Progress) -> None:
        """Do what has to be done once."""

    @abstractmethod
    def _load(self, chunks: list[list[Indices]]) -> Iterator[tuple[Tensor, NDArray[np.bool_]]]:
        """For each chunk of batches give the inputs that could be read, and which of all they are."""

    def _check_loaded(self, examples: Indices) -> Indices:
        """Return the examples, or refuse those that cannot be loaded from what is held."""
        return examples

    def __len__(self) -> int:
        """Batches an epoch."""
        return len(self._schedule)

    @property
    def examples(self) -> Indices:
        """(m,) numbers of the examples that are gone over."""
        return self._schedule.examples

    @property
    def epoch(self) -> int:
        """Number of the current epoch, from 0."""
        return self._epoch

    def __iter__(self) -> Iterator[Batch]:
        schedule, shard, epoch, begin = self._schedule, self._options["shard"], self._epoch, self._done
        batches = schedule.batches(epoch)
        parts = [own_rows_of(batches[start:stop], shard) for start, stop in spans(len(batches), schedule.chunk)]
        first = begin // schedule.chunk if begin < len(batches) else len(parts)
        own = sum(len(part.rows) for part in parts)
        found = begin > 0 or own == 0
        for number, (inputs, kept) in enumerate(self._load([part.batches for part in parts[first:]]), start=first):
            part = parts[number]
            indices = self._send(np.concatenate(part.batches)[kept])
            found = found or len(indices) > 0
            labels = self._labels.index_select(0, indices)
            views = self._transform(inputs, part._replace(rows=part.rows[kept]), schedule.generator(epoch, number))
            ends = np.cumsum([len(batch) for batch in part.batches])
            stops = np.append(0, np.cumsum(kept))[ends].tolist()
            for position, (start, stop) in enumerate(pairwise([0, *stops]), start=number * schedule.chunk):
                if position < begin:
                    continue
                self._move(epoch, position, position + 1)
                if stop > start or shard is not None:
                    yield Batch(indices[start:stop], cut(views, start, stop), labels[start:stop])
        if not found:
            index, reason = next(iter(self.broken.items()))
            raise InputError(f"none of the {own} examples could be read; example {index}: {reason}")
        self._move(epoch, len(batches), 0)

    def _transform(self, inputs: Tensor, part: OwnRows, generator: torch.Generator) -> Views:
        transform = self._options["transform"]
        if isinstance(transform, DrawnTransform):
            drawn = transform.draw((part.whole, *inputs.shape[1:]), generator)
            drawn = drawn if len(part.rows) == part.whole else drawn[torch.from_numpy(part.rows)]
            return views_of(transform.apply(inputs, drawn), len(inputs))
        if transform is None or len(inputs) == 0:
            return inputs
        return views_of(transform(inputs, generator), len(inputs))

    def _move(self, epoch: int, here: int, to: int) -> None:
        if (self._epoch, self._done) != (epoch, here):
            raise RuntimeError("the loader was moved while it was iterated over; begin a new iteration after a move")
        self._done = to
        self._epoch = epoch + (to == 0)

    def seek(self, epoch: int, batch: int = 0) -> None:
        """Go to a batch of an epoch; the next iteration begins there."""
        if epoch < 0 or not 0 <= batch <= len(self):
            raise InputError(f"there is no batch {batch} in epoch {epoch}: an epoch has {len(self)} batches")
        self._epoch, self._done = epoch, batch

    def state(self) -> dict[str, Any]:
        """Return the position as a JSON value: which epoch, and how many of its batches were handed out."""
        broken = {str(index): reason for index, reason in self.broken.items()}
        return {"epoch": self._epoch, "done": self._done, "broken": broken, **self._schedule.identity}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to the position that `state` told; the batches from there on are the ones that would have come."""
        for name, value in self._schedule.identity.items():
            if state.get(name) != value:
                raise InputError(
                    f"the state is of a loader whose {name} is {state.get(name)}, but here it is {value}; "
                    "make the loader with the same options",
                    name,
                )
        self.seek(state["epoch"], state["done"])
        self.broken.update({int(index): reason for index, reason in state["broken"].items()})

    def over(self, subset: ArrayLike | Tensor | None = None, **changes: Unpack[LoaderOptions]) -> Self:
        """Return a loader of the same inputs, held only once, over other examples or with other options.

        What is not named stays as it is; `subset` None means the same examples. The new loader begins with the
        current epoch.
        """
        other = copy(self)
        other._options = {**self._options, **changes}  # noqa: SLF001 - of the same class
        other._plan(self.examples if subset is None else self._check_loaded(check_subset(subset, self._source.n)))  # noqa: SLF001
        other.seek(self._epoch)
        return other

    def _note_broken(self, indices: Indices, piece: Piece) -> None:
        for index, reason in zip(indices[~piece.kept].tolist(), piece.reasons, strict=True):
            if not self._skip_broken:
                raise InputError(
                    f"example {index}: {reason}; repair or remove it, or pass skip_broken=True (--skip-broken) "
                    "to go on without",
                    "files",
                )
            self.broken[index] = reason

    def _send(self, array: NDArray[np.int64]) -> Tensor:
        """Copy to the device without waiting for it."""
        return send(torch.tensor(array), self.device)


NOT_LOADED = -1
BROKEN = -2


class DeviceLoader(Loader):
    """Keeps the inputs on the device, images as uint8, and gathers them there a chunk at a time.

    Only the examples of `subset` are held, and image files are decoded once. See `Loader` for the options.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> images = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((4, 4, 3), dtype=np.uint8)
    >>> split = SimpleNamespace(labels=np.array([0, 1, 0, 1, 0]), images=images, files=None, features=None)
    >>> loader = DeviceLoader(split, device="cpu", batch=2, transform=lambda x, generator: (x.float(), x.flip(3)))
    >>> for batch in loader:
    ...     weak, strong = batch.inputs
    ...     print(batch.indices.tolist(), batch.labels.tolist(), weak.dtype, strong.shape)
    [1, 2] [1, 0] torch.float32 torch.Size([2, 3, 4, 4])
    [0, 4] [0, 0] torch.float32 torch.Size([2, 3, 4, 4])
    [3] [1] torch.float32 torch.Size([1, 3, 4, 4])
    """

    def _prepare(self, progress: Progress) -> None:
        source, examples = self._source, np.sort(self.examples)
        self._inputs = torch.empty((len(examples), *source.shape), dtype=source.dtype, device=self.device)
        self._place = np.full(source.n, NOT_LOADED, dtype=np.int64)
        blocks = [examples[start:stop] for start, stop in spans(len(examples), source.at_once)]
        filled = 0
        with progress.task("reading", total=len(examples)) as advance:
            for block, piece in zip(blocks, stream(source, blocks, pin=self.device.type == "cuda"), strict=True):
                self._note_broken(block, piece)
                end = filled + len(piece.inputs)
                self._inputs[filled:end].copy_(piece.inputs, non_blocking=True)
                self._place[block] = BROKEN
                self._place[block[piece.kept]] = np.arange(filled, end)
                filled = end
                advance(len(block))

    def _load(self, chunks: list[list[Indices]]) -> Iterator[tuple[Tensor, NDArray[np.bool_]]]:
        for chunk in chunks:
            places = self._place[np.concatenate(chunk)]
            kept = places != BROKEN
            yield self._inputs.index_select(0, self._send(places[kept])), kept

    def _check_loaded(self, examples: Indices) -> Indices:
        missing = np.flatnonzero(self._place[examples] == NOT_LOADED)
        if missing.size:
            raise InputError(
                f"subset: holds {examples[missing[0]]}, which is not on the device: "
                "the loader was made for other examples",
                "subset",
            )
        return examples


class StreamLoader(Loader):
    """Reads every batch when its turn comes: image files are decoded by worker processes, ahead of the training.

    Only a few chunks are in memory at any time. Batches are the same as those of a `DeviceLoader` with the same
    options. See `Loader` for these.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> features = np.arange(10, dtype=np.float32).reshape(5, 2)
    >>> split = SimpleNamespace(labels=np.array([0, 1, 0, 1, 0]), images=None, files=None, features=features)
    >>> for batch in StreamLoader(split, device="cpu", batch=2, shuffle=False):
    ...     print(batch.indices.tolist(), batch.inputs.tolist())
    [0, 1] [[0.0, 1.0], [2.0, 3.0]]
    [2, 3] [[4.0, 5.0], [6.0, 7.0]]
    [4] [[8.0, 9.0]]
    """

    def _prepare(self, progress: Progress) -> None:
        pass

    def _load(self, chunks: list[list[Indices]]) -> Iterator[tuple[Tensor, NDArray[np.bool_]]]:
        batches = list(chain.from_iterable(chunks))
        if not batches:
            return
        pieces = stream(self._source, batches, ahead=self._schedule.chunk, pin=self.device.type == "cuda")
        for chunk in chunks:
            read = list(islice(pieces, len(chunk)))
            for indices, piece in zip(chunk, read, strict=True):
                self._note_broken(indices, piece)
            yield self._together(read), np.concatenate([piece.kept for piece in read])

    def _together(self, pieces: list[Piece]) -> Tensor:
        """Copy the pieces of a chunk to the device, each to its place."""
        ends = list(accumulate((len(piece.inputs) for piece in pieces), initial=0))
        inputs = torch.empty((ends[-1], *self.shape), dtype=self._source.dtype, device=self.device)
        for (start, stop), piece in zip(pairwise(ends), pieces, strict=True):
            inputs[start:stop].copy_(piece.inputs, non_blocking=True)
        return inputs


def make_loader(
    split: SplitLike,
    device: str | torch.device = "auto",
    batch: int = 128,
    seed: int = 0,
    *,
    budget: str | float | None = None,
    **options: Unpack[AllLoaderOptions],
) -> Loader:
    """Return a `DeviceLoader` if the inputs fit into the budget, else a `StreamLoader`; the batches are the same.

    Parameters
    ----------
    split, device, batch, seed, **options
        See `Loader`.
    budget
        Memory the inputs may take on the device: ``"8GB"``, say, or a number of bytes; half of what is free unless
        told.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> features = np.zeros((1000, 16), dtype=np.float32)
    >>> split = SimpleNamespace(labels=np.zeros(1000, dtype=np.int64), images=None, files=None, features=features)
    >>> type(make_loader(split, "cpu", batch=100)).__name__
    'DeviceLoader'
    >>> type(make_loader(split, "cpu", batch=100, budget="10KB")).__name__
    'StreamLoader'
    """
    where = torch.device(resolve_device(str(device)))
    source = source_of(
        split, size=options.get("size", SIZE), fit=options.get("fit", "crop"), workers=options.get("workers")
    )
    subset = options.get("subset")
    rows = source.n if subset is None else len(check_subset(subset, source.n))
    room = _half_of_what_is_free(where) if budget is None else parse_bytes(budget)
    kind = DeviceLoader if rows * source.bytes_of_one <= room else StreamLoader
    return kind(split, device=where, batch=batch, seed=seed, **options)


def _half_of_what_is_free(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]) // 2
    beside = os.environ.get("LOCAL_WORLD_SIZE", "1")  # processes that torchrun started on this machine
    return available_memory() // 2 // (int(beside) if beside.isdigit() and int(beside) > 0 else 1)
