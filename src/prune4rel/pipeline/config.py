"""What a run is to do: one plain value, from flags or a YAML file, and back."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

import yaml

from prune4rel.errors import InputError, nearest
from prune4rel.pipeline.specs import MethodSpec
from prune4rel.storage import write_whole

MAPPINGS = ("options", "network_options", "learner_options", "training", "look")
FLAGS = ("balanced", "everything", "skip_broken")


@dataclass(frozen=True)
class Config:
    """All options of a run; also the keys of its YAML file.

    Parameters
    ----------
    dataset, data, options, labels
        Name of the data set, where it lies, its options, and a file with other labels.
    methods
        What to compare: ``"uniform"``, ``"prune4rel/coverage"`` (a preset), or mappings with `method`, `options`,
        `balanced` and `label`.
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
    warmup_epochs, view, views, repeats
        Of the warm-up.
    network, network_options, learner_options, epochs, training, look
        Of the trainings; what is left out comes from the preset of the data set. `learner_options` goes by learner.
    everything
        Train on the whole training set, too, to compare with.
    device, parallel
        Where, and how many trainings at a time.
    skip_broken
        Go on without image files that cannot be read.
    title
        What the report is headed.

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
    network: str | None = None
    network_options: dict[str, Any] = field(default_factory=dict)
    learner_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    epochs: int | None = None
    training: dict[str, Any] = field(default_factory=dict)
    look: dict[str, Any] = field(default_factory=dict)
    everything: bool = False
    device: str = "auto"
    parallel: int = 1
    skip_broken: bool = False
    title: str | None = None

    def __post_init__(self) -> None:
        for name in ("methods", "ratios", "learners"):
            object.__setattr__(self, name, _several(name, getattr(self, name)))
        for ratio in self.ratios:
            if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0 < ratio <= 1:
                raise InputError(f"ratios: each must be above 0 and at most 1, not {ratio!r}", "ratios")
        for name, least in (("seeds", 1), ("seed", 0), ("views", 1), ("repeats", 1), ("parallel", 1)):
            _check_whole(name, getattr(self, name), least)
        for names, kind, words in ((MAPPINGS, dict, "a mapping of names to values"), (FLAGS, bool, "true or false")):
            for name in names:
                if not isinstance(getattr(self, name), kind):
                    raise InputError(f"{name}: must be {words}, not {getattr(self, name)!r}", name)
        self.specs  # noqa: B018 - refuses what cannot be a method

    @property
    def specs(self) -> tuple[MethodSpec, ...]:
        """The methods, resolved; each only once."""
        found = tuple(MethodSpec.read(method, balanced=self.balanced) for method in self.methods)
        labels = [spec.label for spec in found]
        if twice := {label for label in labels if labels.count(label) > 1}:
            raise InputError(f"methods: {twice.pop()!r} is there twice; give one of them another label", "methods")
        return found

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "") -> Self:
        """Make one from plain values; unknown keys are refused."""
        known = [each.name for each in fields(cls)]
        for name in values:
            if name not in known:
                raise InputError(f"{where}unknown key {name!r}; {nearest(str(name), known)}")
        try:
            return cls(**dict(values))
        except InputError as error:
            raise InputError(f"{where}{error}", error.field) from None

    @classmethod
    def load(cls, path: str | Path, changes: Mapping[str, Any] | None = None) -> Self:
        """Read a YAML file; `changes` win over what it says."""
        return cls.from_dict({**read_yaml(Path(path)), **(changes or {})}, f"{path}: ")

    def changed(self, **changes: Any) -> Self:
        """Return the same with other values."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def as_yaml(self) -> str:
        """Return it as YAML, which `load` reads."""
        text: str = yaml.safe_dump(self.as_dict(), sort_keys=False, allow_unicode=True, default_flow_style=None)
        return text

    def save(self, path: Path) -> None:
        """Write it as YAML."""
        write_whole(path, lambda part: part.write_text(self.as_yaml(), encoding="utf-8"), force=True)


def _several(name: str, values: Any) -> tuple[Any, ...]:
    """Take one value for a list of one."""
    found = (values,) if isinstance(values, str | int | float | dict) else tuple(values or ())
    if not found:
        raise InputError(f"{name}: is empty; name at least one", name)
    return found


def _check_whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name}: must be a whole number of at least {least}, not {value!r}", name)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping from a YAML file."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not readable as YAML ({' '.join(str(error).split())})") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds {type(content).__name__}; expected names and values")
    return content


_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Read a duration such as ``"2h"``, ``"90min"``, ``"1h30m"`` or plain seconds.

    >>> parse_duration("1h30m"), parse_duration("45")
    (5400.0, 45.0)
    """
    word = text.strip().lower().replace(" ", "")
    if re.fullmatch(r"\d+(\.\d*)?", word):
        return float(word)
    parts = re.findall(r"(\d+(?:\.\d+)?)(min|s|m|h|d)", word)
    if not parts or "".join(number + unit for number, unit in parts) != word:
        raise InputError(f"cannot read {text!r} as a duration; write it like 2h, 90min or 1h30m")
    seconds = math.fsum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds <= 0:
        raise InputError("a time budget must be above 0")
    return seconds
