"""How options are declared: once, as fields that are keys of a configuration and flags of commands."""

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import Field, dataclass, field, fields, replace
from types import NoneType
from typing import Any, Self, get_args, get_origin

from prune4rel.errors import InputError


def option(
    default: Any,
    about: str,
    *,
    flag: str = "",
    panel: str = "",
    least: int | None = None,
    most: int = 2**63 - 1,
    metavar: str = "",
) -> Any:
    """Declare an option, as a field of a class of options.

    Parameters
    ----------
    default
        What holds unless told.
    about
        What it is, for users: shown by ``--help``.
    flag
        The command line's name of it, where it is another one, or several with commas between; ``"--on/--off"`` where
        it can be turned off.
    panel
        The heading under which ``--help`` shows it.
    least, most
        What it may be, where it is a whole number.
    metavar
        What ``--help`` calls its value, where that is not the name of its type.
    """
    known = {"about": about, "flag": flag, "panel": panel, "least": least, "most": most, "metavar": metavar}
    return field(default_factory=dict, metadata=known) if default == {} else field(default=default, metadata=known)


@dataclass(frozen=True)
class Options:
    """Some options, checked by their types: keys of one flat mapping, however many classes share them.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Oven(Options):
    ...     heat: int = option(180, "Degrees.", least=20)
    >>> Oven(heat=10)
    Traceback (most recent call last):
    prune4rel.errors.InputError: heat: must be a whole number of at least 20, not 10
    >>> Oven(heat=200).as_dict()
    {'heat': 200}
    """

    def __post_init__(self) -> None:
        for each in declared(self):
            if getattr(self, each.name) is each.default:
                continue  # still the very one, so that it can be told that nobody asked for it
            object.__setattr__(self, each.name, _checked(each, getattr(self, each.name)))

    def changed(self, **changes: Any) -> Self:
        """Return the same with other values."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return them as a JSON value."""
        values = {each.name: getattr(self, each.name) for each in declared(self)}
        return {name: list(value) if isinstance(value, tuple) else deepcopy(value) for name, value in values.items()}


def declared(options: Options | type[Options]) -> "list[Field[Any]]":
    """Return the fields that are options."""
    return [each for each in fields(options) if "about" in each.metadata]


def _checked(each: "Field[Any]", value: Any) -> Any:
    """Return a value as its field holds it, or refuse it."""
    name, kinds = each.name, get_args(each.type) if NoneType in get_args(each.type) else (each.type,)
    if value is None and NoneType in kinds:
        return None
    kind = kinds[0]
    if get_origin(kind) is tuple:
        return () if not value and each.default == () else _plain(name, _several(name, value))
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise InputError(f"{name}: must be a mapping of names to values, not {value!r}", name)
        return _plain(name, value)
    if kind is int:
        _check_whole(name, value, each.metadata["least"], each.metadata["most"])
    elif not isinstance(value, kind):
        raise InputError(f"{name}: must be {'true or false' if kind is bool else 'a text'}, not {value!r}", name)
    return value


def _several(name: str, values: Any) -> tuple[Any, ...]:
    """Take one value for a list of one."""
    found = tuple(values) if isinstance(values, list | tuple) else () if values is None else (values,)
    if not found:
        raise InputError(f"{name}: is empty; name at least one", name)
    return found


def _plain(name: str, value: Any) -> Any:
    """Return the same as lists, mappings, texts and numbers, which a file can hold."""
    from prune4rel.storage import to_json

    try:
        plain = json.loads(to_json(value))
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{name}: may hold texts, numbers, lists and mappings only, not {value!r}", name) from None
    return tuple(plain) if isinstance(value, tuple) else plain


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, int) and value > most:
        raise InputError(f"{name}: must be a whole number of at most {most}, not {value}", name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name}: must be a whole number of at least {least}, not {value!r}", name)


def refuse_twice(name: str, values: Sequence[object], advice: str = "") -> None:
    """Refuse a list that names something more than once."""
    for value in values:
        if values.count(value) > 1:
            raise InputError(f"{name}: {value!r} is there twice{advice}", name)
