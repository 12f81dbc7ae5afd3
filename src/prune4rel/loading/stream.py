"""A split that is read while it is used."""

from collections.abc import Iterator
from itertools import accumulate, chain, islice, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prune4rel.loading.loader import Loader
from prune4rel.loading.schedule import Indices
from prune4rel.loading.source import Piece, stream
from prune4rel.progress import Progress


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
