"""A Ray cluster serves a method: long arrays stay in shards, and tasks bring home what was asked for."""

import math
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.blocks import over_rows
from prune4rel.engines.engine import Column
from prune4rel.engines.local import LocalEngine, share_of
from prune4rel.engines.ray.ann import AnnBackend, choose_cells, import_faiss, training_rows
from prune4rel.engines.ray.backend import RayBackend, survey
from prune4rel.engines.ray.cluster import Cluster, Task, connect
from prune4rel.engines.ray.store import gather, in_memory, readable_by_tasks, rows_of, shards_of
from prune4rel.engines.ray.tiles import Layout, checked, choose_block
from prune4rel.errors import InputError
from prune4rel.half import widen
from prune4rel.neighbours.build import Neighbourhood, neighbourhood_of
from prune4rel.neighbours.cells import found_note
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.nearest import Nearest
from prune4rel.neighbours.screen import Screening
from prune4rel.neighbours.similarity import Similarity
from prune4rel.progress import Progress
from prune4rel.provenance import fingerprint, fingerprint_of_parts
from prune4rel.shards import Shards
from prune4rel.signals import Floats, Signals

PIECE_BYTES = 64 * 2**20
"""Bytes of a block of rows, of all arrays together, in a pass over them."""

DIGITS = 4
SIGN = np.uint32(2**31)


@dataclass
class _Work:
    """What was done so far: fingerprints by signal, and the last backend for neighbours."""

    digests: dict[str, str] = field(default_factory=dict)
    backend: RayBackend | None = None


