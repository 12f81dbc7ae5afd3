"""The one list of learners, and which options suit which data set: the papers' values, ours where there are none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from prune4rel.errors import refuse_unknown
from prune4rel.learners.learner import Learner, Setting
from prune4rel.registry import Entries, options_of, summary_of

Kind = TypeVar("Kind", bound=type[Learner])

LEARNERS: Entries["Entry"] = Entries("learner", "prune4rel.learners", first="sop+")


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
        LEARNERS[name] = Entry(name, kind, summary_of(kind, f"learner {name!r}"), citation)
        return kind

    return add


def list_learners(pattern: str | None = None) -> list[str]:
    """Names of the learners: all, or those that match a pattern.

    >>> list_learners("sop*")
    ['sop+', 'sop']
    """
    return LEARNERS.names(pattern)


def get(name: str) -> Entry:
    """Look a learner up by name."""
    return LEARNERS.look_up(name)


def make_learner(name: str, setting: Setting, **options: Any) -> Learner:
    """Make a learner by name, with fresh networks."""
    entry = get(name)
    refuse_unknown(f"learner {name!r}", options, entry.options)
    return entry.kind(setting, **options)


Options = Mapping[str, Any]

_TEN_CLASSES: Options = {"rate_u": 10.0, "rate_v": 100.0}
_HUNDRED_CLASSES: Options = {"rate_u": 1.0, "rate_v": 100.0}
_PHOTOGRAPHS: Options = {"rate_u": 0.1, "rate_v": 1.0}
_BOTH_TERMS: Options = {"consistency": 0.9, "balance": 0.1}
_LESS_CONSISTENCY: Options = {"consistency": 0.1, "balance": 0.0}
_NEITHER_TERM: Options = {"consistency": 0.0, "balance": 0.0}

PRESETS: Mapping[tuple[str, str], Options] = MappingProxyType(
    {
        ("sop", "cifar10n"): _TEN_CLASSES,
        ("sop", "cifar100n"): _HUNDRED_CLASSES,
        ("sop", "webvision"): _PHOTOGRAPHS,
        ("sop", "clothing1m"): _PHOTOGRAPHS,
        ("sop", "imagenet-n"): _PHOTOGRAPHS,
        ("sop+", "cifar10n"): {**_TEN_CLASSES, **_BOTH_TERMS},
        ("sop+", "cifar100n"): {**_HUNDRED_CLASSES, **_BOTH_TERMS},
        ("sop+", "webvision"): {**_PHOTOGRAPHS, **_LESS_CONSISTENCY},
        ("sop+", "clothing1m"): {**_PHOTOGRAPHS, **_LESS_CONSISTENCY},
        ("sop+", "imagenet-n"): {**_PHOTOGRAPHS, **_NEITHER_TERM},
        ("dividemix", "cifar10n"): {"lambda_u": 1.0, "alpha": 4.0, "warmup_epochs": 10},
        ("dividemix", "cifar100n"): {"lambda_u": 1.0, "alpha": 4.0, "warmup_epochs": 30},
        ("dividemix", "webvision"): {"lambda_u": 0.0, "alpha": 0.5, "warmup_epochs": 1},
        ("dividemix", "clothing1m"): {"lambda_u": 0.1, "alpha": 0.5, "warmup_epochs": 1, "warmup_penalty": 1.0},
        ("dividemix", "imagenet-n"): {"lambda_u": 1.0, "alpha": 0.5, "warmup_epochs": 10},
        ("elr", "cifar10n"): {"beta": 0.7, "lambda_elr": 3.0},
        ("elr", "cifar100n"): {"beta": 0.9, "lambda_elr": 7.0},
        ("elr", "imagenet-n"): {"beta": 0.9, "lambda_elr": 7.0},
        ("elr+", "cifar10n"): {"beta": 0.7, "lambda_elr": 3.0},
        ("elr+", "cifar100n"): {"beta": 0.9, "lambda_elr": 7.0, "refine": True, "ramp_steps": 40_000},
        ("elr+", "webvision"): {"beta": 0.7, "lambda_elr": 3.0, "decay_steps": 0},
        ("elr+", "clothing1m"): {"beta": 0.7, "lambda_elr": 3.0, "decay_steps": 0, "decay": 0.999},
        ("elr+", "imagenet-n"): {"beta": 0.9, "lambda_elr": 7.0, "refine": True, "ramp_steps": 40_000},
        ("trust", "cifar10n"): {**_TEN_CLASSES, **_BOTH_TERMS},
        ("trust", "cifar100n"): {**_HUNDRED_CLASSES, **_BOTH_TERMS},
        ("trust", "features"): {"trust_from": 0.05, "newest": 0.1},
        ("cores", "cifar10n"): {"beta": 2.0, "consistency": 0.4},
        ("sop", "digits"): _TEN_CLASSES,
        ("sop+", "digits"): {**_TEN_CLASSES, **_BOTH_TERMS},
        ("dividemix", "digits"): {"warmup_penalty": 1.0},
        ("elr", "digits"): {"beta": 0.7, "lambda_elr": 3.0},
        ("elr+", "digits"): {"beta": 0.7, "lambda_elr": 3.0},
        ("cores", "digits"): {"sieve_at": -10.0},
    }
)
"""What differs from a learner's defaults or confirms them, by names of learner and data set, or kind of examples."""


def preset_options(learner: str, dataset: str, kind: str = "") -> dict[str, Any]:
    """Return all options of a learner, as they suit a data set, or else its kind; its defaults where nobody has tried.

    Parameters
    ----------
    learner
        One of `list_learners()`.
    dataset
        Name of a data set; it need not be a known one.
    kind
        What its examples are, such as ``"features"``.

    Examples
    --------
    >>> preset_options("sop+", "cifar100n")
    {'rate_u': 1.0, 'rate_v': 100.0, 'consistency': 0.9, 'balance': 0.1}
    >>> preset_options("sop+", "my-pictures") == preset_options("sop+", "cifar10n")
    True
    """
    return get(learner).options | dict(PRESETS.get((learner, dataset), PRESETS.get((learner, kind), {})))
