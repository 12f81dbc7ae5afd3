"""What a run is to do: one plain value, from flags or a YAML file, and back."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import InitVar, asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import yaml

from prune4rel.errors import InputError, nearest
from prune4rel.learners import get as get_learner
from prune4rel.pipeline.specs import MethodSpec, OwnMethod, names_of_code
from prune4rel.storage import to_json, write_whole
from prune4rel.training.warmup import EXTRAS, SHOWN

MAPPINGS = ("options", "network_options", "learner_options", "training", "look")
FLAGS = ("balanced", "everything", "select_only", "skip_broken")
TEXTS = ("dataset", "view", "device")
MAYBE_TEXTS = ("data", "labels", "warmup_learner", "network", "title")
LEAST = {"seeds": 1, "seed": 0, "views": 1, "repeats": 1, "parallel": 1}
MAYBE_LEAST = {"epochs": 1, "warmup_epochs": 1}


@dataclass(frozen=True)
class Config:
    """All options of a run; also the keys of its YAML file.

    Parameters
    ----------
    dataset, data, options, labels
        Name of the data set, where it lies, its options, and a file with other labels.
    methods
        What to compare: ``"uniform"``, ``"prune4rel/coverage"`` (a preset), or mappings with `method`, `options`,
        `balanced`, `label`, and `learners` where not all are to be trained on what it picks.
    ratios
        Shares of the training set to keep.
    learners
        What to train on what was kept.
    seeds, seed
        How many repeats, and the seed of the first.
    balanced
        Whether methods go round the classes, unless they say themselves.
    warmup_learner
        Whose warm-up the methods go by; each learner's own unless told.
    warmup_epochs, view, views, repeats, extras
        Of the warm-up; `extras` names signals it is to provide besides those the methods need.
    network, network_options, learner_options, epochs, training, look
        Of the trainings; what is left out comes from the preset of the data set. `learner_options` goes by learner.
    everything
        Train on the whole training set, too, to compare with.
    select_only
        Warm up and select, and train nothing.
    device, parallel
        Where, and how many trainings at a time.
    skip_broken
        Go on without image files that cannot be read.
    title
        What the report is headed.
    own
        Not a key: what is known of methods in code of the user's own, which is not imported then.

    Examples
    --------
    >>> config = Config.from_dict({"dataset": "digits", "methods": ["uniform", "prune4rel/coverage"]})
    >>> [spec.label for spec in config.specs]
    ['uniform', 'prune4rel (coverage)']
    >>> Config.from_dict({"metods": []})
    Traceback (most recent call last):
    prune4rel.errors.InputError: unknown key 'metods'; did you mean 'methods'? Known: ...
    """

    dataset: str = "digits"
    data: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    labels: str | None = None
    methods: tuple[str | dict[str, Any], ...] = ("prune4rel",)
    ratios: tuple[float, ...] = (0.2,)
    learners: tuple[str, ...] = ("sop+",)
    seeds: int = 1
    seed: int = 0
    balanced: bool = True
    warmup_learner: str | None = None
    warmup_epochs: int | None = None
    view: str = "strong"
    views: int = 1
    repeats: int = 1
    extras: tuple[str, ...] = ()
    network: str | None = None
    network_options: dict[str, Any] = field(default_factory=dict)
    learner_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    epochs: int | None = None
    training: dict[str, Any] = field(default_factory=dict)
    look: dict[str, Any] = field(default_factory=dict)
    everything: bool = False
    select_only: bool = False
    device: str = "auto"
    parallel: int = 1
    skip_broken: bool = False
    title: str | None = None
    own: InitVar[Mapping[str, OwnMethod] | None] = None

    def __post_init__(self, own: Mapping[str, OwnMethod] | None) -> None:
        object.__setattr__(self, "_own", dict(own or {}))
        for name in ("methods", "ratios", "learners"):
            object.__setattr__(self, name, _several(name, getattr(self, name)))
        object.__setattr__(self, "extras", _several("extras", self.extras) if self.extras else ())
        self._check_types()
        for ratio in self.ratios:
            if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0 < ratio <= 1:
                raise InputError(f"ratios: each must be above 0 and at most 1, not {ratio!r}", "ratios")
        object.__setattr__(self, "ratios", tuple(map(float, self.ratios)))
        for name in ("ratios", "learners"):
            _refuse_twice(name, getattr(self, name))
        for learner in (*self.learners, *self.learner_options, *filter(None, [self.warmup_learner])):
            get_learner(learner)
        for name, known in (("extras", EXTRAS), ("view", SHOWN)):
            given = (self.view,) if name == "view" else self.extras
            if unknown := [value for value in given if value not in known]:
                raise InputError(f"{name}: unknown {unknown[0]!r}; {nearest(unknown[0], known)}", name)
        self._check_methods()

    def _check_methods(self) -> None:
        for spec in self.specs:
            if missing := [need for need in spec.needs if need not in EXTRAS]:
                raise InputError(
                    f"methods: {spec.label!r} needs {missing[0]}, which no warm-up provides; use it with "
                    "`prune4rel select`",
                    "methods",
                )
            if strangers := [learner for learner in spec.learners if learner not in self.learners]:
                known_learners = nearest(strangers[0], self.learners)
                raise InputError(
                    f"methods: learner {strangers[0]!r} is not among learners; {known_learners}", "methods"
                )

    def _check_types(self) -> None:
        for names, kind, words in (
            (MAPPINGS, dict, "a mapping of names to values"),
            (FLAGS, bool, "true or false"),
            (TEXTS, str, "a text"),
            (MAYBE_TEXTS, str | None, "a text"),
        ):
            for name in names:
                if not isinstance(getattr(self, name), kind):
                    raise InputError(f"{name}: must be {words}, not {getattr(self, name)!r}", name)
        for name in (*MAPPINGS, "methods"):
            object.__setattr__(self, name, _plain(name, getattr(self, name)))
        for learner, options in self.learner_options.items():
            if not isinstance(options, dict):
                raise InputError(f"learner_options: {learner} must be a mapping of names to values", "learner_options")
        for name, least in {**LEAST, **MAYBE_LEAST}.items():
            if name in LEAST or getattr(self, name) is not None:
                _check_whole(name, getattr(self, name), least)

    @property
    def known_code(self) -> dict[str, OwnMethod]:
        """What is known of methods in code of the user's own, which is not imported then."""
        return self.__dict__["_own"]  # type: ignore[no-any-return]

    @cached_property
    def specs(self) -> tuple[MethodSpec, ...]:
        """The methods, resolved; each only once."""
        found = tuple(MethodSpec.read(method, balanced=self.balanced, own=self.known_code) for method in self.methods)
        _refuse_twice("methods", [spec.label for spec in found], "; give one of them another label")
        return found

    @classmethod
    def from_dict(
        cls,
        values: Mapping[str, Any],
        where: str = "",
        *,
        code: Collection[str] = (),
        own: Mapping[str, OwnMethod] | None = None,
    ) -> Self:
        """Make one from plain values; unknown keys are refused.

        Parameters
        ----------
        values
            Names of options and what they are.
        where
            What messages begin with.
        code
            Names of methods in code of the user's own, ``"my_file:my_function"``, that may be run.
        own
            What is known of others, which are not run.
        """
        known = [each.name for each in fields(cls)]
        for name in values:
            if name not in known:
                raise InputError(f"{where}unknown key {name!r}; {nearest(name, known)}")
        methods = values.get("methods")
        listed = methods if isinstance(methods, list | tuple) else [methods]
        if strangers := sorted(names_of_code(listed) - {*code, *(own or {})}):
            raise InputError(
                f"{where}methods: {strangers[0]!r} is code, which is not run because a file names it; if you know and "
                f"want it, say so: --code {strangers[0]} (code=)",
                "methods",
            )
        try:
            return cls(**dict(values), own={name: one for name, one in (own or {}).items() if name not in code})
        except InputError as error:
            raise InputError(f"{where}{error}", error.field) from None

    @classmethod
    def load(
        cls,
        path: str | Path,
        changes: Mapping[str, Any] | None = None,
        *,
        code: Collection[str] = (),
        own: Mapping[str, OwnMethod] | None = None,
    ) -> Self:
        """Read a YAML file; `changes` win over what it says. `code` and `own` are those of `from_dict`."""
        return cls.from_dict({**read_yaml(Path(path)), **(changes or {})}, f"{path}: ", code=code, own=own)

    def changed(self, **changes: Any) -> Self:
        """Return the same with other values."""
        return replace(self, own=self.known_code, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def as_yaml(self) -> str:
        """Return it as YAML, which `load` reads."""
        values = self.as_dict()
        text = _dump(values, allow_unicode=True)
        return text if yaml.safe_load(text) == values else _dump(values, allow_unicode=False)  # NEL and its like

    def save(self, path: Path) -> None:
        """Write it as YAML."""
        write_whole(path, lambda part: part.write_text(self.as_yaml(), encoding="utf-8"), force=True)


def _dump(values: dict[str, Any], *, allow_unicode: bool) -> str:
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=allow_unicode, default_flow_style=None)
    return text


