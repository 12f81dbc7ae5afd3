"""Numbers and names as people read them, and how wide they are."""

import math
import unicodedata

ISOLATE, RELEASE = "\u2068", "\u2069"
DASH = "\u2013"
MISSING = "\u2014"
ELLIPSIS = "\u2026"
NARROW = "fijlrtI.,:;|!'()[]1 "


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share of one.

    >>> percent(0.8604), percent(0.2, 0), percent(None)
    ('86.0%', '20%', '—')
    """
    return MISSING if share is None else f"{100 * share:.{digits}f}%"


def ratio(share: float) -> str:
    """Write a share with as many digits as it needs.

    >>> ratio(0.2), ratio(0.125), ratio(0.01)
    ('20%', '12.5%', '1%')
    """
    return f"{100 * share:.4g}%"


def plus_minus(mean: float | None, spread: float | None, digits: int = 1) -> str:
    r"""Write a mean share and its spread, in per cent.

    >>> plus_minus(0.861, 0.0042), plus_minus(0.861, None)
    ('86.1\xa0±\xa00.4', '86.1')
    """
    if mean is None:
        return MISSING
    text = f"{100 * mean:.{digits}f}"
    return text if spread is None else f"{text}\u00a0±\u00a0{100 * spread:.{digits}f}"


def count(number: float) -> str:
    """Write a whole number with its thousands apart.

    >>> count(50_000)
    '50,000'
    """
    return f"{number:,.0f}"


def short(number: float) -> str:
    """Write a number for the end of an axis.

    >>> short(12_500), short(0.05), short(1e-7), short(0), short(40000)
    ('12.5k', '0.05', '1e-7', '0', '40k')
    """
    size = abs(number)
    if size >= 1e9 or 0 < size < 1e-3:
        mantissa, exponent = f"{number:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if size >= unit:
            return f"{number / unit:.4g}{name}"
    return f"{number:.4g}"


def plural(number: int, word: str) -> str:
    """Write how many of something.

    >>> plural(1, "seed"), plural(3, "class")
    ('1 seed', '3 classes')
    """
    ending = "es" if word.endswith("s") else "s"
    return f"{count(number)} {word}" + ("" if number == 1 else ending)


def listed(words: list[str], last: str = "and") -> str:
    """Join words as a sentence does.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def plain(text: str) -> str:
    r"""Make control characters visible, and turn line breaks into spaces.

    >>> plain("a\nb\x00c")
    'a b\ufffdc'
    """
    return "".join(
        letter if unicodedata.category(letter) not in {"Cc", "Cs"} else " " if letter in "\n\r\t" else "\ufffd"
        for letter in text
    )


def isolate(text: str) -> str:
    """Keep right-to-left text, and marks that never end, from turning the words around it."""
    return f"{ISOLATE}{plain(text)}{RELEASE}"


def text_width(text: str, size: float) -> float:
    """Guess how wide a text is, in the unit of `size`, its height."""
    return size * sum(_letter_width(letter) for letter in text)


def shorten(text: str, width: float, size: float) -> str:
    """Cut a text that would be wider than `width`.

    >>> shorten("a rather long name", 60, 10)
    'a rather lo…'
    """
    text = plain(text)
    if text_width(text, size) <= width:
        return text
    used = text_width(ELLIPSIS, size)
    for place, letter in enumerate(text):
        used += size * _letter_width(letter)
        if used > width:
            return text[:place].rstrip() + ELLIPSIS
    return text


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter) or unicodedata.category(letter) in {"Cf", "Mn"}:
        return 0.0
    if unicodedata.east_asian_width(letter) in {"W", "F"}:
        return 1.05
    if letter in NARROW:
        return 0.36
    if letter in "mwMW%@<>=+~#&":
        return 0.92
    return 0.7 if letter.isupper() else 0.61


def nice_step(span: float, most: int) -> float:
    """Return the smallest of 1, 2, 2.5 and 5 times a power of ten that cuts `span` into at most `most` pieces.

    >>> nice_step(1.0, 5), nice_step(0.3, 5), nice_step(7, 4)
    (0.2, 0.1, 2.0)
    """
    power: float = 10.0 ** math.floor(math.log10(span / most))
    for multiple in (1.0, 2.0, 2.5, 5.0, 10.0):
        step = multiple * power
        if span / step <= most * (1 + 1e-9):
            return float(f"{step:.6g}")
    raise AssertionError("ten times a power of ten is large enough")
