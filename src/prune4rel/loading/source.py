"""Where inputs come from: an array in memory or mapped from disk, or image files of any kind as RGB of one size."""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from prune4rel.data.decode import BrokenImageError, Fit, ImageFile, Size, read_image
from prune4rel.data.pixels import require_pillow
from prune4rel.errors import InputError
from prune4rel.loading.schedule import Indices
from prune4rel.machine import threads

FILES_AT_ONCE = 64
ARRAY_BYTES_AT_ONCE = 8 * 2**20
MOST_WORKERS = 16


class SplitLike(Protocol):
    """What is asked of a split: labels, and images, files or features, one an example."""

    @property
    def labels(self) -> NDArray[np.int64]:
        """(n,) given labels."""

    @property
    def images(self) -> NDArray[np.uint8] | None:
        """(n, H, W, 3) images."""

    @property
    def files(self) -> tuple[ImageFile, ...] | None:
        """Files of n images."""

    @property
    def features(self) -> NDArray[np.float32] | None:
        """(n, d) vectors."""


class Piece(NamedTuple):
    """What came of reading some examples: their inputs (k, ...), which of all they are (B,), why the rest are not."""

    inputs: Tensor
    kept: NDArray[np.bool_]
    reasons: Sequence[str]


class InputSource(Dataset[Piece], ABC):
    """Inputs of `n` examples, each of the same `shape` and `dtype`; indexed by arrays of example numbers."""

    n: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    at_once: int
    workers: int = 0

    @property
    def bytes_of_one(self) -> int:
        """Memory one input takes."""
        return math.prod(self.shape) * self.dtype.itemsize

    @abstractmethod
    def __getitem__(self, indices: Indices) -> Piece:
        """Read the inputs of some examples."""


class ArraySource(InputSource):
    """Images (n, H, W, C), handed out channels first, or features (n, d).

    >>> source = ArraySource(np.zeros((5, 4, 4, 3), dtype=np.uint8))
    >>> source[np.array([1, 3])].inputs.shape
    torch.Size([2, 3, 4, 4])
    """

    def __init__(self, array: NDArray[np.uint8] | NDArray[np.float32]) -> None:
        self.n = len(array)
        height_width, last = array.shape[1:-1], array.shape[-1]
        self.shape = (last, *height_width)
        self.dtype = torch.uint8 if array.dtype == np.uint8 else torch.float32
        self.at_once = max(1, ARRAY_BYTES_AT_ONCE // self.bytes_of_one)
        self._array = array

    def __getitem__(self, indices: Indices) -> Piece:
        """Read the inputs of some examples."""
        rows = np.moveaxis(self._array[indices], -1, 1)
        return Piece(torch.from_numpy(np.ascontiguousarray(rows)), np.ones(len(indices), dtype=np.bool_), ())


class FileSource(InputSource):
    """Image files, decoded when asked for.

    The paths are kept as one string of bytes: worker processes share it, where a million Python objects would be
    copied into each of them bit by bit. Files inside others are kept as they are.
    """

    def __init__(self, files: Sequence[ImageFile], size: Size, fit: Fit, workers: int | None) -> None:
        require_pillow("reading image files")
        if min(size) < 1 or fit not in ("crop", "stretch"):
            raise InputError(f"size must be 1 or more and fit 'crop' or 'stretch', not {size} and {fit!r}", "size")
        self.n = len(files)
        self.shape = (3, *size)
        self.dtype = torch.uint8
        self.at_once = FILES_AT_ONCE
        self.workers = min(MOST_WORKERS, threads()) if workers is None else workers
        self._inside = None if all(isinstance(file, Path) for file in files) else tuple(files)
        names = [os.fsencode(file) for file in files if isinstance(file, Path) and self._inside is None]
        self._ends = np.cumsum([len(name) for name in names])
        self._names = b"".join(names)
        self._size, self._fit = size, fit

    def file(self, index: int) -> str | ImageFile:
        """Return the path of one example, or the file inside another one."""
        if self._inside is not None:
            return self._inside[index]
        start = self._ends[index - 1] if index else 0
        return os.fsdecode(self._names[start : self._ends[index]])

    def __getitem__(self, indices: Indices) -> Piece:
        """Decode the files of some examples, and say why of those that cannot be."""
        inputs = np.empty((len(indices), *self.shape), dtype=np.uint8)
        kept = np.ones(len(indices), dtype=np.bool_)
        reasons = []
        for row, index in enumerate(indices.tolist()):
            try:
                inputs[row] = read_image(self.file(index), self._size, self._fit).transpose(2, 0, 1)
            except BrokenImageError as error:
                kept[row] = False
                reasons.append(str(error))
        return Piece(torch.from_numpy(inputs[kept] if reasons else inputs), kept, reasons)


def source_of(split: SplitLike, *, size: int | Size, fit: Fit, workers: int | None) -> InputSource:
    """Return where a split's inputs come from."""
    if workers is not None and workers < 0:
        raise InputError(f"workers must be 0 or more, not {workers}", "workers")
    source: InputSource
    if split.images is not None:
        source = ArraySource(split.images)
    elif split.files is not None:
        source = FileSource(split.files, (size, size) if isinstance(size, int) else size, fit, workers)
    elif split.features is not None:
        source = ArraySource(split.features)
    else:
        raise InputError("the split has neither images nor files nor features; there is nothing to load")
    if source.n != len(split.labels):
        raise InputError(f"the split has {source.n} inputs, but {len(split.labels)} labels; both need one an example")
    return source


def stream(source: InputSource, batches: list[Indices], *, ahead: int = 1, pin: bool = False) -> Iterator[Piece]:
    """Read batch after batch, in order, at least `ahead` batches before they are asked for where there are workers.

    PyTorch's global generator is left alone: its numbers belong to the training.
    """
    workers = min(source.workers, len(batches))
    pieces: DataLoader[Piece] = DataLoader(
        source,
        batch_size=None,
        sampler=batches,
        num_workers=workers,
        collate_fn=_as_it_is,
        pin_memory=pin,
        prefetch_factor=max(2, -(-ahead // workers)) if workers else None,
        generator=torch.Generator(),
    )
    return iter(pieces)


def _as_it_is(piece: Any) -> Any:
    return piece
