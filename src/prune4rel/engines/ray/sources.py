"""What a selection on a cluster starts from: long arrays in shards, and one number an example on the driver."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.engines.ray.cluster import Cluster, Task
from prune4rel.engines.ray.store import rows_of, shards_of
from prune4rel.errors import InputError
from prune4rel.shards import Shards, absolute, open_shards
from prune4rel.signal_shards import INDEX, SignalShards, check_file, open_signals
from prune4rel.signals import Signals

Array = NDArray[Any]
LONG = ("probabilities", "embeddings", "ssl_embeddings")
"""Arrays that stay where they are, or go into the cluster."""


@dataclass(frozen=True)
class Sources:
    """Signals of which the long arrays stay where they are.

    Parameters
    ----------
    small
        Labels, ids and everything else that is one number an example, checked.
    long
        Probabilities and embeddings in shards, not checked yet.
    """

    small: Signals
    long: Mapping[str, Shards]

    def __len__(self) -> int:
        return len(self.small)

    @property
    def labels(self) -> NDArray[np.int64]:
        """(n,) given labels."""
        return self.small.labels

    @property
    def ids(self) -> Array | None:
        """(n,) names of the examples, where there are any."""
        return self.small.ids

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.long["probabilities"].shape[1] if "probabilities" in self.long else self.small.n_classes

    def only(self, rows: NDArray[np.int64]) -> "Sources":
        """Return the examples with these numbers (k,), ascending; long arrays still stay where they are."""
        return Sources(self.small.only(rows), {name: rows_of(shards, rows) for name, shards in self.long.items()})

    @property
    def names(self) -> set[str]:
        """Signals that are there."""
        return {*self.small.arrays(), *self.long}


def gather(cluster: Cluster, signals: Signals | str | Path | None, arrays: Mapping[str, Any]) -> Sources:
    """Find out what is given, open what is in files, and check all that the driver can check.

    Parameters
    ----------
    signals
        A `Signals`; a folder of signal shards; or what `Signals.load` reads. None where `arrays` are given.
    arrays
        By name: arrays, `Shards`, or paths and URLs of files and folders that `open_shards` reads.
    """
    given = _from_signals(cluster, signals) if signals is not None else dict(arrays)
    if "labels" not in given:
        raise InputError("labels are missing: pass labels=, or signals=", "labels")
    names = given.pop("class_names", None)
    opened = {
        name: open_shards(value, name) if isinstance(value, str | Path) else value for name, value in given.items()
    }
    long = {name: value for name, value in opened.items() if name in LONG and isinstance(value, Shards)}
    in_memory = {
        name: value.read() if isinstance(value, Shards) else value for name, value in opened.items() if name not in long
    }
    checked = Signals(class_names=None if names is None else tuple(map(str, names)), **in_memory)
    for name in LONG:
        array = getattr(checked, name)
        if array is not None:
            long[name] = shards_of(array, name)
    small = replace(checked, probabilities=None, embeddings=None, ssl_embeddings=None)
    for name, shards in long.items():
        _check_shape(name, shards, len(small))
    if "probabilities" in long:
        _check_classes(small, long["probabilities"].shape[1])
    return Sources(small, long)


def _from_signals(cluster: Cluster, signals: Signals | str | Path) -> dict[str, Any]:
    if not isinstance(signals, Signals):
        root = absolute(signals)
        shards = _as_signal_shards(root)
        if shards is not None:
            jobs = ((url, Task(check_file, (url, digest))) for url, digest in shards.sha256.items())
            for _ in cluster.each(jobs):
                pass
            return {**shards.arrays, "class_names": shards.class_names}
        if Path(root).is_dir():
            return _from_folder(Path(root))
        signals = Signals.load(root)
    arrays: dict[str, Any] = signals.arrays()
    return arrays | {"class_names": signals.class_names}


def _as_signal_shards(root: str) -> SignalShards | None:
    local = "://" not in root
    if local and not (Path(root) / INDEX).exists():
        return None
    return open_signals(root)


def _from_folder(folder: Path) -> dict[str, Any]:
    """One `.npy` an array, as `Signals.save` writes them, none of them read yet."""
    known = {name for name, f in Signals.__dataclass_fields__.items() if f.init}
    files = {file.stem: file for file in sorted(folder.glob("*.npy"))}
    if not files:
        raise InputError(f"{folder}: neither {INDEX} nor .npy files in this folder; it holds no signals")
    if unknown := sorted(set(files) - known):
        raise InputError(f"{folder}: unknown signal {unknown[0]!r}; known are {', '.join(sorted(known))}")
    arrays: dict[str, Any] = {name: open_shards(file, name) for name, file in files.items()}
    if "class_names" in arrays:
        arrays["class_names"] = arrays["class_names"].read()
    return arrays


def _check_shape(name: str, shards: Shards, n: int) -> None:
    if len(shards.row_shape) != 1 or shards.row_shape[0] == 0 or shards.dtype.kind not in "biuf":
        raise InputError(
            f"{name}: has shape {shards.shape} and type {shards.dtype}; expected two dimensions of numbers, one row an "
            "example",
            name,
        )
    if len(shards) != n:
        raise InputError(f"{name}: has {len(shards)} rows, but labels has {n}; both need one row an example", name)


def _check_classes(small: Signals, columns: int) -> None:
    names = small.class_names
    if names is not None and len(names) != columns:
        raise InputError(
            f"labels: name {len(names)} classes, but probabilities has {columns} columns; "
            "pass class_names with one name a column, in the order of the columns",
            "labels",
        )
    bad = np.flatnonzero(small.labels >= columns)
    if bad.size:
        raise InputError(f"labels: row {bad[0]} is {small.labels[bad[0]]}; labels must be 0 to {columns - 1}", "labels")
