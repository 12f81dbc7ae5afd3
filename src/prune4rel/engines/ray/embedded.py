"""Score methods that look at all embeddings more than once: class medians (moderate) and prototypes (ssp).

Every look is one pass of small tasks over the shards; the driver holds one number an example, and a sample.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.engines.ray.cluster import Cluster, Task
from prune4rel.engines.ray.layout import Layout
from prune4rel.engines.ray.sources import Sources
from prune4rel.engines.ray.store import readable_by_tasks
from prune4rel.engines.ray.tiles import load_block, pick_rows
from prune4rel.errors import InputError, nearest
from prune4rel.half import widen
from prune4rel.methods.moderate import middle_scores
from prune4rel.methods.ranking import keep_best
from prune4rel.methods.registry import Method, Outcome, Request
from prune4rel.methods.ssp import DIRECTIONS, prototype_distances, prototypes, resolve_clusters
from prune4rel.shards import Shards

DIGITS = 4
PIECE_BYTES = 64 * 2**20
SIGN = np.uint32(2**31)


@dataclass(frozen=True)
class _Passes:
    """Goes over the blocks of an array of embeddings."""

    cluster: Cluster
    shards: Shards
    shared: Any
    layout: Layout

    def numbers(self, function: Callable[..., Any], *arguments: Any, **of_rows: NDArray[Any]) -> NDArray[np.float64]:
        """(n,) what `function` makes of every block, given the rows of each array in `of_rows`."""
        values = np.empty(self.layout.n)
        for number, found in self.cluster.each(
            (number, self._job(number, function, *arguments, **of_rows)) for number in range(self.layout.count)
        ):
            values[slice(*self.layout.span(number))] = found
        return values

    def total(self, function: Callable[..., Any], *arguments: Any, **of_rows: NDArray[Any]) -> Any:
        """Sum of what `function` makes of every block."""
        jobs = ((k, self._job(k, function, *arguments, **of_rows)) for k in range(self.layout.count))
        return sum(found for _, found in self.cluster.each(jobs))

    def _job(self, number: int, function: Callable[..., Any], *arguments: Any, **of_rows: NDArray[Any]) -> Task:
        span = self.layout.span(number)
        parts = tuple(array[slice(*span)] for array in of_rows.values())
        return Task(function, (self.shared, *span, *parts, *arguments))


@dataclass(frozen=True)
class _Rows:
    """Looks like the whole array, and fetches the rows it is asked for."""

    passes: _Passes

    @property
    def shape(self) -> tuple[int, ...]:
        return self.passes.shards.shape

    def __getitem__(self, where: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
        home = where // self.passes.layout.block
        jobs = (
            (b, Task(read_rows, (self.passes.shared, *self.passes.layout.span(b), where[home == b])))
            for b in np.unique(home).tolist()
        )
        found = dict(self.passes.cluster.each(jobs))
        return np.concatenate([found[number] for number in sorted(found)])


def embedded_on_ray(
    cluster: Cluster, sources: Sources, method: Method, request: Request, options: Mapping[str, Any]
) -> Outcome:
    """Run ``moderate`` or ``ssp``."""
    name = "ssl_embeddings" if method.name == "ssp" and "ssl_embeddings" in sources.long else "embeddings"
    shards = sources.long[name]
    row = shards.nbytes // len(shards)
    layout = Layout(len(shards), max(1, min(len(shards), PIECE_BYTES // row)))
    passes = _Passes(cluster, shards, cluster.put(readable_by_tasks(cluster, shards)), layout)
    run = _ssp if method.name == "ssp" else _moderate
    return run(passes, sources, request, **(method.options | dict(options)))


def _ssp(passes: _Passes, sources: Sources, request: Request, *, clusters: int | None, direction: str) -> Outcome:
    if direction not in DIRECTIONS:
        raise InputError(f"unknown direction {direction!r}; {nearest(direction, DIRECTIONS)}")
    k = resolve_clusters(clusters, cast("Any", sources))
    lengths = np.sqrt(passes.numbers(block_squares))
    rng = np.random.default_rng(request.seed)
    centroids, seen = prototypes(cast("Any", _Rows(passes)), lengths, k, rng)
    scores = passes.numbers(block_prototype_distances, passes.cluster.put(centroids), lengths=lengths)
    keep: Literal["highest", "lowest"] = "highest" if direction == "hard" else "lowest"
    outcome = keep_best(scores, sources.labels, request, keep=keep, clusters=k, direction=direction)
    outcome.stats.update(fitted_on=seen, approximate=seen < len(sources))
    return outcome


def _moderate(passes: _Passes, sources: Sources, request: Request) -> Outcome:
    labels = sources.labels
    medians = passes.cluster.put(class_medians(passes, labels))
    distances = passes.numbers(block_median_distances, medians, labels=labels)
    ranked_with = labels if request.balanced else np.zeros_like(labels)
    return keep_best(middle_scores(distances, ranked_with), labels, request, keep="highest")


def block_squares(shards: Shards, start: int, stop: int) -> NDArray[np.float64]:
    """Squared lengths of some rows, which are checked."""
    return load_block(shards, start, stop).squares


def read_rows(shards: Shards, start: int, stop: int, where: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
    """Rows by their place in the whole, all of them from `start` to `stop`, which are checked."""
    return pick_rows(load_block(shards, start, stop), where)


def block_prototype_distances(
    shards: Shards, start: int, stop: int, lengths: NDArray[np.float64], centroids: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distances of some rows to the nearest centroid."""
    return prototype_distances(_read(shards, start, stop), lengths, centroids)


