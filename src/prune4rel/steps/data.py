"""The data set of a run: its options, reading it once, and what tells it from another."""

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from prune4rel.steps.options import Options, option

if TYPE_CHECKING:
    from prune4rel.data import Dataset, Split
    from prune4rel.data.decode import InnerFile
    from prune4rel.decisions import Settled
    from prune4rel.progress import Progress

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
    decisions: str | None = option(
        None, "What people settled: decisions.jsonl of `prune4rel review`, or a CSV.", panel=DATA, metavar="PATH"
    )
    skip_broken: bool = option(False, "Go on without image files that cannot be read.", panel=DATA)

    def in_use(self, dataset: "Dataset") -> "Dataset":
        """Return the data set as steps work with it; an encoder puts vectors in the place of images and texts."""
        return dataset

    def seen(self, dataset: "Dataset") -> "Dataset":
        """Return the same examples as people look at them."""
        return dataset


def open_dataset(options: DataOptions) -> "Dataset":
    """Read the data set of a run, what people decided put in; once a process."""
    dataset = open_as_given(options)
    settled = read_settled(options)
    if settled is None:
        return dataset
    labels = dataset.train.labels.copy()
    labels[settled.verified] = settled.decided_label[settled.verified]
    return replace(
        dataset, train=replace(dataset.train, labels=labels, verified=settled.verified, removed=settled.removed)
    )


def open_as_given(options: DataOptions) -> "Dataset":
    """Read the data set of a run with labels as they were given, as steps work with it."""
    return options.in_use(open_examples(options))


def open_examples(options: DataOptions) -> "Dataset":
    """Read the data set of a run as it lies there, images and texts included; once a process."""
    from prune4rel.storage import to_json

    return _open(
        options.dataset, options.data, options.labels, to_json(options.options), skip_broken=options.skip_broken
    )


def read_settled(options: DataOptions) -> "Settled | None":
    """Return what people decided of the training examples, where there is a file of it."""
    from prune4rel.cleaning.by_training import settled_of

    return None if options.decisions is None else settled_of(open_as_given(options), options.decisions)


@lru_cache(maxsize=1)
def _open(name: str, data: str | None, labels: str | None, options: str, *, skip_broken: bool) -> "Dataset":
    from prune4rel.data import read_dataset

    return replace(read_dataset(name, data, labels, json.loads(options)), skip_broken=skip_broken)


def identify(dataset: "Dataset", home: Path | None = None) -> dict[str, str]:
    """Return fingerprints of the training examples and their labels, by contents; files of a run are looked at once."""
    from prune4rel.provenance import fingerprint

    found = {"name": dataset.name, "labels": fingerprint(dataset.train.labels)}
    for name in ("verified", "removed"):
        if (flags := getattr(dataset.train, name)) is not None:
            found[name] = fingerprint(flags)
    return found | _contents(dataset.train, home, "train")


def identify_truth(dataset: "Dataset", home: Path | None = None) -> dict[str, str]:
    """Return fingerprints of what results are measured by: true labels, and the test split."""
    from prune4rel.provenance import fingerprint

    found = {}
    if dataset.train.clean_labels is not None:
        found["clean_labels"] = fingerprint(dataset.train.clean_labels)
    if (test := dataset.test) is not None:
        truth = test.labels if test.clean_labels is None else test.clean_labels
        found["test_labels"] = fingerprint(truth)
        found |= {f"test_{name}": print_of_it for name, print_of_it in _contents(test, home, "test").items()}
    return found


def look_at_files(dataset: "Dataset", home: Path, progress: "Progress") -> None:
    """Take the fingerprints of all files of a data set, and keep them in a run's folder until a file is touched."""
    for title, split in dataset.splits().items():
        if split.files is not None:
            _files_of(split, home, title, progress, keep=True)


def _contents(split: "Split", home: Path | None, title: str) -> dict[str, str]:
    from prune4rel.progress import Progress
    from prune4rel.provenance import fingerprint

    arrays = {"images": split.images, "features": split.features}
    found = {name: fingerprint(array) for name, array in arrays.items() if array is not None}
    if split.texts is not None:
        from hashlib import sha256

        found["texts"] = sha256("\0".join(split.texts).encode("utf-8", "surrogatepass")).hexdigest()
    if split.files is not None:
        found["files"] = _files_of(split, home, title, Progress())
        if split.ids is not None:
            found["ids"] = fingerprint(split.ids)
    return found


def _files_of(split: "Split", home: Path | None, title: str, progress: "Progress", *, keep: bool = False) -> str:
    """Return one fingerprint of the contents of all files of a split; where they lie does not matter."""
    from hashlib import sha256

    from prune4rel.file_prints import prints_of

    whole = sha256()
    places: dict[Path, None] = {}
    for file in split.files or ():
        if isinstance(file, Path):
            places[file] = None
            whole.update(b"a file of its own\n")
        else:
            inner = cast("InnerFile", file)
            places |= dict.fromkeys(inner.homes)
            whole.update(f"{inner.part}\n".encode("utf-8", "surrogateescape"))
    kept = None if home is None else home / f".{title}_files.npz"
    whole.update(prints_of(list(places), kept, progress, keep=keep).tobytes())
    return whole.hexdigest()
