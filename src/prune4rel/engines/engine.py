"""What a method may ask for, whoever serves it; and who there is to serve."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.neighbours.build import Neighbourhood
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.nearest import Nearest
from prune4rel.neighbours.screen import Screening
from prune4rel.neighbours.similarity import Similarity
from prune4rel.progress import Progress
from prune4rel.registry import brought, look_up, options_of
from prune4rel.signals import Floats, Signals

GROUP = "prune4rel.engines"
KNOWN = {"local": "prune4rel.engines.local:serve", "ray": "prune4rel.engines.ray.engine:serve"}
"""Engines that come along. Other packages name theirs in the entry point group `GROUP`."""

Column = str | NDArray[Any]
"""One row an example: a signal by its name, or an array."""


class Engine(Protocol):
    """Serves one selection: holds the signals, or knows where they are.

    What is asked for by name may be longer than one machine can hold, so a method that is to run anywhere asks here,
    and brings functions for the rows along. They have to be functions of a module: they may run elsewhere.
    """

    @property
    def signals(self) -> Signals:
        """Labels and all that is one number an example; longer arrays only where they are in this process."""

    @property
    def present(self) -> Collection[str]:
        """Names of the signals that are there, wherever they are."""

    @property
    def approximate(self) -> bool:
        """Whether neighbours are looked for in likely places only."""

    def only(self, rows: NDArray[np.int64]) -> Self:
        """Return the engine of the examples with these numbers (k,), ascending."""

    def device(self, wanted: str) -> str:
        """Turn ``"auto"``, ``"cpu"`` or ``"cuda"`` into what there is."""

    def each_block(self, function: Callable[..., Any], names: Collection[str], *shared: Any) -> list[Any]:
        """Return what ``function(signals, *shared)`` makes of every block of examples, with these signals, in order."""

    def per_example(
        self, function: Callable[..., NDArray[np.float64]], columns: Iterable[Column], *shared: Any
    ) -> NDArray[np.float64]:
        """(n,) what ``function(*rows of the columns, *shared)`` makes of every block of rows."""

    def squared_norms(self, name: str) -> NDArray[np.float64]:
        """(n,) squared lengths of the rows of a signal."""

    def rows(self, name: str, where: NDArray[np.int64]) -> Floats:
        """(k, d) some rows of a signal, by their numbers in ascending order."""

    def width(self, name: str) -> int:
        """Return how many numbers a row of a signal has."""

    def class_medians(self, name: str) -> NDArray[np.float64]:
        """(C, d) median of each coordinate over each given class; 0 where a class is empty."""

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

    def nearest(self, name: str, k: int, progress: Progress) -> Nearest:
        """Find everyone's k nearest others by a signal, and how far they are."""

    def all_edges(
        self, near: Neighbourhood, progress: Progress
    ) -> AbstractContextManager[Callable[[], Iterable[Edges]]]:
        """Find all edges i < j once, to be gone through any number of times, in the order `Graph.from_upper` wants."""

    def each(
        self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], *shared: Any, memory: float = 0.0
    ) -> Iterator[Any]:
        """Return what ``function(*call, *shared)`` returns, in any order; one call takes so many bytes of memory."""

    def start_fingerprints(self, names: Collection[str]) -> None:
        """Begin to take fingerprints of some signals."""

    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the signals that were asked for, as far as they were read."""

    def facts(self) -> dict[str, Any]:
        """Tell what there is to say of the work, for the statistics."""

    def notes(self) -> tuple[str, ...]:
        """Sentences about it."""


def engines() -> dict[str, str]:
    """Names of the engines, each with its ``module:function``.

    >>> sorted(engines())
    ['local', 'ray']
    """
    return KNOWN | {entry.name: entry.value for entry in brought(GROUP)}


def open_engine(
    name: str, signals: Signals | str | Path | None, arrays: Mapping[str, Any], **settings: Any
) -> AbstractContextManager[Engine]:
    """Ask an engine, by its name, to serve one selection.

    Parameters
    ----------
    signals, arrays
        What is given: one of them.
    settings
        Options of the engine. One that is None or False is not set; one that the engine does not have is refused.
    """
    known = engines()
    serve = _import(look_up("engine", name, known))
    asked = {key: value for key, value in settings.items() if value is not None and value is not False}
    for key in asked.keys() - options_of(serve).keys():
        having = [other for other in known if key in options_of(_import(known[other]))]
        raise InputError(
            f"{key} is for engine={having[0]!r} (--engine {having[0]}); add that, or leave {key} out"
            if having
            else f"engine {name!r} has no option {key!r}"
        )
    if signals is not None and arrays:
        raise InputError(f"pass either signals or arrays, not both (got signals and {', '.join(arrays)})")
    served: AbstractContextManager[Engine] = serve(signals, arrays, **asked)
    return served


def _import(where: str) -> Callable[..., Any]:
    module, _, function = where.partition(":")
    try:
        found: Callable[..., Any] = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if where != KNOWN["ray"] or error.name not in ("torch", "ray"):
            raise
        raise InputError(
            f"engine 'ray' needs {error.name}, which is not installed: pip install 'prune4rel[ray]'"
        ) from None
    return found
