"""The one list of learners."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, TypeVar

from prune4rel.errors import InputError, nearest
from prune4rel.learners.learner import Learner, Setting

DEFAULT = "sop+"

Kind = TypeVar("Kind", bound=type[Learner])

_HOUSEKEEPING = {
    "co_divide",
    "follower",
    "learner",
    "losses",
    "options",
    "presets",
    "ranks",
    "registry",
    "simclr",
}
_registry: dict[str, "Entry"] = {}


@dataclass(frozen=True)
class Entry:
    """A registered learner and what is known of it."""

    name: str
    kind: type[Learner]
    summary: str
    citation: str

    @property
    def options(self) -> dict[str, Any]:
        """The learner's own options and their defaults."""
        parameters = inspect.signature(self.kind).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def register_learner(name: str, *, citation: str = "") -> Callable[[Kind], Kind]:
    """Add the decorated `Learner` to the list. The first line of its docstring is its summary.

    It is made as ``kind(setting, **own options)``.
    """

    def add(kind: Kind) -> Kind:
        summary = (inspect.getdoc(kind) or "").partition("\n")[0]
        _registry[name] = Entry(name, kind, summary, citation)
        return kind

    return add


def learners() -> list[str]:
    """Names of all learners.

    >>> "sop+" in learners()
    True
    """
    package = import_module("prune4rel.learners")
    for module in iter_modules(package.__path__):
        if module.name not in _HOUSEKEEPING:
            import_module(f"prune4rel.learners.{module.name}")
    for entry in entry_points(group="prune4rel.learners"):
        entry.load()  # importing the module registers what it decorates
    return sorted(_registry, key=lambda name: (name != DEFAULT, name))


def get(name: str) -> Entry:
    """Look a learner up by name."""
    known = learners()
    if name not in known:
        raise InputError(f"unknown learner {name!r}; {nearest(name, known)}")
    return _registry[name]


def make_learner(name: str, setting: Setting, **options: Any) -> Learner:
    """Make a learner by name, with fresh networks."""
    entry = get(name)
    for option in options:
        if option not in entry.options:
            raise InputError(f"learner {name!r} has no option {option!r}; {nearest(option, entry.options)}")
    return entry.kind(setting, **options)
