"""A folder that `prune4rel embed` wrote, as a data set of vectors."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prune4rel.data.dataset import Dataset, Split, hold_out
from prune4rel.data.reader import register_dataset
from prune4rel.errors import InputError
from prune4rel.reading import read_json, read_record
from prune4rel.signals import Signals
from prune4rel.storage import PARTS

CARD = "embedding.json"
"""Says what made the embeddings, and which splits there are; written before any of them."""

TEST = "test"
"""Folder in it with the embeddings of the test split."""


@dataclass(frozen=True)
class _Card:
    splits: tuple[str, ...] | None = None


@register_dataset("embeddings", layout="DATA/   a folder that prune4rel embed wrote")
def load(root: Path, *, test_share: float = 0.0, seed: int = 0) -> Dataset:
    """Embeddings that prune4rel embed wrote; what could not be read is left out.

    Parameters
    ----------
    test_share
        Share of the examples to hold out for testing where there is no test split.
    seed
        Of that draw.
    """
    if not (root / PARTS).is_file():
        raise InputError(f"{root}: holds no finished embeddings; run prune4rel embed -o {root}")
    train, names = _read(root)
    told = read_record(_Card, read_json(root / CARD), root / CARD) if (root / CARD).is_file() else _Card()
    if told.splits is not None and TEST in told.splits and not (root / TEST / PARTS).is_file():
        raise InputError(f"{root / TEST}: holds no finished embeddings; run prune4rel embed -o {root} again")
    test, _ = _read(root / TEST) if (root / TEST / PARTS).is_file() else (None, ())
    train, test = hold_out(train, test_share, seed, test=test)
    names = names or tuple(map(str, range(int(train.labels.max()) + 1)))
    return Dataset(name="embeddings", train=train, test=test, class_names=names)


def _read(folder: Path) -> tuple[Split, tuple[str, ...]]:
    found = Signals.load(folder)
    if found.embeddings is None:
        raise InputError(f"{folder}: holds no embeddings")
    split = Split(labels=found.labels, features=np.asarray(found.embeddings), ids=found.ids)
    if found.known is not None and not found.known.all():
        split = split.subset(np.flatnonzero(found.known))
    return split, found.class_names or ()
