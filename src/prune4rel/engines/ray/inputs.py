"""What a selection on a cluster starts from: long arrays in shards, and the rest in this process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.engines.ray.cluster import Cluster, Task
from prune4rel.engines.ray.store import shards_of
from prune4rel.errors import InputError
from prune4rel.shards import Shards, absolute, open_shards
from prune4rel.signal_shards import INDEX, check_file, open_signals
from prune4rel.signals import Signals

LONG = ("probabilities", "embeddings", "ssl_embeddings")
"""Arrays that stay where they are, or go into the cluster."""


def gather(
    cluster: Cluster, signals: Signals | str | Path | None, arrays: Mapping[str, Any]
) -> tuple[Signals, dict[str, Shards]]:
    """Find out what is given, open what is in files, and check all that the driver can check.

    Parameters
    ----------
    signals
        A `Signals`; a folder of signal shards; or what `Signals.load` reads. None where `arrays` are given.
    arrays
        By name: arrays, `Shards`, or paths and URLs of files and folders that `open_shards` reads.

    Returns
    -------
    signals, shards
        What is in the memory of this process, and all long arrays, there or elsewhere.
    """
    given = _open_signals(cluster, signals) if signals is not None else dict(arrays)
    if "labels" not in given:
        raise InputError("labels are missing: pass labels=, or signals=", "labels")
    names = given.pop("class_names", None)
    opened = {
        name: open_shards(value, name) if isinstance(value, str | Path) else value for name, value in given.items()
    }
    shards = {name: value for name, value in opened.items() if name in LONG and isinstance(value, Shards)}
    near = {
        name: value.read() if isinstance(value, Shards) else value
        for name, value in opened.items()
        if name not in shards
    }
    here = Signals(class_names=None if names is None else tuple(map(str, names)), **near)
    for name, some in shards.items():
        _check_shape(name, some, len(here))
    shards |= {name: shards_of(array, name) for name, array in here.arrays().items() if name in LONG}
    if "probabilities" in shards:
        _check_classes(here, shards["probabilities"].shape[1])
    return here, shards


def _open_signals(cluster: Cluster, signals: Signals | str | Path) -> dict[str, Any]:
    if not isinstance(signals, Signals):
        root = absolute(signals)
        if "://" in root or (Path(root) / INDEX).exists():
            shards = open_signals(root)
            for _ in cluster.each((url, Task(check_file, (url, digest))) for url, digest in shards.sha256.items()):
                pass
            return {**shards.arrays, "class_names": shards.class_names}
        if Path(root).is_dir():
            return _open_folder(Path(root))
        signals = Signals.load(root)
    arrays: dict[str, Any] = signals.arrays()
    return arrays | {"class_names": signals.class_names}


def _open_folder(folder: Path) -> dict[str, Any]:
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


def _check_classes(here: Signals, columns: int) -> None:
    names = here.class_names
    if names is not None and len(names) != columns:
        raise InputError(
            f"labels: name {len(names)} classes, but probabilities has {columns} columns; "
            "pass class_names with one name a column, in the order of the columns",
            "labels",
        )
    bad = np.flatnonzero(here.labels >= columns)
    if bad.size:
        raise InputError(f"labels: row {bad[0]} is {here.labels[bad[0]]}; labels must be 0 to {columns - 1}", "labels")