@dataclass(frozen=True)
class RayEngine:
    """Serves what `Engine` promises on a connected cluster; `serve` makes one.

    Parameters
    ----------
    signals
        Labels, ids and everything else that is one number an example.
    here
        All that is in the memory of this process, long arrays included.
    shards
        Long arrays, wherever they are; those in files are not checked yet.
    cluster
        Who does the work.
    work_dir
        Folder in which finished tiles are kept.
    share
        Share of the neighbours that is looked for, in the likeliest cells only; None looks for all, everywhere.
    seed
        Draws the rows by which cells are found.
    block
        Rows of a block of embeddings; None chooses. Exact picks do not depend on it.
    """

    signals: Signals
    here: LocalEngine
    shards: Mapping[str, Shards]
    cluster: Cluster
    work_dir: str | Path | None = None
    share: float | None = None
    seed: int = 0
    block: int | None = None
    work: _Work = field(default_factory=_Work, repr=False)

    @property
    def present(self) -> Collection[str]:
        """Names of the signals that are there."""
        return {*self.signals.arrays(), *self.shards}

    @property
    def approximate(self) -> bool:
        """Whether neighbours are looked for in the likeliest cells only."""
        return self.share is not None

    def only(self, rows: NDArray[np.int64]) -> Self:
        """Return the engine of the examples with these numbers (k,), ascending; long arrays stay where they are."""
        here = self.here.only(rows)
        shards = {
            name: shards_of(here.signals.need(name), name) if in_memory(some) else rows_of(some, rows)
            for name, some in self.shards.items()
        }
        return replace(self, signals=_without_long(here.signals, shards), here=here, shards=shards, work=_Work())

    def device(self, wanted: str) -> str:
        """Turn ``"auto"``, ``"cpu"`` or ``"cuda"`` into what the nodes have."""
        embeddings = self.shards.get("embeddings")
        work = 0.0 if embeddings is None else float(len(embeddings)) ** 2 * embeddings.shape[1]
        return self.cluster.device(wanted, work)

    def each_block(self, function: Callable[..., Any], names: Collection[str], *shared: Any) -> list[Any]:
        """Return what ``function(signals, *shared)`` makes of every block of examples, with these signals, in order."""
        if not self._elsewhere(names):
            return self.here.each_block(function, names, *shared)
        with _by_value(self.cluster.ray, function, *shared):
            return [value for _, value in sorted(self._pass(function, names, {}, shared), key=lambda found: found[0])]

    def per_example(
        self, function: Callable[..., NDArray[np.float64]], columns: Iterable[Column], *shared: Any
    ) -> NDArray[np.float64]:
        """(n,) what ``function(*rows of the columns, *shared)`` makes of every block of rows."""
        columns = tuple(columns)
        names = [column for column in columns if isinstance(column, str)]
        if not self._elsewhere(names):
            return self.here.per_example(function, columns, *shared)
        sliced = {str(k): column for k, column in enumerate(columns) if not isinstance(column, str)}
        order = tuple(column if isinstance(column, str) else str(k) for k, column in enumerate(columns))
        layout = self._layout(names)
        values = np.empty(layout.n)
        for number, found in self._pass(_over_block, names, sliced, (function, order, *shared)):
            values[slice(*layout.span(number))] = found
        return values

    def squared_norms(self, name: str) -> NDArray[np.float64]:
        """(n,) squared lengths of the rows of a signal."""
        if not self._elsewhere([name]):
            return self.here.squared_norms(name)
        return np.concatenate(self.each_block(_squared_norms, [name], name))

    def rows(self, name: str, where: NDArray[np.int64]) -> Floats:
        """(k, d) some rows of a signal, by their numbers in ascending order; only blocks that hold some are read."""
        if not self._elsewhere([name]):
            return self.here.rows(name, where)
        layout, shards = self._layout([name]), self.cluster.put(readable_by_tasks(self.cluster, self.shards[name]))
        home = where // layout.block
        tasks = (
            (number, Task(read_rows, (shards, *layout.span(number), where[home == number])))
            for number in np.unique(home).tolist()
        )
        found = dict(self.cluster.each(tasks))
        return np.concatenate([found[number] for number in sorted(found)])

    def width(self, name: str) -> int:
        """Return how many numbers a row of a signal has."""
        return self.shards[name].shape[1]

    def class_medians(self, name: str) -> NDArray[np.float64]:
        """(C, d) exact median of each coordinate over each given class; 0 where a class is empty.

        Floats are ordered as their bits are, with a twist for the sign. So the two middle numbers are found four bits
        at a time: every pass counts how many numbers go on with each of the sixteen digits.
        """
        if not self._elsewhere([name]):
            return self.here.class_medians(name)
        sizes = np.bincount(self.signals.labels)
        width = self.width(name)
        ranks = np.stack([np.maximum(sizes - 1, 0) // 2, sizes // 2])
        left = np.repeat(ranks[:, :, None], width, axis=2).astype(np.int64)
        found = np.zeros((2, len(sizes), width), dtype=np.uint32)
        for shift in range(32 - DIGITS, -1, -DIGITS):
            counts = sum(each for _, each in self._pass(count_digits, [name], {}, (name, found, shift)))
            below = np.cumsum(counts, axis=3)
            digit = np.minimum((below <= left[..., None]).sum(axis=3), 2**DIGITS - 1)
            at = digit[..., None]
            left -= (np.take_along_axis(below, at, axis=3) - np.take_along_axis(counts, at, axis=3))[..., 0]
            found |= digit.astype(np.uint32) << np.uint32(shift)
        middle = np.where(found & SIGN, found ^ SIGN, ~found).astype(np.uint32).view(np.float32).astype(np.float64)
        medians: NDArray[np.float64] = np.where((sizes > 0)[:, None], (middle[0] + middle[1]) / 2, 0.0)
        return medians

    def neighbourhood(
        self,
        *,
        tau: float | Literal["auto"],
        similarity: Similarity,
        target_degree: float,
        strict: bool = False,
        screening: Screening = "auto",
        allow_zero: bool = False,
        device: str = "cpu",
        progress: Progress,
    ) -> Neighbourhood:
        """Look at all embeddings once, and find tau, screen and estimate by a sample, as one machine does."""
        if self.approximate:
            import_faiss()
        embeddings = self.shards["embeddings"]
        n, dim = embeddings.shape
        row = dim * embeddings.dtype.itemsize + 8
        slots, memory = self.cluster.slots(device), self.cluster.resources.get("memory", math.inf)
        layout = Layout(n, self.block or choose_block(n, dim, slots=slots, device=device, memory=memory, row=row))
        more = training_rows(n) if self.approximate else 0
        surveyed = survey(self.cluster, embeddings, layout, progress, allow_zero=allow_zero, more=more)
        with surveyed.blocks.filling(layout.count):
            near = neighbourhood_of(
                lambda: RayBackend(surveyed, device, work_dir=self.work_dir),
                tau=tau,
                similarity=similarity,
                strict=strict,
                target_degree=target_degree,
                screening=screening,
            )
        backend = cast("RayBackend", near.backend)
        if self.share is not None:
            cells = choose_cells(backend, near.threshold, near.estimate.mean_degree, share=self.share, seed=self.seed)
            backend = AnnBackend(backend, cells)
        self.work.backend = backend
        return replace(near, backend=backend)

    def nearest(self, name: str, k: int, progress: Progress) -> Nearest:
        """Refuse: it takes a machine that holds the whole signal."""
        del k, progress
        raise InputError(
            f"nearest neighbours by {name} are looked for on one machine, and not by Ray; leave engine= (--engine) out"
        )

    @contextmanager
    def all_edges(self, near: Neighbourhood, progress: Progress) -> Iterator[Callable[[], Iterable[Edges]]]:
        """Find all edges i < j; they stay in tiles on disk."""
        backend = cast("RayBackend", near.backend)
        layout = backend.surveyed.layout
        with tempfile.TemporaryDirectory() as spare:
            with progress.task("neighbours", total=layout.n * (layout.n + 1) / 2) as advance:
                store = backend.tiles(
                    near.threshold, max_edges=math.inf, advance=advance, work_dir=backend.work_dir or spare
                )
            yield lambda: (backend.edges_of(store, tile) for tile in sorted(layout.order(2)))

    def each(
        self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], *shared: Any, memory: float = 0.0
    ) -> Iterator[Any]:
        """Return what ``function(*call, *shared)`` returns, as tasks end; one takes so many bytes of memory."""
        references = tuple(map(self.cluster.put, shared))
        tasks = ((None, Task(function, (*call, *references))) for call in calls)
        return (found for _, found in self.cluster.each(tasks, memory=memory))

    def start_fingerprints(self, names: Collection[str]) -> None:
        """Begin to take fingerprints of what is in this process; others are taken when they are read."""
        self.here.start_fingerprints({*names} - {"embeddings"})

    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the signals that were asked for, and of long ones as far as they were read."""
        backend = self.work.backend
        embeddings = {} if backend is None else {"embeddings": backend.surveyed.sha256()}
        return self.here.fingerprints() | self.work.digests | embeddings

    def facts(self) -> dict[str, Any]:
        """Tell what was done on the cluster, and which share of the edges an approximate search found."""
        tally, backend = self.cluster.tally, self.work.backend
        slots = self.cluster.slots("cpu" if backend is None else backend.device)
        done: dict[str, Any] = {
            "name": "ray",
            "nodes": len(tally.nodes),
            "workers": slots,
            "tasks": tally.tasks,
            "retries": tally.retries,
            "bytes_returned": tally.bytes_returned,
            "busy_seconds": tally.busy_seconds,
            "idle": max(0.0, 1 - tally.busy_seconds / max(1e-9, tally.waited_seconds * slots)),
        }
        if backend is not None:
            done |= {
                "block": backend.surveyed.layout.block,
                "tiles": backend.work.tiles,
                "tiles_reused": backend.work.tiles_reused,
                "bytes_loaded": backend.bytes_loaded,
            }
        if not isinstance(backend, AnnBackend):
            return {"engine": done}
        cells = backend.cells
        return {
            "engine": done,
            "edges_found": cells.found,
            "cells": len(cells.centres),
            "cells_searched": cells.probes,
        }

    def notes(self) -> tuple[str, ...]:
        """Say which share of the edges an approximate search found."""
        if not isinstance(self.work.backend, AnnBackend):
            return ()
        return (found_note(self.work.backend.cells.found),)

    def _elsewhere(self, names: Iterable[str]) -> list[str]:
        """Names of those signals that are not in the memory of this process."""
        return [name for name in names if name in self.shards and not in_memory(self.shards[name])]

    def _layout(self, names: Iterable[str]) -> Layout:
        """Cut the examples so that a block of all arrays together stays small."""
        row = sum(self.shards[name].nbytes // len(self.shards[name]) for name in names if name in self.shards)
        return Layout(len(self.signals), max(1, min(len(self.signals), PIECE_BYTES // max(1, row))))

    def _pass(
        self, function: Callable[..., Any], names: Collection[str], sliced: dict[str, Any], shared: tuple[Any, ...]
    ) -> Iterator[tuple[int, Any]]:
        """Run a task for every block of examples; yields its number and what ``function(signals, *shared)`` returns.

        Of `sliced` arrays it is given its rows, as a mapping before what is shared, where there are any.
        """
        layout = self._layout(names)
        shards = {name: readable_by_tasks(self.cluster, self.shards[name]) for name in names if name in self.shards}
        small = {name: array for name, array in self.signals.arrays().items() if name in {"labels", *names}}
        first = {name for name in shards if name not in self.work.digests}
        ready = tuple(map(self.cluster.put, (shards, first, *shared)))

        def tasks() -> Iterator[tuple[int, Task]]:
            for number in range(layout.count):
                start, stop = layout.span(number)
                mine, rows = ({name: array[start:stop] for name, array in some.items()} for some in (small, sliced))
                yield number, Task(run_block, (start, stop, mine, rows, function, *ready))

        prints: dict[int, dict[str, str]] = {}
        for number, (value, digests) in self.cluster.each(tasks()):
            prints[number] = digests
            yield number, value
        every = range(layout.count)
        self.work.digests.update({name: fingerprint_of_parts(prints[k][name] for k in every) for name in first})


def run_block(
    start: int,
    stop: int,
    small: dict[str, Any],
    rows: dict[str, Any],
    function: Callable[..., Any],
    shards: dict[str, Shards],
    first: set[str],
    *shared: Any,
) -> tuple[Any, dict[str, str]]:
    """Read and check a block of signals on a worker, and call a function; also fingerprints of what is read first."""
    arrays = {name: some.read(start, stop) for name, some in shards.items()}
    signals = checked(start, **small, **arrays)
    value = function(signals, rows, *shared) if rows else function(signals, *shared)
    return value, {name: fingerprint(arrays[name]) for name in first}


def _over_block(signals: Signals, *arguments: Any) -> NDArray[np.float64]:
    """Call a function of rows for one block: ``(rows given by name, function, order of the columns, *shared)``."""
    rows = arguments[0] if isinstance(arguments[0], dict) else {}
    function, order, *shared = arguments[1:] if rows else arguments
    return over_rows(function, [rows[name] if name in rows else signals.need(name) for name in order], *shared)


def _squared_norms(signals: Signals, name: str) -> NDArray[np.float64]:
    return signals.squared_norms[name]


def read_rows(shards: Shards, start: int, stop: int, where: NDArray[np.int64]) -> Floats:
    """Rows by their place in the whole, all of them from `start` to `stop`, which are checked."""
    labels = np.zeros(stop - start, dtype=np.int64)
    return checked(start, labels=labels, embeddings=shards.read(start, stop)).need("embeddings")[where - start]


def count_digits(signals: Signals, name: str, found: NDArray[np.uint32], shift: int) -> NDArray[np.int64]:
    """(2, C, d, 16) how many coordinates begin as `found` above the digit at `shift`, by that digit."""
    bits = widen(signals.need(name)).view(np.uint32)
    keys = np.where(bits & SIGN, ~bits, bits | SIGN)
    counts = np.zeros((*found.shape, 2**DIGITS), dtype=np.int64)
    _count_digits(keys, signals.labels, found, shift, counts)
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


@contextmanager
def _by_value(ray: Any, *things: Any) -> Iterator[None]:
    """Let functions of the user's own files travel as they are: other processes cannot import those files."""
    names = {getattr(thing, "__module__", None) or "" for thing in things if callable(thing)}
    own = [sys.modules[name] for name in names if name in sys.modules and name.partition(".")[0] != "prune4rel"]
    for module in own:
        ray.cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in own:
            ray.cloudpickle.unregister_pickle_by_value(module)


@contextmanager
def serve(
    signals: Signals | str | Path | None,
    arrays: Mapping[str, Any],
    *,
    ray_address: str | None = None,
    work_dir: str | Path | None = None,
    ann: bool = False,
    ann_share: float | None = None,
    ann_seed: int = 0,
    block: int | None = None,
) -> Iterator[RayEngine]:
    """Connect to a cluster and find the signals; both are let go of at the end of the block."""
    share = share_of(ann=ann, ann_share=ann_share)
    with connect(ray_address) as cluster:
        here, shards = gather(cluster, signals, arrays)
        yield RayEngine(
            _without_long(here, shards), LocalEngine(here), shards, cluster, work_dir, share, ann_seed, block
        )


def _without_long(here: Signals, shards: Mapping[str, Shards]) -> Signals:
    """Return the signals without long arrays; there are as many classes as the probabilities have columns."""
    small = replace(here, probabilities=None, embeddings=None, ssl_embeddings=None)
    if "probabilities" in shards:
        vars(small)["n_classes"] = shards["probabilities"].shape[1]  # where the cached property keeps it
    return small
