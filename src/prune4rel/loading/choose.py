"""The loader that fits."""

import os
from typing import Unpack

import torch

from prune4rel.loading.device import DeviceLoader
from prune4rel.loading.loader import SIZE, Loader, Options
from prune4rel.loading.schedule import check_subset
from prune4rel.loading.source import Split, source_of
from prune4rel.loading.stream import StreamLoader
from prune4rel.machine import available_memory, parse_bytes, resolve_device


def make_loader(
    split: Split,
    device: str | torch.device = "auto",
    batch: int = 128,
    seed: int = 0,
    *,
    budget: str | float | None = None,
    **options: Unpack[Options],
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
