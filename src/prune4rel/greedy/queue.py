"""A priority queue for keys that only fall, kind to the cache.

Candidates wait in buckets of similar keys, in short chunks of one cache line each. When a group's turn comes to
a bucket, it is unloaded, the keys of its members are computed anew, all at once, and those that fell go to lower
buckets without any sorting. The few that stayed are settled in a binary heap, and are all there is to order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled

BUCKETS_A_UNIT = 32.0
MOST_BUCKETS = 2**16
MOST_BUCKETS_IN_ALL = 2**23
NOBODY = -1

LINE = 16
NEXT, COUNT, FIRST = 0, 1, 2
"""A chunk is a row of 16 numbers: the next chunk of its bucket, how many members it holds, and the members."""


class Queue(NamedTuple):
    """One queue a group; group g's heap occupies the places from ``starts[g]`` on.

    `heads` holds each bucket's latest chunk, `spare` the first free chunk and the first never used. Among equal keys
    the candidate with the lowest of `names` comes first.
    """

    names: NDArray[np.int32]
    chunks: NDArray[np.int32]
    spare: NDArray[np.int64]
    heads: NDArray[np.int32]
    current: NDArray[np.int64]
    top: NDArray[np.float64]
    heap_keys: NDArray[np.float64]
    heap: NDArray[np.int32]
    starts: NDArray[np.int64]
    heap_sizes: NDArray[np.int64]


def make_queue(n: int, starts: NDArray[np.int64], top: float, names: NDArray[np.int32] | None = None) -> Queue:
    """Make an empty queue for n candidates with keys of at most `top`; `put` adds them.

    Their `names` (n,) say who comes first among equals; None for their own numbers.
    """
    groups = len(starts)
    buckets = max(2, min(MOST_BUCKETS, MOST_BUCKETS_IN_ALL // groups))
    most_chunks = n // (LINE - FIRST) + min(n, groups * buckets) + 1
    return Queue(
        names=np.arange(n, dtype=np.int32) if names is None else names,
        chunks=np.empty((most_chunks, LINE), dtype=np.int32),
        spare=np.array([NOBODY, 0]),
        heads=np.full((groups, buckets), NOBODY, dtype=np.int32),
        current=np.full(groups, -1, dtype=np.int64),
        top=np.array([top]),
        heap_keys=np.empty(n),
        heap=np.empty(n, dtype=np.int32),
        starts=starts,
        heap_sizes=np.zeros(groups, dtype=np.int64),
    )


@compiled
def _bucket(top: float, buckets: int, key: float) -> int:
    distance = (top - key) * BUCKETS_A_UNIT
    return int(distance) if distance < buckets - 1 else buckets - 1


@compiled
def put(queue: Queue, g: int, x: int, key: float) -> None:
    """Let candidate x of group g wait in the bucket of its key, which is below the group's heap."""
    _put(queue.chunks, queue.spare, queue.heads, g, _bucket(queue.top[0], queue.heads.shape[1], key), x)


@compiled
def _put(
    chunks: NDArray[np.int32], spare: NDArray[np.int64], heads: NDArray[np.int32], g: int, bucket: int, x: int
) -> None:
    chunk = heads[g, bucket]
    if chunk == NOBODY or chunks[chunk, COUNT] == LINE - FIRST:
        fresh = spare[0]
        if fresh == NOBODY:
            fresh = spare[1]
            spare[1] += 1
        else:
            spare[0] = chunks[fresh, NEXT]
        chunks[fresh, NEXT] = chunk
        chunks[fresh, COUNT] = 0
        heads[g, bucket] = fresh
        chunk = fresh
    count = chunks[chunk, COUNT]
    chunks[chunk, FIRST + count] = x
    chunks[chunk, COUNT] = count + 1


@compiled
def unload(queue: Queue, g: int) -> int:
    """Move group g's next bucket to the heap's place, unordered; returns how many. The group is not empty."""
    chunks, spare, heads, current, heap = queue.chunks, queue.spare, queue.heads, queue.current, queue.heap
    begin = queue.starts[g]
    size = 0
    while size == 0:
        current[g] += 1
        chunk = heads[g, current[g]]
        heads[g, current[g]] = NOBODY
        while chunk != NOBODY:
            for k in range(chunks[chunk, COUNT]):
                heap[begin + size] = chunks[chunk, FIRST + k]
                size += 1
            following = chunks[chunk, NEXT]
            chunks[chunk, NEXT] = spare[0]
            spare[0] = chunk
            chunk = following
    return size


@compiled
def refill(queue: Queue, g: int, size: int) -> None:
    """Make a heap of unloaded candidates, whose new keys are beside them; those that fell go back to wait."""
    chunks, spare, heads, heap, keys = queue.chunks, queue.spare, queue.heads, queue.heap, queue.heap_keys
    begin, current = queue.starts[g], queue.current[g]
    top, buckets = queue.top[0], heads.shape[1]
    kept = 0
    for at in range(begin, begin + size):
        x, key = heap[at], keys[at]
        bucket = _bucket(top, buckets, key)
        if bucket > current:
            _put(chunks, spare, heads, g, bucket, x)
        else:
            heap[begin + kept] = x
            keys[begin + kept] = key
            kept += 1
    queue.heap_sizes[g] = kept
    for at in range(kept // 2 - 1, -1, -1):
        _sift_down(queue.names, keys, heap, begin, kept, at)


@compiled
def pop(queue: Queue, g: int) -> None:
    """Remove the first of the heap."""
    begin = queue.starts[g]
    size = queue.heap_sizes[g] - 1
    queue.heap_sizes[g] = size
    queue.heap[begin] = queue.heap[begin + size]
    queue.heap_keys[begin] = queue.heap_keys[begin + size]
    _sift_down(queue.names, queue.heap_keys, queue.heap, begin, size, 0)


@compiled
def lower(queue: Queue, g: int, key: float) -> None:
    """Give the first of the heap a key that is not higher than its old one."""
    begin = queue.starts[g]
    x = queue.heap[begin]
    if _bucket(queue.top[0], queue.heads.shape[1], key) > queue.current[g]:
        pop(queue, g)
        put(queue, g, x, key)
    else:
        queue.heap_keys[begin] = key
        _sift_down(queue.names, queue.heap_keys, queue.heap, begin, queue.heap_sizes[g], 0)


@compiled
def _sift_down(
    names: NDArray[np.int32], keys: NDArray[np.float64], heap: NDArray[np.int32], begin: int, size: int, at: int
) -> None:
    """Restore the order of a max-heap on (key, then lowest name) below position `at`."""
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
            if right > other or (right == other and names[z] < names[y]):
                child, y, other = child + 1, z, right
        if not (other > key or (other == key and names[y] < names[x])):
            break
        heap[begin + at] = y
        keys[begin + at] = other
        at = child
    heap[begin + at] = x
    keys[begin + at] = key
