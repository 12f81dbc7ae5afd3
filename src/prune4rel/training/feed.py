"""From the passes of an epoch to batches on the device, from any step on."""

from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prune4rel.augment import View, Views
from prune4rel.learners.learner import Drawn, Examples, Pass, Stream, Streams, ViewName
from prune4rel.loading import Loader
from prune4rel.loading.ranks import Ranks
from prune4rel.loading.schedule import seed_of
from prune4rel.machine import send


class Feed:
    """Hands out the batches of a pass. Every one is decided by the seed, the epoch, the pass and its number.

    Parameters
    ----------
    loader
        Holds the inputs of (at least) the examples that are trained on.
    subset
        (m,) numbers in the split of the examples that are trained on; their positions here are a learner's rows.
    views
        What view names mean.
    batch
        Examples a batch; streams with fewer examples have them all in one.
    seed
        Of order and augmentation.
    ranks
        The processes batches are spread over.
    """

    def __init__(
        self,
        loader: Loader,
        subset: NDArray[np.int64],
        views: Mapping[ViewName, View],
        batch: int,
        seed: int,
        ranks: Ranks,
    ) -> None:
        self.loader, self.subset, self.views = loader, subset, views
        self.batch, self.seed, self.ranks = batch, seed, ranks
        self.device = loader.device
        self._ahead: tuple[tuple[int, int], Iterator[tuple[Streams, Drawn]]] | None = None
        places = torch.full((int(subset.max()) + 1,), -1, dtype=torch.int64)
        places[torch.tensor(subset)] = torch.arange(len(subset))
        self._row_of = places.to(self.device)
        self._side: Any = None
        self._here: Any = None
        if self.device.type == "cuda":
            self._side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
            self._side.wait_stream(torch.cuda.current_stream(self.device))  # for the inputs to be there

    def steps_of(self, one: Pass) -> int:
        """Return the number of steps of a pass."""
        rows = len(one.streams[0].rows)
        return rows // self._size(one.streams[0])

    def prepare(self, one: Pass, epoch: int, number: int) -> None:
        """Make the first batches of a pass ahead of time, on a GPU beside the steps that it still has to run."""
        self._come_here()
        steps = self._make_steps(one, epoch, number, 0)
        with torch.cuda.stream(self._side):
            first = next(steps)
        self._ahead = (epoch, number), chain([first], steps)

    def steps(self, one: Pass, epoch: int, number: int, begin: int = 0) -> Iterator[tuple[Streams, Drawn]]:
        """Hand out what the loss of pass `number` of an epoch gets, from step `begin` on."""
        self._come_here()
        if self._side is not None:
            self._here.wait_stream(self._side)
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == (epoch, number) and begin == 0:
            return ahead[1]
        return self._make_steps(one, epoch, number, begin)

    def _come_here(self) -> None:
        """Remember on which stream batches are used."""
        if self._side is not None:
            self._here = torch.cuda.current_stream(self.device)

    def _used_here(self, *tensors: Tensor) -> None:
        """Let memory that was taken on the side not be taken again before the steps that read it are done."""
        if self._side is not None:
            for tensor in tensors:
                tensor.record_stream(self._here)

    def _make_steps(self, one: Pass, epoch: int, number: int, begin: int) -> Iterator[tuple[Streams, Drawn]]:
        sources = [
            self._examples(stream, seed_of(self.seed, 0, epoch, number, place), begin, whole=one.mixes)
            for place, stream in enumerate(one.streams)
        ]
        sizes = tuple(self._size(stream) for stream in one.streams)
        for step in range(begin, self.steps_of(one)):
            drawn: Drawn = ()
            if one.draw is not None:
                generator = torch.Generator().manual_seed(seed_of(self.seed, 1, epoch, number, step))
                drawn = tuple(send(values, self.device) for values in one.draw(sizes, generator))
                self._used_here(*drawn)
            yield tuple(next(source) for source in sources), drawn

    def _size(self, stream: Stream) -> int:
        return min(self.batch, len(stream.rows))

    def _examples(self, stream: Stream, seed: int, begin: int, *, whole: bool) -> Iterator[Examples]:
        """Batches of one stream without end: what is left over at the end of a round is dropped."""
        size = self._size(stream)
        picked = tuple(self.views[name] for name in stream.views)
        loader = self.loader.over(
            self.subset[stream.rows],
            batch=size,
            seed=seed,
            shuffle=True,
            drop_last=True,
            chunk=None,
            transform=Views(picked),
            shard=None if whole else self.ranks.shard,
        )
        first, done = divmod(begin, len(loader))
        loader.seek(first, done)
        for _ in count():
            for batch in loader:
                rows = self._row_of.index_select(0, batch.indices)
                self._used_here(rows, batch.indices, *batch.views, batch.labels)
                yield Examples(rows, batch.views, batch.labels, size)
