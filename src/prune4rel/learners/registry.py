"""The one list of learners."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from prune4rel.errors import refuse_unknown
from prune4rel.learners.learner import Learner, Setting
from prune4rel.registry import import_all, listed, look_up, options_of, summary_of

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
    "sop_kernels",
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
        return options_of(self.kind)


def register_learner(name: str, *, citation: str = "") -> Callable[[Kind], Kind]:
    """Add the decorated `Learner` to the list. The first line of its docstring is its summary.

    It is made as ``kind(setting, **own options)``.
    """

    def add(kind: Kind) -> Kind:
        _registry[name] = Entry(name, kind, summary_of(kind, f"learner {name!r}"), citation)
        return kind

    return add


def list_learners(pattern: str | None = None) -> list[str]:
    """Names of the learners: all, or those that match a pattern.

    >>> list_learners("sop*")
    ['sop+', 'sop']
    """
    import_all("prune4rel.learners", housekeeping=_HOUSEKEEPING, group="prune4rel.learners")
    return listed(_registry, pattern, first=DEFAULT)


def get(name: str) -> Entry:
    """Look a learner up by name."""
    return look_up("learner", name, _registry, known=list_learners())


def make_learner(name: str, setting: Setting, **options: Any) -> Learner:
    """Make a learner by name, with fresh networks."""
    entry = get(name)
    refuse_unknown(f"learner {name!r}", options, entry.options)
    return entry.kind(setting, **options)
