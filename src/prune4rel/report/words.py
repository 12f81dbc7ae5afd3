"""Numbers and names as people read them; colours that stay apart."""

import math
import unicodedata
from collections.abc import Iterable, Sequence

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
    if text.isprintable():
        return text
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


PAPER = {"light": "#fdfcfa", "dark": "#15171b"}
INK = {"light": "#22262b", "dark": "#e9e6e0"}
MUTED = {"light": "#5f666e", "dark": "#a2a8b0"}
RULE = {"light": "#e4e1da", "dark": "#30343b"}
WASH = {"light": "#f4f2ed", "dark": "#1d2025"}

SERIES: dict[str, tuple[str, ...]] = {
    "light": ("#0a66b0", "#b84a00", "#00775f", "#9c4a87", "#826400", "#2a7690", "#b0304a", "#5b6470"),
    "dark": ("#62b4f5", "#ff9d57", "#45c9a8", "#e59bcb", "#e3bf4c", "#86cfe6", "#ff8f9f", "#a9b0b9"),
}
"""The same eight in two tempers: blue, vermilion, green, purple, ochre, teal, red, and slate for base lines."""

BASELINE = 7
SHADES = 20
MARKERS = ("circle", "square", "triangle", "diamond", "cross")

FAVOURITE = "prune4rel"
BASELINES = ("uniform", "all examples")

Symbol = tuple[int, str]
"""Number of a colour in `SERIES`, and a marker."""


def symbols_of(labels: Iterable[str]) -> dict[str, Symbol]:
    """Give every method its colour and marker: the package's own come first, base lines are slate.

    >>> symbols_of(["uniform", "small-loss", "prune4rel"])
    {'uniform': (7, 'circle'), 'small-loss': (1, 'square'), 'prune4rel': (0, 'circle')}
    """
    names = list(dict.fromkeys(labels))
    base = [name for name in names if name in BASELINES]
    own = [name for name in names if name.startswith(FAVOURITE)]
    rest = [name for name in names if name not in base and name not in own]
    symbols = {
        name: (place % BASELINE, MARKERS[(place + place // BASELINE) % len(MARKERS)])
        for place, name in enumerate(own + rest)
    }
    symbols |= {name: (BASELINE, MARKERS[place % len(MARKERS)]) for place, name in enumerate(base)}
    return {name: symbols[name] for name in names}


def shade(share: float, mode: str = "light", *, tint: int = 0) -> str:
    """Mix paper and a colour: 0 is paper, 1 the colour.

    >>> shade(0.0), shade(1.0)
    ('#fdfcfa', '#0a66b0')
    """
    one, other = _channels(PAPER[mode]), _channels(SERIES[mode][tint])
    mixed = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG defines it, 1 to 21.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def variables(mode: str) -> Sequence[tuple[str, str]]:
    """Return the CSS variables of a mode, name and value."""
    plain = (("paper", PAPER), ("ink", INK), ("muted", MUTED), ("rule", RULE), ("wash", WASH))
    return [(f"--{name}", table[mode]) for name, table in plain] + [
        (f"--c{place}", colour) for place, colour in enumerate(SERIES[mode])
    ]


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
