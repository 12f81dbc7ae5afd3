"""Rows in Ray's object store: brought there once, shared by all tasks, let go of when others need the room."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.engines.ray.cluster import Cluster, Task
from prune4rel.engines.ray.tiles import Block, Layout, cut, load_block, project_block
from prune4rel.neighbours.screen import Screen
from prune4rel.shards import Shard, ShardRows, Shards

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
        parts += _pieces(cluster, part.array) if isinstance(part, MemoryShard) else [part]
    return replace(shards, parts=tuple(parts))


def _pieces(cluster: Cluster, array: Array) -> list[Shard]:
    rows = max(1, PIECE_BYTES // max(1, array[:1].nbytes))
    return [StoredShard(b - a, cluster.put(np.ascontiguousarray(array[a:b]))) for a, b in spans(len(array), rows)]


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
    make = _read_blocks(cluster, shards, layout) if whole is None else _put_blocks(cluster, whole, layout)
    each = layout.block * (shards.shape[1] * (2 if shards.dtype == np.float16 else 4) + 8)
    room = STORE_SHARE * cluster.resources.get("object_store_memory", 0.0)
    return StoreCache(make, capacity=max(4, int(room / each)), each=each)


def _put_blocks(cluster: Cluster, whole: Block, layout: Layout) -> Callable[[int], Any]:
    return lambda number: cluster.put(cut(whole, *layout.span(number)))


def _read_blocks(cluster: Cluster, shards: Shards, layout: Layout) -> Callable[[int], Any]:
    shared = cluster.put(readable_by_tasks(cluster, shards))
    return lambda number: cluster.keep(Task(load_block, (shared, *layout.span(number))))


def operands_in_store(
    cluster: Cluster, blocks: StoreCache, layout: Layout, whole: Block | None, screen: Screen, shared: Any
) -> StoreCache:
    """Operands of blocks in the product of a screen: made here where the `whole` is at hand, else by tasks.

    Tasks get the screen by a reference to it, `shared`.
    """
    if whole is None:
        make = _project_by_tasks(cluster, blocks, shared)
    else:
        make = _project_here(cluster, whole, layout, screen)
    return StoreCache(make, capacity=blocks.capacity, each=4 * layout.block * screen.width)


def _project_here(cluster: Cluster, whole: Block, layout: Layout, screen: Screen) -> Callable[[int], Any]:
    return lambda number: cluster.put(project_block(cut(whole, *layout.span(number)), screen))


def _project_by_tasks(cluster: Cluster, blocks: StoreCache, screen: Any) -> Callable[[int], Any]:
    return lambda number: cluster.keep(Task(project_block, (blocks[number], screen)))
