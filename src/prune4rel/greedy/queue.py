"""A priority queue for keys that only fall, kind to the cache.

Candidates wait in buckets of similar keys, as linked lists. When a group's turn comes to a bucket, it is
unloaded, the keys of its members are computed anew, all at once, and those that fell go to lower buckets without
any sorting. The few that stayed are settled in a binary heap, and are all there is to order.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled

BUCKETS_A_UNIT = 64.0
MOST_BUCKETS = 2**16
MOST_BUCKETS_IN_ALL = 2**23
NOBODY = -1

CANDIDATE = np.dtype(
    [("key", "f8"), ("own", "f8"), ("confidence", "f8"), ("fresh", "i8"), ("slot", "i4"), ("following", "i4")]
)
"""What belongs to one candidate, in one cache line: its key (a stale log-gain), expm1(-2 confidence), its
confidence, the number of picks when the key was computed, its place in slot order, and who follows it in its
bucket."""


class Queue(NamedTuple):
    """One queue a group; group g's heap occupies the places from ``starts[g]`` on."""

    candidates: NDArray[Any]
    heads: NDArray[np.int32]
    current: NDArray[np.int64]
    top: NDArray[np.float64]
    heap_keys: NDArray[np.float64]
    heap: NDArray[np.int32]
    starts: NDArray[np.int64]
    heap_sizes: NDArray[np.int64]


def make_queue(candidates: NDArray[Any], starts: NDArray[np.int64]) -> Queue:
    """Make an empty queue for candidates whose keys are known; `put` adds them."""
    n, groups = len(candidates), len(starts)
    buckets = max(2, min(MOST_BUCKETS, MOST_BUCKETS_IN_ALL // groups))
    finite = candidates["key"][np.isfinite(candidates["key"])]
    return Queue(
        candidates=candidates,
        heads=np.full((groups, buckets), NOBODY, dtype=np.int32),
        current=np.full(groups, -1, dtype=np.int64),
        top=np.array([finite.max() if finite.size else 0.0]),
        heap_keys=np.empty(n),
        heap=np.empty(n, dtype=np.int32),
        starts=starts,
        heap_sizes=np.zeros(groups, dtype=np.int64),
    )


@compiled
def _bucket(queue: Queue, key: float) -> int:
    last = queue.heads.shape[1] - 1
    distance = (queue.top[0] - key) * BUCKETS_A_UNIT
    return int(distance) if distance < last else last


@compiled
def put(queue: Queue, g: int, x: int) -> None:
    """Let candidate x of group g wait in the bucket of its key, which is below the group's heap."""
    bucket = _bucket(queue, queue.candidates[x]["key"])
    queue.candidates[x]["following"] = queue.heads[g, bucket]
    queue.heads[g, bucket] = x


@compiled
def unload(queue: Queue, g: int) -> int:
    """Move the next bucket of group g, which has candidates left, to the heap's place, unordered; returns how many."""
    begin = queue.starts[g]
    size = 0
    while size == 0:
        queue.current[g] += 1
        x = queue.heads[g, queue.current[g]]
        while x != NOBODY:
            queue.heap[begin + size] = x
            size += 1
            x = queue.candidates[x]["following"]
    return size


@compiled
def settle(queue: Queue, g: int, size: int) -> None:
    """Make a heap of unloaded candidates with new keys; those that fell go back to wait."""
    begin = queue.starts[g]
    kept = 0
    for at in range(begin, begin + size):
        x = queue.heap[at]
        key = queue.candidates[x]["key"]
        if _bucket(queue, key) > queue.current[g]:
            put(queue, g, x)
        else:
            queue.heap[begin + kept] = x
            queue.heap_keys[begin + kept] = key
            kept += 1
    queue.heap_sizes[g] = kept
    for at in range(kept // 2 - 1, -1, -1):
        _sift_down(queue.heap_keys, queue.heap, begin, kept, at)


@compiled
def pop(queue: Queue, g: int) -> None:
    """Remove the first of the heap."""
    begin = queue.starts[g]
    size = queue.heap_sizes[g] - 1
    queue.heap_sizes[g] = size
    queue.heap[begin] = queue.heap[begin + size]
    queue.heap_keys[begin] = queue.heap_keys[begin + size]
    _sift_down(queue.heap_keys, queue.heap, begin, size, 0)


@compiled
def lower(queue: Queue, g: int, key: float) -> None:
    """Give the first of the heap a key that is not higher than its old one."""
    begin = queue.starts[g]
    x = queue.heap[begin]
    queue.candidates[x]["key"] = key
    if _bucket(queue, key) > queue.current[g]:
        pop(queue, g)
        put(queue, g, x)
    else:
        queue.heap_keys[begin] = key
        _sift_down(queue.heap_keys, queue.heap, begin, queue.heap_sizes[g], 0)


@compiled
def _sift_down(keys: NDArray[np.float64], heap: NDArray[np.int32], begin: int, size: int, at: int) -> None:
    """Restore the order of a max-heap on (key, then lowest index) below position `at`."""
    if at >= size:
        return
    x = heap[begin + at]
    key = keys[begin + at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        y = heap[begin + child]
        other = keys[begin + child]
        if child + 1 < size:
            z = heap[begin + child + 1]
            right = keys[begin + child + 1]
            if right > other or (right == other and z < y):
                child, y, other = child + 1, z, right
        if not (other > key or (other == key and y < x)):
            break
        heap[begin + at] = y
        keys[begin + at] = other
        at = child
    heap[begin + at] = x
    keys[begin + at] = key
