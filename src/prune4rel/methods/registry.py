"""The one list of methods, and what a method is told and returns."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.progress import Progress
from prune4rel.registry import import_all, listed, look_up, options_of, summary_of

_HOUSEKEEPING = {"registry", "run", "ranking"}
_registry: dict[str, "Method"] = {}


@dataclass(frozen=True)
class Request:
    """What every method is asked: how many, balanced or not, with which seed, where to report progress."""

    size: int
    balanced: bool = False
    seed: int = 0
    device: str = "auto"
    progress: Progress = field(default_factory=Progress)


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


Run = Callable[..., Outcome]


@dataclass(frozen=True)
class Method:
    """A registered method and what is known of it.

    `needs` names the signals it cannot do without (``"a|b"``: either of two); `balances` says whether it can go
    round the classes; `seeded` whether the seed changes the result.
    """

    name: str
    run: Run
    summary: str
    needs: tuple[str, ...]
    balances: bool
    seeded: bool
    cost: str
    citation: str

    @property
    def options(self) -> dict[str, Any]:
        """The method's own options and their defaults."""
        return options_of(self.run)


def register_method(
    name: str,
    *,
    needs: tuple[str, ...],
    cost: str,
    citation: str = "",
    balances: bool = True,
    seeded: bool = False,
) -> Callable[[Run], Run]:
    """Add the decorated function to the list of methods.

    The function takes ``(signals, request, *, own options)`` and returns an `Outcome`; the first line of its
    docstring is its summary.
    """

    def add(run: Run) -> Run:
        summary = summary_of(run, f"method {name!r}")
        _registry[name] = Method(name, run, summary, needs, balances, seeded, cost, citation)
        return run

    return add


def list_methods(pattern: str | None = None) -> list[str]:
    """Names of the methods: all, or those that match a pattern.

    >>> "prune4rel" in list_methods()
    True
    >>> list_methods("*-score")
    ['bottom-score', 'top-score']
    """
    import_all("prune4rel.methods", housekeeping=_HOUSEKEEPING, group="prune4rel.methods")
    return listed(_registry, pattern, first="prune4rel")


def get(name: str) -> Method:
    """Look a method up by name, or as ``module:function`` in a file of the user's own."""
    if isinstance(name, str) and ":" in name:
        return _from_users_module(name)
    known = list_methods()
    return look_up("method", name, _registry, known=known)


def _from_users_module(name: str) -> Method:
    """Import ``module:function``, also from the current folder, and find the method it registers."""
    module, _, attribute = name.partition(":")
    if not attribute or not all(module.split(".")):
        raise InputError(f"method {name!r}: write it as module:function, as in my_file:my_function")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        function = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise InputError(
            f"method {name!r}: cannot import {error.name!r}; is the file in this folder or installed?"
        ) from None
    except AttributeError:
        raise InputError(f"method {name!r}: the module {module!r} has no {attribute!r}") from None
    for method in _registry.values():
        if method.run is function:
            return method
    raise InputError(
        f"method {name!r}: decorate {attribute!r} with @prune4rel.register_method(...) to make it a method"
    )
