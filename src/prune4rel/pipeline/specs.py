"""A method with its options, as one entry of a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from prune4rel.errors import InputError, nearest
from prune4rel.methods import get

KEYS = ("method", "options", "balanced", "label")


@dataclass(frozen=True)
class MethodSpec:
    """Which method, with which options, and what to call it.

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
                raise InputError(f"methods: unknown key {key!r}; {nearest(str(key), KEYS)}", "methods")
        method = get(str(value["method"]))
        options = dict(value.get("options") or {})
        for option in options:
            if option not in method.options:
                raise InputError(
                    f"method {method.name!r} has no option {option!r}; {nearest(option, method.options)}", "methods"
                )
        default = method.name
        if options:
            rest = [f"{name}={setting}" for name, setting in options.items() if name != "preset"]
            default += f" ({', '.join([*([str(options['preset'])] if 'preset' in options else []), *rest])})"
        evenly = bool(value.get("balanced", balanced)) and method.balances
        return cls(str(value["method"]), options, evenly, str(value.get("label") or default))

    @property
    def needs(self) -> tuple[str, ...]:
        """Signals beyond labels, probabilities, embeddings and losses that a warm-up has to provide for it."""
        usual = {"labels", "probabilities", "embeddings", "losses"}
        found = []
        for need in get(self.method).needs:
            names = need.split("|")
            if not usual & set(names):
                found.append(names[0])
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """Return what decides its picks."""
        return {"method": self.method, "options": self.options, "balanced": self.balanced}
