"""The one list of methods, and what a method is told and returns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prune4rel.engines.engine import Engine
from prune4rel.engines.local import LocalEngine
from prune4rel.errors import InputError
from prune4rel.greedy.groups import NOBODY
from prune4rel.progress import Progress
from prune4rel.registry import Entries, import_users, options_of, summary_of
from prune4rel.signals import Signals

InParts = Literal["again", "shares", "never"]
METHODS: Entries["Method"] = Entries("method", "prune4rel.methods", first="prune4rel")


@dataclass(frozen=True)
class Request:
    """What every method is asked.

    Parameters
    ----------
    size
        How many to pick.
    balanced
        Whether to go round the classes.
    seed
        For methods that draw at random.
    device
        ``"cpu"`` or ``"cuda"``, with a number or without.
    progress
        Where to report how far the work is.
    initial
        Examples that are picked already: they lead the result and count towards its size. For methods that are
        registered with `extends`.
    partitions
        In how many parts to pick. For methods that ask for ``"parts"``.
    engine
        Who serves methods that ask for something; see `serving`.
    """

    size: int
    balanced: bool = False
    seed: int = 0
    device: str = "cpu"
    progress: Progress = field(default_factory=Progress)
    initial: NDArray[np.int64] | None = None
    partitions: int | None = None
    engine: Engine | None = None

    @property
    def first(self) -> NDArray[np.int64]:
        """(k,) the `initial` picks; none where there are none."""
        return NOBODY if self.initial is None else self.initial

    def serving(self, signals: Signals) -> Engine:
        """Who serves the method: this machine, where nobody else was asked."""
        return self.engine or LocalEngine(signals)


@dataclass(frozen=True)
class Outcome:
    """What a method answers; `select` adds the rest of a `Selection`.

    Parameters
    ----------
    indices
        (size,) in pick order.
    gains
        (size,) worth of each pick, higher first.
    objective
        Value of the objective, NaN where there is none.
    confidence
        (n,) confidence in every example, where the method has one.
    scores
        (n,) score of every example, where the method ranks by one.
    weights
        (size,) by which each pick's loss is to be multiplied, where the method says so.
    options
        Options as they were resolved (``tau="auto"`` becomes a number).
    stats, notes
        What happened, in numbers and in sentences.
    ranking
        How `keep_best` ranked the scores, where it did.
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    objective: float = float("nan")
    confidence: NDArray[np.float64] | None = None
    scores: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    ranking: dict[str, Any] = field(default_factory=dict)


Run = Callable[..., Outcome]


@dataclass(frozen=True)
class Method:
    """A registered method and what is known of it.

    Parameters
    ----------
    name, run, summary, cost, citation
        What it is called, does and takes, in the words of its registration.
    needs
        Signals it cannot do without; ``"a|b"``: either of two.
    by_row
        It ranks by a score of every example that depends on nothing but its own row.
    asks
        What it asks the engine for instead of reading long signals by itself: ``"rows"`` (passes over all rows),
        ``"neighbours"``, ``"nearest"`` (neighbours by number), ``"parts"`` (it picks in parts by itself).
    balances
        It can go round the classes.
    extends
        It can start from earlier picks, `Request.initial`.
    in_parts
        How it picks in parts of the examples: ``"again"``, in every part as many as are wanted, and among those picks
        then; ``"shares"``, in every part its share, where scores rank an example among all that are there, or weights
        add up to them; ``"never"``, where neither makes sense.
    points_at
        Options that may name examples by their numbers.
    seeded
        The seed changes the result.
    """

    name: str
    run: Run
    summary: str
    needs: tuple[str, ...]
    cost: str
    citation: str
    by_row: bool
    asks: tuple[str, ...]
    balances: bool
    extends: bool
    in_parts: InParts
    points_at: tuple[str, ...]
    seeded: bool

    @property
    def options(self) -> dict[str, Any]:
        """The method's own options and their defaults."""
        return options_of(self.run) | ({"initial": None} if self.extends else {})

    @property
    def signals(self) -> set[str]:
        """Names of all signals it may read."""
        return {"labels", "known", *(name for need in self.needs for name in need.split("|"))}


def register_method(
    name: str,
    *,
    needs: tuple[str, ...],
    cost: str,
    citation: str = "",
    by_row: bool = False,
    asks: tuple[str, ...] = (),
    balances: bool = True,
    extends: bool = False,
    in_parts: InParts = "again",
    points_at: tuple[str, ...] = (),
    seeded: bool = False,
) -> Callable[[Run], Run]:
    """Add the decorated function to the list of methods.

    The function takes ``(signals, request, *, own options)`` and returns an `Outcome`; the first line of its
    docstring is its summary. `Method` says what the other words mean. A method that is `by_row` returns what
    `keep_best` makes of its scores; it runs on any engine, and `extends`, by itself.
    """

    def add(run: Run) -> Run:
        summary = summary_of(run, f"method {name!r}")
        METHODS[name] = Method(
            name=name,
            run=run,
            summary=summary,
            needs=needs,
            cost=cost,
            citation=citation,
            by_row=by_row,
            asks=asks,
            balances=balances,
            extends=extends or by_row,
            in_parts=in_parts,
            points_at=points_at,
            seeded=seeded,
        )
        return run

    return add


def list_methods(pattern: str | None = None) -> list[str]:
    """Names of the methods: all, or those that match a pattern.

    >>> "prune4rel" in list_methods()
    True
    >>> list_methods("*-score")
    ['bottom-score', 'top-score']
    """
    return METHODS.names(pattern)


def get(name: str) -> Method:
    """Look a method up by name, or as ``module:function`` in code of the user's own, which is run: name no other's."""
    if isinstance(name, str) and ":" in name:
        return _from_users_module(name)
    return METHODS.look_up(name)


def _from_users_module(name: str) -> Method:
    """Find the method that a function in code of the user's own registers."""
    function = import_users("method", name)
    for method in METHODS.values():
        if method.run is function:
            return method
    raise InputError(
        f"method {name!r}: decorate {name.partition(':')[2]!r} with @prune4rel.register_method(...) to make it a method"
    )