def _several(name: str, values: Any) -> tuple[Any, ...]:
    """Take one value for a list of one."""
    found = tuple(values) if isinstance(values, list | tuple) else () if values is None else (values,)
    if not found:
        raise InputError(f"{name}: is empty; name at least one", name)
    return found


def _refuse_twice(name: str, values: Sequence[object], advice: str = "") -> None:
    for value in values:
        if values.count(value) > 1:
            raise InputError(f"{name}: {value!r} is there twice{advice}", name)


def _plain(name: str, value: Any) -> Any:
    """Return the same as lists, mappings, texts and numbers, which a file can hold."""
    try:
        plain = json.loads(to_json(value))
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{name}: may hold texts, numbers, lists and mappings only, not {value!r}", name) from None
    return tuple(plain) if isinstance(value, tuple) else plain


def _check_whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name}: must be a whole number of at least {least}, not {value!r}", name)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping from a YAML file."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not readable as YAML ({' '.join(str(error).split())})") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no names and values, such as `dataset: digits`")
    return content


_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Read a duration such as ``"2h"``, ``"90min"``, ``"1h30m"`` or plain seconds.

    >>> parse_duration("1h30m"), parse_duration("45")
    (5400.0, 45.0)
    """
    word = text.strip().lower().replace(" ", "")
    word = f"{word}s" if re.fullmatch(r"\d+(\.\d+)?", word) else word
    parts = re.findall(r"(\d+(?:\.\d+)?)(min|s|m|h|d)", word)
    if not parts or "".join(number + unit for number, unit in parts) != word:
        raise InputError(f"cannot read {text!r} as a duration; write it like 2h, 90min or 1h30m")
    seconds = math.fsum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds <= 0:
        raise InputError("a time budget must be above 0")
    return seconds
