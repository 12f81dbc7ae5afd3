"""Data sets: from what lies on a disk to a `Dataset`. One file a data set, registered by a decorator."""

from prune4rel.data.dataset import Dataset, Split
from prune4rel.data.reader import Reader, get, list_datasets, load_dataset, read_dataset, register_dataset
from prune4rel.data.source import Recognised, dataset_of, recognise

__all__ = [
    "Dataset",
    "Reader",
    "Recognised",
    "Split",
    "dataset_of",
    "get",
    "list_datasets",
    "load_dataset",
    "read_dataset",
    "recognise",
    "register_dataset",
]
