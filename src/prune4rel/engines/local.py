"""The engine on one machine: all arrays are in memory, or mapped from disk."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import map_blocks, over_rows
from prune4rel.engines.engine import Column
from prune4rel.errors import InputError
from prune4rel.greedy.groups import Groups
from prune4rel.half import widen
from prune4rel.machine import resolve_device
from prune4rel.neighbours.build import Neighbourhood, check_zero_rows, neighbourhood
from prune4rel.neighbours.cells import SHARE, CellBackend, LikelyCells, check_share, found_note
from prune4rel.neighbours.euclidean import Space
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.nearest import Nearest, likely_neighbours, nearest_neighbours
from prune4rel.neighbours.screen import Screening
from prune4rel.neighbours.similarity import Points, Similarity
from prune4rel.progress import Progress
from prune4rel.provenance import Fingerprints
from prune4rel.signals import Floats, Signals


@dataclass(frozen=True)
class LocalEngine:
    """Serves what `Engine` promises from the arrays of this process.

    Parameters
    ----------
    signals
        The arrays.
    share
        Share of the neighbours that is looked for, in likely places; None looks for all of them, everywhere.
    seed
        Draws the rows from which the likely places are learnt.
    prints, work
        Fingerprints in the making; where neighbours were looked for last.

    Examples
    --------
    >>> engine = LocalEngine(Signals(labels=[0, 0, 0], embeddings=[[1, 0], [1, 4], [4, 2]]))
    >>> engine.class_medians("embeddings")
    array([[1., 2.]])
    """

    signals: Signals
    share: float | None = None
    seed: int = 0
    prints: list[Fingerprints] = field(default_factory=list, repr=False)
    work: dict[str, LikelyCells] = field(default_factory=dict, repr=False)

    @property
    def present(self) -> Collection[str]:
        """Names of the signals that are there."""
        return self.signals.arrays()

    @property
    def approximate(self) -> bool:
        """Whether neighbours are looked for in likely places only."""
        return self.share is not None

    def only(self, rows: NDArray[np.int64]) -> Self:
        """Return the engine of the examples with these numbers (k,), ascending."""
        return replace(self, signals=self.signals.only(rows))

    def device(self, wanted: str) -> str:
        """Turn ``"auto"``, ``"cpu"`` or ``"cuda"`` into what this machine has."""
        return resolve_device(wanted, pairwise_work(self.signals))

    def each_block(self, function: Callable[..., Any], names: Collection[str], *shared: Any) -> list[Any]:
        """One block holds them all."""
        del names
        return [function(self.signals, *shared)]

    def per_example(
        self, function: Callable[..., NDArray[np.float64]], columns: Iterable[Column], *shared: Any
    ) -> NDArray[np.float64]:
        """(n,) what ``function(*rows of the columns, *shared)`` makes of every block of rows, in threads."""
        arrays = [self.signals.need(column) if isinstance(column, str) else column for column in columns]
        return over_rows(function, arrays, *shared)

    def squared_norms(self, name: str) -> NDArray[np.float64]:
        """(n,) squared lengths of the rows of a signal."""
        return self.signals.squared_norms[name]

    def rows(self, name: str, where: NDArray[np.int64]) -> Floats:
        """(k, d) some rows of a signal."""
        return self.signals.need(name)[where]

    def width(self, name: str) -> int:
        """Return how many numbers a row of a signal has."""
        return int(self.signals.need(name).shape[1])

    def class_medians(self, name: str) -> NDArray[np.float64]:
        """(C, d) median of each coordinate over each given class; 0 where a class is empty."""
        array = self.signals.need(name)
        groups = Groups.make(len(array), self.signals.labels)
        medians = np.zeros((len(groups.sizes), array.shape[1]))
        for g in np.flatnonzero(groups.sizes):
            medians[g] = _median(array, groups.members[groups.starts[g] :][: groups.sizes[g]])
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
        """Estimate who is near whom by `embeddings`, ready to build the graph of it."""
        del progress
        rows, squares = self.signals.need("embeddings"), self.signals.squared_norms["embeddings"]
        check_zero_rows(squares, allow=allow_zero)
        near = neighbourhood(
            Points(rows, squares),
            tau=tau,
            similarity=similarity,
            strict=strict,
            target_degree=target_degree,
            device=device,
            screening=screening,
            share=self.share,
            seed=self.seed,
        )
        if isinstance(near.backend, CellBackend):
            self.work["cells"] = near.backend.cells
        return near

    def nearest(self, name: str, k: int, progress: Progress) -> Nearest:
        """Find everyone's k nearest others by a signal, and how far they are."""
        space = Space.of(Points(self.signals.need(name), self.signals.squared_norms[name]))
        n = len(space.points)
        with progress.task("neighbours", total=n * (n + 1) / 2) as advance:
            if self.share is None:
                return nearest_neighbours(space, k, advance=advance)
            found, self.work["cells"] = likely_neighbours(space, k, share=self.share, seed=self.seed, advance=advance)
            return found

    @contextmanager
    def all_edges(self, near: Neighbourhood, progress: Progress) -> Iterator[Callable[[], Iterable[Edges]]]:
        """Find all edges i < j, and hold them in memory."""
        n = len(near.backend.points)
        with progress.task("neighbours", total=n * (n + 1) / 2) as advance:
            parts = near.backend.upper(near.threshold, max_edges=np.inf, advance=advance)
        yield lambda: parts

    def each(
        self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], *shared: Any, memory: float = 0.0
    ) -> Iterator[Any]:
        """Return what ``function(*call, *shared)`` returns, one after the other."""
        del memory
        return (function(*call, *shared) for call in calls)

    def start_fingerprints(self, names: Collection[str]) -> None:
        """Begin to take fingerprints of some signals, in the background."""
        arrays = self.signals.arrays()
        self.prints.append(Fingerprints({name: arrays[name] for name in arrays if name in names}))

    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the signals that were asked for."""
        return {name: digest for some in self.prints for name, digest in some.result().items()}

    def facts(self) -> dict[str, Any]:
        """Tell which share of the neighbours an approximate search found."""
        if (cells := self.work.get("cells")) is None:
            return {}
        return {"edges_found": cells.found, "cells": len(cells.centres), "pairs_looked_at": cells.looked_at}

    def notes(self) -> tuple[str, ...]:
        """Say which share of the neighbours an approximate search found."""
        if (cells := self.work.get("cells")) is None:
            return ()
        return (found_note(cells.found),)


@contextmanager
def serve(
    signals: Signals | str | Path | None,
    arrays: Mapping[str, Any],
    *,
    ann: bool = False,
    ann_share: float | None = None,
    ann_seed: int = 0,
) -> Iterator[LocalEngine]:
    """Bring the signals into this process; with `ann` neighbours are looked for in likely places only."""
    share = share_of(ann=ann, ann_share=ann_share)
    if signals is None:
        if "labels" not in arrays:
            raise InputError("labels are missing: pass labels=, or signals=", "labels")
        signals = Signals(**arrays)
    engine = LocalEngine(signals if isinstance(signals, Signals) else Signals.load(signals), share, ann_seed)
    try:
        yield engine
    finally:
        for some in engine.prints:
            some.cancel()


def share_of(*, ann: bool, ann_share: float | None) -> float | None:
    """Return the share of the neighbours that is aimed at; None for all of them.

    >>> share_of(ann=True, ann_share=None)
    0.97
    """
    if ann_share is not None:
        return check_share(ann_share)
    return SHARE if ann else None


def pairwise_work(signals: Signals) -> float:
    """Multiplications it takes to compare all pairs of examples."""
    return 0.0 if signals.embeddings is None else float(len(signals)) ** 2 * signals.embeddings.shape[1]


def _median(array: Floats, members: NDArray[np.int64]) -> NDArray[np.float64]:
    """(d,) median of each coordinate over the members."""

    def block(start: int, stop: int) -> NDArray[np.float64]:
        coordinates = np.ascontiguousarray(widen(array[members, start:stop]).T, dtype=np.float64)
        middle: NDArray[np.float64] = np.median(coordinates, axis=1, overwrite_input=True)
        return middle

    return np.concatenate(map_blocks(block, array.shape[1], len(members)))