def block_median_distances(
    shards: Shards, start: int, stop: int, labels: NDArray[np.int64], medians: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distances of some rows to the median of their class."""
    distances: NDArray[np.float64] = np.linalg.norm(widen(_read(shards, start, stop)) - medians[labels], axis=1)
    return distances


def _read(shards: Shards, start: int, stop: int) -> NDArray[np.floating[Any]]:
    return load_block(shards, start, stop).rows


def class_medians(passes: _Passes, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """(C, d) exact median of each coordinate over each class; 0 where a class is empty.

    Floats are ordered as their bits are, with a twist for the sign. So the two middle numbers are found four bits at
    a time: every pass counts how many numbers go on with each of the sixteen digits.
    """
    sizes = np.bincount(labels)
    width = passes.shards.shape[1]
    ranks = np.stack([np.maximum(sizes - 1, 0) // 2, sizes // 2])
    left = np.repeat(ranks[:, :, None], width, axis=2).astype(np.int64)
    found = np.zeros((2, len(sizes), width), dtype=np.uint32)
    for shift in range(32 - DIGITS, -1, -DIGITS):
        counts = passes.total(block_digits, passes.cluster.put(found), shift, labels=labels)
        below = np.cumsum(counts, axis=3)
        digit = np.minimum((below <= left[..., None]).sum(axis=3), 2**DIGITS - 1)
        at = digit[..., None]
        left -= (np.take_along_axis(below, at, axis=3) - np.take_along_axis(counts, at, axis=3))[..., 0]
        found |= digit.astype(np.uint32) << np.uint32(shift)
    middle = _from_keys(found).astype(np.float64)
    medians: NDArray[np.float64] = np.where((sizes > 0)[:, None], (middle[0] + middle[1]) / 2, 0.0)
    return medians


def _from_keys(keys: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Floats whose order is that of the keys."""
    return np.where(keys & SIGN, keys ^ SIGN, ~keys).astype(np.uint32).view(np.float32)


def block_digits(
    shards: Shards, start: int, stop: int, labels: NDArray[np.int64], found: NDArray[np.uint32], shift: int
) -> NDArray[np.int64]:
    """(2, C, d, 16) how many coordinates begin as `found` above the digit at `shift`, by that digit."""
    rows = widen(_read(shards, start, stop))
    bits = rows.view(np.uint32)
    keys = np.where(bits & SIGN, ~bits, bits | SIGN)
    counts = np.zeros((*found.shape, 2**DIGITS), dtype=np.int64)
    _count_digits(keys, labels, found, shift, counts)
    return counts


@compiled
def _count_digits(
    keys: NDArray[np.uint32],
    labels: NDArray[np.int64],
    found: NDArray[np.uint32],
    shift: int,
    counts: NDArray[np.int64],
) -> None:
    for row in range(keys.shape[0]):
        g = labels[row]
        for k in range(keys.shape[1]):
            key = np.int64(keys[row, k])
            for which in range(2):
                if key >> (shift + DIGITS) == np.int64(found[which, g, k]) >> (shift + DIGITS):
                    counts[which, g, k, (key >> shift) & (2**DIGITS - 1)] += 1
