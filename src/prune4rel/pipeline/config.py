"""What a run is to do: one plain value, from flags or a YAML file, and back."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from prune4rel.errors import InputError, nearest
from prune4rel.reading import MOST_YAML, parse_yaml, read_text
from prune4rel.steps import StepOptions
from prune4rel.steps.options import declared
from prune4rel.steps.select import OwnMethod, names_of_code
from prune4rel.storage import write_text


@dataclass(frozen=True)
class Config(StepOptions):
    """All options of a run, which are also the keys of its YAML file; what is left out comes from presets.

    Every kind of step declares its own, with what they are: `steps.data`, `steps.model`, `steps.warm_up`,
    `steps.select`, `steps.train`.

    Examples
    --------
    >>> config = Config.from_dict({"dataset": "digits", "methods": ["uniform", "prune4rel/coverage"]})
    >>> [spec.label for spec in config.specs]
    ['uniform', 'prune4rel (coverage)']
    >>> Config.from_dict({"metods": []})
    Traceback (most recent call last):
    prune4rel.errors.InputError: unknown key 'metods'; did you mean 'methods'? Known: ...
    """

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
        known = [each.name for each in declared(cls)]
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

    def as_yaml(self) -> str:
        """Return it as YAML, which `load` reads."""
        values = self.as_dict()
        text = _dump(values, allow_unicode=True)
        return text if parse_yaml(text, "itself") == values else _dump(values, allow_unicode=False)  # NEL etc.

    def save(self, path: Path) -> None:
        """Write it as YAML."""
        write_text(path, self.as_yaml(), force=True)


def _dump(values: dict[str, Any], *, allow_unicode: bool) -> str:
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=allow_unicode, default_flow_style=None)
    return text


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping from a YAML file."""
    content = parse_yaml(read_text(path, "YAML", MOST_YAML), str(path))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no names and values, such as `dataset: digits`")
    for name in content:
        if not isinstance(name, str):
            raise InputError(f"{path}: {name!r} is no name of an option; write names of options before the colons")
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
