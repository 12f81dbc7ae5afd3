"""What went wrong, in words a user can act on."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

MOST_SAID = 4_000
"""Letters of a message."""


class InputError(ValueError):
    """Something the user gave cannot be used; the message says what, where and what to do.

    Parameters
    ----------
    message
        The whole message, without the name of the file.
    field
        Which input it is about (``"embeddings"``, ...), so that a command line can name the file.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        message = message if message.isprintable() else _printable(message)
        if len(message) > MOST_SAID:  # what somebody wrote into a file can be any length; the remedy is at the end
            message = f"{message[: MOST_SAID // 2]} ... {message[-MOST_SAID // 2 :]}"
        super().__init__(message)
        self.field = field


def in_a_line(words: object, most: int = 500) -> str:
    r"""Write anything in one line that can be printed anywhere: no control characters, no bytes that are no text.

    >>> in_a_line("a\x1b[2J\nb"), in_a_line("caf\udce9.png")
    ('a\\x1b[2J b', 'caf\\xe9.png')
    """
    text = " ".join(str(words).split()) if not hasattr(words, "__fspath__") else str(words)
    text = text if len(text) <= most else f"{text[: most - 3]}..."
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _printable(message: str) -> str:
    """Write what no terminal should be sent as escapes; lines stay lines."""
    return "".join(each if each.isprintable() or each == "\n" else _escaped(each) for each in message)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return (
        f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else letter.encode("unicode_escape", "replace").decode()
    )


def nearest(name: object, known: Iterable[str]) -> str:
    """Words that point from an unknown name, or from what is no name at all, to the known ones.

    >>> nearest("prune4real", ["prune4rel", "uniform"])
    "did you mean 'prune4rel'? Known: prune4rel, uniform"
    """
    names = list(known)
    if not names:
        return "there are none"
    close = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known: {', '.join(names)}"


def refuse_unknown(owner: str, given: Iterable[str], known: Collection[str], field: str | None = None) -> None:
    """Refuse options that their owner does not have.

    >>> refuse_unknown("the oven", {"heet": 180}, ["heat", "minutes"])
    Traceback (most recent call last):
    prune4rel.errors.InputError: the oven has no option 'heet'; did you mean 'heat'? Known: heat, minutes
    """
    for name in given:
        if name not in known:
            raise InputError(f"{owner} has no option {name!r}; {nearest(name, known)}", field)
