"""A method with its options, as one entry of a comparison."""

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from prune4rel.errors import InputError, nearest, refuse_unknown
from prune4rel.methods import Method, get

KEYS = ("method", "options", "balanced", "label", "learners")
USUAL = {"labels", "probabilities", "embeddings", "losses"}
"""Signals that every warm-up provides."""

EVERYTHING = "everything"
"""What a training on the whole set is called."""


@dataclass(frozen=True)
class MethodSpec:
    """Which method, with which options, what to call it, and which learners are trained on its picks (all unless told).

    Examples
    --------
    >>> MethodSpec.read("prune4rel/official", balanced=True).options
    {'preset': 'official'}
    >>> MethodSpec.read({"method": "prune4rel", "options": {"tau": 0.9}, "label": "ours"}, balanced=False).label
    'ours'
    """

    method: str
    options: dict[str, Any]
    balanced: bool
    label: str
    learners: tuple[str, ...] = ()

    @classmethod
    def read(cls, value: str | Mapping[str, Any], *, balanced: bool) -> Self:
        """Read ``"NAME"``, ``"NAME/PRESET"`` or a mapping; `balanced` is what holds unless it says so itself."""
        if isinstance(value, str):
            name, slash, preset = value.partition("/")
            value = {"method": name, "options": {"preset": preset} if slash else {}}
        if not isinstance(value, Mapping) or "method" not in value:
            raise InputError(
                f"methods: each is a name, NAME/PRESET, or a mapping with 'method', not {value!r}", "methods"
            )
        for key in value:
            if key not in KEYS:
                raise InputError(f"methods: unknown key {key!r}; {nearest(key, KEYS)}", "methods")
        method = get(value["method"])
        evenly = value.get("balanced", balanced)
        if not isinstance(evenly, bool):
            raise InputError(f"methods: balanced must be true or false, not {evenly!r}", "methods")
        options = _check_options(method, value.get("options"))
        label = str(value.get("label") or _label(method.name, options))
        if label == EVERYTHING:
            raise InputError(f"methods: {label!r} means training on the whole set; choose another label", "methods")
        return cls(value["method"], options, evenly and method.balances, label, _names(value.get("learners")))

    @property
    def learns(self) -> bool:
        """Whether its picks depend on a warm-up at all."""
        return any(need != "labels" for need in get(self.method).needs)

    @property
    def needs(self) -> tuple[str, ...]:
        """Signals beyond the usual ones that a warm-up has to provide for it."""
        wanted = (need.split("|") for need in get(self.method).needs)
        return tuple(names[0] for names in wanted if not USUAL & set(names))

    def as_dict(self) -> dict[str, Any]:
        """Return what decides its picks; for a method in a file of the user's own, also what is in that file."""
        known = {"method": self.method, "options": self.options, "balanced": self.balanced}
        return known | ({"code": _code_of(get(self.method))} if ":" in self.method else {})


def _names(given: Any) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else given
    if names is None:
        return ()
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(f"methods: learners must be a list of names, not {given!r}", "methods")
    return names


def _label(name: str, options: Mapping[str, Any]) -> str:
    words = [str(value) if option == "preset" else f"{option}={value}" for option, value in options.items()]
    return f"{name} ({', '.join(words)})" if words else name


def _check_options(method: Method, given: Any) -> dict[str, Any]:
    """Refuse unknown options, and values of options that only take certain ones, before a warm-up was made for them."""
    options = {} if given is None else given
    if not isinstance(options, Mapping):
        raise InputError(f"methods: options of {method.name!r} must be names and values, not {options!r}", "methods")
    refuse_unknown(f"method {method.name!r}", options, method.options, "methods")
    choices = _choices_of(method)
    for name, value in options.items():
        known = choices.get(name)
        if known is not None and (value is None or value not in known):
            raise InputError(f"method {method.name!r}: unknown {name} {value!r}; {nearest(value, known)}", "methods")
    return dict(options)


def _choices_of(method: Method) -> dict[str, list[str]]:
    """Return which words an option takes, of options that take nothing else."""
    try:
        hints = get_type_hints(method.run)
    except (NameError, TypeError):  # a user's own function may be annotated in any way
        return {}
    found = {}
    for name, hint in hints.items():
        parts = [hint] if get_origin(hint) is Literal else [part for part in get_args(hint) if part is not NoneType]
        if parts and all(get_origin(part) is Literal for part in parts):
            found[name] = [word for part in parts for word in get_args(part)]
    return found


def _code_of(method: Method) -> str:
    """Return a fingerprint of the file a method is in."""
    try:
        return hashlib.sha256(Path(inspect.getfile(method.run)).read_bytes()).hexdigest()
    except (OSError, TypeError):
        return ""
