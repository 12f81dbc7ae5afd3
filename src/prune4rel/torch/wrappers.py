"""Data sets that know their rows and wear other labels, a sampler, and batches that are noted as they are drawn."""

from collections import deque
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import ConcatDataset, Dataset, WeightedRandomSampler

from prune4rel.errors import InputError
from prune4rel.labels import Labels
from prune4rel.torch.label_memory import as_labels


class WithRows(Dataset[Any]):
    """A data set whose examples say which they are.

    Parameters
    ----------
    dataset
        Any data set with a length. Of a tuple, the row comes last; of a dict, it is the key ``"row"``.

    Examples
    --------
    >>> WithRows([("a", 0), ("b", 1)])[1]
    ('b', 1, 1)
    >>> WithRows([{"text": "a"}])[0]
    {'text': 'a', 'row': 0}
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, row: int) -> Any:
        item = self.dataset[row]
        if isinstance(item, dict):
            return {**item, "row": row}
        return (*item, row) if isinstance(item, tuple | list) else (item, row)


class Relabelled(Dataset[Any]):
    """A data set of (input, label) with its labels corrected, and without what a person threw out.

    Parameters
    ----------
    dataset
        Whose examples end in a label; or dicts with a `key` for it.
    labels
        A `Labels` of the same examples, or (n,) labels.
    key
        Of the label, where examples are dicts.

    Examples
    --------
    >>> Relabelled([("a", 0), ("b", 0)], [0, 1])[1]
    ('b', 1)
    """

    def __init__(self, dataset: Any, labels: Labels | ArrayLike, *, key: str = "label") -> None:
        own = labels.corrected_label if isinstance(labels, Labels) else np.asarray(labels)
        if len(own) != len(dataset):
            raise InputError(f"labels: there are {len(own)}, but the data set has {len(dataset)} examples", "labels")
        removed = labels.removed if isinstance(labels, Labels) else None
        self.dataset, self.labels, self.key = dataset, own, key
        self.rows = np.arange(len(own)) if removed is None else np.flatnonzero(~removed)

    @property
    def targets(self) -> NDArray[np.int64]:
        """(n,) labels, as they are worn."""
        return np.asarray(self.labels[self.rows], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        row = int(self.rows[index])
        item, label = self.dataset[row], int(self.labels[row])
        return {**item, self.key: label} if isinstance(item, dict) else (*item[:-1], label)


class LabelScoreSampler(WeightedRandomSampler):
    """Draws examples the more often the better their label fits; those a person threw out never.

    Parameters
    ----------
    labels
        Of the data set that is sampled.
    size
        Draws an epoch; as many as there are examples unless told.
    seed
        Of the draws.

    Examples
    --------
    >>> labels = Labels(
    ...     given_label=[0, 1], predicted_label=[0, 0], label_score=[1.0, 0.0], is_label_issue=[False, True],
    ...     confidence=[1.0, 1.0], class_names=("cat", "dog"))
    >>> list(LabelScoreSampler(labels, size=3))
    [0, 0, 0]
    """

    def __init__(self, labels: Labels, *, size: int | None = None, seed: int = 0) -> None:
        weights = labels.label_score if labels.removed is None else np.where(labels.removed, 0, labels.label_score)
        generator = torch.Generator().manual_seed(seed)
        super().__init__(cast("Any", torch.from_numpy(weights.copy())), size or len(labels), generator=generator)


class RowOrder:
    """The batches of a loader, with a note of which rows each holds: for callbacks that are not told.

    Parameters
    ----------
    batches
        What the loader draws batches from.

    Examples
    --------
    >>> loader = torch.utils.data.DataLoader(range(5), batch_size=2)
    >>> order = RowOrder.of(loader)
    >>> [(batch.tolist(), order.next_rows()) for batch in loader]
    [([0, 1], [0, 1]), ([2, 3], [2, 3]), ([4], [4])]
    """

    def __init__(self, batches: Any) -> None:
        self._own = {"batches": batches, "noted": deque(), "skip": 0}

    @classmethod
    def of(cls, loader: Any) -> "RowOrder":
        """Let a loader draw its batches through a `RowOrder` from now on."""
        loader = getattr(loader, "base_dataloader", loader)  # accelerate's lies around one
        batches = getattr(loader, "batch_sampler", None)
        if batches is None:
            raise InputError("the loader draws no batches by row: a stream has no rows whose labels could be judged")
        if isinstance(batches, RowOrder):
            return batches
        order = cls(batches)
        object.__setattr__(loader, "batch_sampler", order)  # a DataLoader guards its sampler
        if getattr(loader, "persistent_workers", False):
            loader._iterator = None  # noqa: SLF001 - it would go on with the old one
        return order

    def skip_batches(self, count: int) -> None:
        """Let the first batches of the next round go unnoted: a training that goes on passes over them."""
        self._own["skip"] = count

    def next_rows(self) -> list[int]:
        """Return the rows of the batch that came next."""
        noted = self._own["noted"]
        return cast("list[int]", noted.popleft()) if noted else []

    def __iter__(self) -> Iterator[list[int]]:
        noted = self._own["noted"]
        noted.clear()
        skip, self._own["skip"] = self._own["skip"], 0
        for number, batch in enumerate(self._own["batches"]):
            rows = list(batch)
            if number >= skip:
                noted.append(rows)
            yield rows

    def __len__(self) -> int:
        return len(self._own["batches"])

    def __getattr__(self, name: str) -> Any:
        if name == "_own":
            raise AttributeError(name)
        return getattr(self._own["batches"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_own":
            object.__setattr__(self, name, value)
        else:
            setattr(self._own["batches"], name, value)


def given_labels(dataset: Any) -> tuple[NDArray[np.int64], tuple[str, ...] | None]:
    """Return the labels (n,) of a data set of any of the usual kinds, and its class names where it knows them.

    >>> from torch.utils.data import TensorDataset
    >>> given_labels(TensorDataset(torch.zeros(2, 3), torch.tensor([1, 0])))
    (array([1, 0]), None)
    """
    names = getattr(dataset, "classes", None)
    if (columns := getattr(dataset, "column_names", None)) is not None:  # Hugging Face
        name = next((each for each in ("labels", "label", "label_ids") if each in columns), None)
        if name is None:
            raise InputError(f"the data set has no column 'label' or 'labels' but {', '.join(columns)}; pass labels=")
        kind = dataset.features[name]
        return as_labels(np.asarray(dataset.with_format(None)[name][:])), _names(getattr(kind, "names", None))
    if hasattr(dataset, "indices") and hasattr(dataset, "dataset"):  # Subset
        whole, names = given_labels(dataset.dataset)
        return whole[np.asarray(dataset.indices)], _names(names)
    if isinstance(dataset, WithRows):
        return given_labels(dataset.dataset)
    if isinstance(dataset, ConcatDataset):
        parts = [given_labels(part) for part in dataset.datasets]
        return np.concatenate([given for given, _ in parts]), parts[0][1]
    for name in ("targets", "labels"):
        if hasattr(dataset, name):
            return as_labels(getattr(dataset, name)), _names(names)
    if hasattr(dataset, "tensors"):
        return as_labels(dataset.tensors[-1]), _names(names)
    raise InputError(
        f"which labels {type(dataset).__name__} holds is not known: it has no targets, labels or tensors; pass labels=",
        "labels",
    )


def _names(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(map(str, value))
