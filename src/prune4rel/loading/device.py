"""A split that lives on the device."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prune4rel.blocks import spans
from prune4rel.errors import InputError
from prune4rel.loading.loader import Loader
from prune4rel.loading.schedule import Indices
from prune4rel.loading.source import stream
from prune4rel.progress import Progress

NOT_HELD = -1
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
        self._place = np.full(source.n, NOT_HELD, dtype=np.int64)
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

    def _held(self, examples: Indices) -> Indices:
        missing = np.flatnonzero(self._place[examples] == NOT_HELD)
        if missing.size:
            raise InputError(
                f"subset: holds {examples[missing[0]]}, which is not on the device: "
                "the loader was made for other examples",
                "subset",
            )
        return examples
