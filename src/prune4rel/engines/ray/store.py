"""What a cluster reads and keeps: signals wherever they lie, blocks of rows, and tiles of edges."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.engines.ray.cluster import Cluster, Task
from prune4rel.engines.ray.tiles import Block, Layout, cut, load_block, project_block
from prune4rel.errors import InputError
from prune4rel.neighbours.screen import Screen
from prune4rel.shards import Shard, ShardRows, Shards, absolute, open_shards
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


Array = NDArray[Any]

STORE_SHARE = 0.4
"""Share of the cluster's object store that blocks may take before the oldest is let go of."""

PIECE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class MemoryShard:
    """Rows of an array in the memory of this process, where no task can read them."""

    array: Array

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.array)

    def read(self, start: int, stop: int) -> Array:
        """Rows `start` to `stop`."""
        return self.array[start:stop]


@dataclass(frozen=True)
class StoredShard:
    """Rows in the object store."""

    rows: int
    reference: Any

    def read(self, start: int, stop: int) -> Array:
        """Rows `start` to `stop`."""
        import ray  # noqa: PLC0415 - whoever holds a reference has Ray

        whole: Array = ray.get(self.reference)
        return whole[start:stop]


def shards_of(array: Array, name: str) -> Shards:
    """View an array of this process as shards."""
    return Shards(name, (MemoryShard(array),), array.shape[1:], array.dtype)


def rows_of(shards: Shards, rows: NDArray[np.int64]) -> Shards:
    """Return some rows of shards, by their numbers (k,), ascending; what lies in files stays there."""
    parts: list[Shard] = []
    begin = 0
    for part in shards.parts:
        own = rows[(rows >= begin) & (rows < begin + part.rows)] - begin
        begin += part.rows
        if len(own) == part.rows:
            parts.append(part)
        elif len(own):
            parts.append(MemoryShard(part.array[own]) if isinstance(part, MemoryShard) else ShardRows(part, own))
    return replace(shards, parts=tuple(parts))


def in_memory(shards: Shards) -> bool:
    """Whether all rows are in the memory of this process."""
    return all(isinstance(part, MemoryShard) for part in shards.parts)


def readable_by_tasks(cluster: Cluster, shards: Shards) -> Shards:
    """Return the same rows for tasks to read: those in this process are put into the object store, in pieces."""
    parts: list[Shard] = []
    for part in shards.parts:
        if not isinstance(part, MemoryShard):
            parts.append(part)
            continue
        rows = max(1, PIECE_BYTES // max(1, part.array[:1].nbytes))
        for a, b in spans(len(part.array), rows):
            parts.append(StoredShard(b - a, cluster.put(np.ascontiguousarray(part.array[a:b]))))
    return replace(shards, parts=tuple(parts))


class StoreCache:
    """References by number, made when first asked for; the one unused for longest makes room.

    Parameters
    ----------
    make
        Makes the value of a number and returns a reference to it.
    capacity
        How many are held at once.
    each
        Bytes of one of them.
    """

    def __init__(self, make: Callable[[int], Any], *, capacity: int, each: int) -> None:
        self.capacity = capacity
        self.made = 0
        self._make = make
        self._each = each
        self._references: OrderedDict[int, Any] = OrderedDict()
        self._lock = Lock()

    @property
    def bytes_made(self) -> int:
        """Bytes that went into the object store so far."""
        return self.made * self._each

    def __getitem__(self, number: int) -> Any:
        with self._lock:
            if number not in self._references:
                self._references[number] = self._make(number)
                self.made += 1
            self._references.move_to_end(number)
            while len(self._references) > self.capacity:
                self._references.popitem(last=False)
            return self._references[number]

    @contextmanager
    def filling(self, count: int) -> Iterator[None]:
        """Make those of the first `count` that never were, as far as there is room, while the block does its own."""

        def fill() -> None:
            for number in range(self.made, min(count, self.capacity)):
                self[number]

        with ThreadPoolExecutor(1) as pool:
            pool.submit(fill)  # what goes wrong with one of them goes wrong again when it is asked for
            yield

    def clear(self) -> None:
        """Let go of all."""
        self._references.clear()


def blocks_in_store(cluster: Cluster, shards: Shards, layout: Layout, whole: Block | None) -> StoreCache:
    """Blocks of embeddings: cut from the `whole` where it is at hand, else read by tasks."""
    shared = cluster.put(readable_by_tasks(cluster, shards)) if whole is None else None

    def make(number: int) -> Any:
        if whole is None:
            return cluster.keep(Task(load_block, (shared, *layout.span(number))))
        return cluster.put(cut(whole, *layout.span(number)))

    each = layout.block * (shards.shape[1] * (2 if shards.dtype == np.float16 else 4) + 8)
    room = STORE_SHARE * cluster.resources.get("object_store_memory", 0.0)
    return StoreCache(make, capacity=max(4, int(room / each)), each=each)


def operands_in_store(
    cluster: Cluster, blocks: StoreCache, layout: Layout, whole: Block | None, screen: Screen, shared: Any
) -> StoreCache:
    """Operands of blocks in the product of a screen: made here where the `whole` is at hand, else by tasks.

    Tasks get the screen by a reference to it, `shared`.
    """

    def make(number: int) -> Any:
        if whole is None:
            return cluster.keep(Task(project_block, (blocks[number], shared)))
        return cluster.put(project_block(cut(whole, *layout.span(number)), screen))

    return StoreCache(make, capacity=blocks.capacity, each=4 * layout.block * screen.width)
