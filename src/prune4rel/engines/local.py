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
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.screen import Screening
from prune4rel.neighbours.similarity import Points, Similarity
from prune4rel.progress import Progress
from prune4rel.provenance import Fingerprints
from prune4rel.signals import Floats, Signals


@dataclass(frozen=True)
class LocalEngine:
    """Serves what `Engine` promises from the arrays of this process.

    Examples
    --------
    >>> engine = LocalEngine(Signals(labels=[0, 0, 0], embeddings=[[1, 0], [1, 4], [4, 2]]))
    >>> engine.class_medians("embeddings")
    array([[1., 2.]])
    """

    signals: Signals
    prints: list[Fingerprints] = field(default_factory=list, repr=False)

    @property
    def present(self) -> Collection[str]:
        """Names of the signals that are there."""
        return self.signals.arrays()

    @property
    def approximate(self) -> bool:
        """Neighbours are looked for everywhere."""
        return False

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
        return neighbourhood(
            Points(rows, squares),
            tau=tau,
            similarity=similarity,
            strict=strict,
            target_degree=target_degree,
            device=device,
            screening=screening,
        )

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
        """Nothing to say."""
        return {}

    def notes(self) -> tuple[str, ...]:
        """Nothing to say."""
        return ()


@contextmanager
def serve(signals: Signals | str | Path | None, arrays: Mapping[str, Any]) -> Iterator[LocalEngine]:
    """Bring the signals into this process."""
    if signals is None:
        if "labels" not in arrays:
            raise InputError("labels are missing: pass labels=, or signals=", "labels")
        signals = Signals(**arrays)
    engine = LocalEngine(signals if isinstance(signals, Signals) else Signals.load(signals))
    try:
        yield engine
    finally:
        for some in engine.prints:
            some.cancel()


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
