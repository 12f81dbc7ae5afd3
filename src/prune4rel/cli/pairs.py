"""Options given as NAME=VALUE."""

import json
from collections.abc import Collection, Iterable
from typing import Any

from prune4rel.errors import InputError, refuse_unknown


def read_pairs(items: Iterable[str] | None, flag: str) -> dict[str, str]:
    """Split NAME=VALUE into names and texts; hyphens in names become underscores.

    >>> read_pairs(["noise=worst", "test-share=0.2"], "--option")
    {'noise': 'worst', 'test_share': '0.2'}
    """
    pairs = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InputError(f"{flag} takes NAME=VALUE, not {item!r}")
        pairs[name.replace("-", "_")] = value
    return pairs


def check_names(owner: str, given: Iterable[str], known: Collection[str], *, flags: Collection[str]) -> None:
    """Refuse options that their owner does not have, and say so where one is a flag of commands.

    >>> check_names("training", ["seed"], ["lr", "batch"], flags=["seed"])
    Traceback (most recent call last):
    prune4rel.errors.InputError: training has no option 'seed'; commands that take it have a flag for it: --seed
    """
    for name in given:
        if name not in known and name in flags:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{owner} has no option {name!r}; commands that take it have a flag for it: {flag}")
    refuse_unknown(owner, given, known)


def read_value(text: str) -> Any:
    """Read a number, true or false where the text looks like one, else the text itself.

    >>> read_value("0.2"), read_value("false"), read_value("worst")
    (0.2, False, 'worst')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        raise InputError(f"{text[:20]}...: is nested too deeply") from None


def read_values(items: Iterable[str] | None, flag: str) -> dict[str, Any]:
    """Read NAME=VALUE pairs with values of their types.

    >>> read_values(["noise=worst", "test-share=0.2"], "--option")
    {'noise': 'worst', 'test_share': 0.2}
    """
    return {name: read_value(text) for name, text in read_pairs(items, flag).items()}
