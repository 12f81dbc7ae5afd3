"""The data set of a run: its options, reading it once, and what tells it from another."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prune4rel.steps.options import Options, option

if TYPE_CHECKING:
    from prune4rel.data import Dataset, Split

DATA = "Data"


@dataclass(frozen=True)
class DataOptions(Options):
    """Which data."""

    dataset: str = option("digits", "See `prune4rel datasets`.", panel=DATA)
    data: str | None = option(None, "The folder (or file) it lies in.", panel=DATA, metavar="PATH")
    options: dict[str, Any] = option(
        {}, "An option of the data set as NAME=VALUE, like noise=worst; repeat.", flag="--option", panel=DATA
    )
    labels: str | None = option(None, "Other labels for the training examples, one each.", panel=DATA, metavar="PATH")
    skip_broken: bool = option(False, "Go on without image files that cannot be read.", panel=DATA)


def open_dataset(options: DataOptions) -> "Dataset":
    """Read the data set of a run; once a process."""
    from prune4rel.storage import to_json

    return _open(options.dataset, options.data, options.labels, to_json(options.options))


@lru_cache(maxsize=1)
def _open(name: str, data: str | None, labels: str | None, options: str) -> "Dataset":
    from prune4rel.data import read_dataset

    return read_dataset(name, data, labels, json.loads(options))


def identify(dataset: "Dataset") -> dict[str, str]:
    """Return fingerprints of the training examples and their labels; of files, of their names."""
    from prune4rel.provenance import fingerprint

    return {"name": dataset.name, "labels": fingerprint(dataset.train.labels), **_contents(dataset.train)}


def identify_truth(dataset: "Dataset") -> dict[str, str]:
    """Return fingerprints of what results are measured by: true labels, and the test split."""
    from prune4rel.provenance import fingerprint

    found = {}
    if dataset.train.clean_labels is not None:
        found["clean_labels"] = fingerprint(dataset.train.clean_labels)
    if (test := dataset.test) is not None:
        truth = test.labels if test.clean_labels is None else test.clean_labels
        found["test_labels"] = fingerprint(truth)
        found |= {f"test_{name}": print_of_it for name, print_of_it in _contents(test).items()}
    return found


def _contents(split: "Split") -> dict[str, str]:
    import numpy as np

    from prune4rel.provenance import fingerprint

    arrays = {"images": split.images, "features": split.features}
    found = {name: fingerprint(array) for name, array in arrays.items() if array is not None}
    if split.files is not None:
        found["files"] = fingerprint(np.array([str(path) for path in split.files]))
    return found
