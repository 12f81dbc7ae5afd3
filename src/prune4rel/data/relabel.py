"""Other labels for a data set's training examples, from a file."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from prune4rel.data.classes import number_classes
from prune4rel.data.dataset import Array, Dataset, Labels
from prune4rel.data.files import describe_difference
from prune4rel.errors import InputError
from prune4rel.storage import read_arrays


def relabel(dataset: Dataset, path: str | Path) -> Dataset:
    """Give the training examples the labels in a file, one an example, in the same order.

    The file holds one array alone, or `labels` and, if the order is to be checked, `clean_labels`. Labels are
    numbers or names of the data set's classes.
    """
    arrays = read_arrays(path)
    given = next(iter(arrays.values())) if len(arrays) == 1 else arrays.get("labels")
    if given is None:
        raise InputError(f"{path}: holds {', '.join(arrays)}, but no 'labels'")
    train = dataset.train
    labels = _as_numbers(given, dataset, f"{path}: labels")
    known = train.labels if train.clean_labels is None else train.clean_labels
    if "clean_labels" in arrays:
        clean = _as_numbers(arrays["clean_labels"], dataset, f"{path}: clean_labels")
        if difference := describe_difference(clean, known):
            raise InputError(
                f"{path}: clean_labels differ from those of the data set {difference}; "
                "the file is in another order, or was made for another set"
            )
    return replace(dataset, train=replace(train, labels=labels, clean_labels=known))


def _as_numbers(values: Array, dataset: Dataset, where: str) -> Labels:
    if values.shape != (len(dataset.train),):
        raise InputError(
            f"{where}: has shape {values.shape}, but there are {len(dataset.train)} training examples; "
            "one label an example is needed"
        )
    numbers, _ = number_classes(values, where, dataset.class_names)
    return np.ascontiguousarray(numbers)
