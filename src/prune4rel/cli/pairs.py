"""Options given as NAME=VALUE."""

import json
from collections.abc import Iterable
from typing import Any

from prune4rel.errors import InputError


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


def read_value(text: str) -> Any:
    """Read a number, true or false where the text looks like one, else the text itself.

    >>> read_value("0.2"), read_value("false"), read_value("worst")
    (0.2, False, 'worst')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text
