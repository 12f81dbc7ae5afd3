"""From images and texts to what `clean` judges by: vectors of an encoder, with labels and names beside them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prune4rel.data import Dataset
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from prune4rel.encoders import Encoder
    from prune4rel.progress import Progress

Broken = dict[str, dict[int, str]]
"""By split: rows of the examples that could not be read, and why."""


def described(dataset: Dataset, progress: "Progress | None" = None) -> dict[str, Any]:
    """Return labels, names and digests of the training examples, as `clean` takes them."""
    from prune4rel.encoders.cache import digests_of  # noqa: PLC0415 - not needed for vectors

    return _named(dataset) | {"content": digests_of(dataset.train, progress)}


def _named(dataset: Dataset) -> dict[str, Any]:
    return {"labels": dataset.train.labels, "ids": dataset.train.ids, "class_names": dataset.class_names}


def encoded(
    dataset: Dataset, encoder: "Encoder", *, skip_broken: bool, cache: bool = True, progress: "Progress | None" = None
) -> tuple[dict[str, Any], Broken]:
    """Return vectors of images or texts with labels and names, as `clean` takes them, and what could not be read.

    What could not be read has NaN for a vector, so that it is judged by nothing.
    """
    from prune4rel.encoders import embed  # noqa: PLC0415 - not needed for vectors
    from prune4rel.encoders.embedding import ready  # noqa: PLC0415 - likewise

    fitted = ready(encoder, dataset.train)
    broken: Broken = {}
    contents: list[str] = []
    vectors: dict[str, Any] = {}
    for title, split in dataset.splits().items():
        broken[title] = {}
        vectors[title] = embed(
            split,
            fitted,
            skip_broken=skip_broken,
            cache=cache,
            broken=broken[title],
            contents=contents if title == "train" else None,
            progress=progress,
        )
    vectors["train"][list(broken["train"])] = np.nan
    found = _named(dataset) | {"embeddings": vectors["train"], "content": contents}
    if dataset.test is not None:
        whole = [row for row in range(len(dataset.test)) if row not in broken["test"]]
        found |= {"test_embeddings": vectors["test"][whole], "test_labels": dataset.test.labels[whole]}
    return found, broken


def encode(
    data: Any,
    encoder: "str | Encoder",
    given: dict[str, Any],
    *,
    device: str,
    skip_broken: bool,
    progress: "Progress | None",
) -> dict[str, Any]:
    """Open any source of images or texts and embed it; `given` are the other inputs of `clean`, which win."""
    from prune4rel.data.source import dataset_of  # noqa: PLC0415 - not needed for vectors
    from prune4rel.encoders import open_encoder  # noqa: PLC0415 - likewise

    if data is None:
        raise InputError("encoder: makes vectors of data; pass a path, a table or a Dataset, too", "encoder")
    if given["embeddings"] is not None:
        raise InputError("encoder: makes embeddings; leave one of the two out", "encoder")
    column = given["labels"] if isinstance(given["labels"], str) and not isinstance(data, Dataset) else None
    dataset, _ = dataset_of(str(data) if isinstance(data, Path) else data, label=column)
    opened = open_encoder(encoder, device=device) if isinstance(encoder, str) else encoder
    found, _ = encoded(dataset, opened, skip_broken=skip_broken, progress=progress)
    named = {"labels": None} if column is not None else {}
    return {
        **given,
        **found,
        **{name: value for name, value in (given | named).items() if value is not None},
    }
