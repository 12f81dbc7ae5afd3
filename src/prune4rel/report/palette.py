"""Colours that stay apart for colour-blind eyes, on light paper and on dark, on the page and in print."""

from collections.abc import Iterable, Sequence

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

Look = tuple[int, str]
"""Number of a colour in `SERIES`, and a marker."""


def looks_of(labels: Iterable[str]) -> dict[str, Look]:
    """Give every method its colour and marker: the package's own come first, base lines are slate.

    >>> looks_of(["uniform", "small-loss", "prune4rel"])
    {'uniform': (7, 'circle'), 'small-loss': (1, 'square'), 'prune4rel': (0, 'circle')}
    """
    names = list(dict.fromkeys(labels))
    base = [name for name in names if name in BASELINES]
    own = [name for name in names if name.startswith(FAVOURITE)]
    rest = [name for name in names if name not in base and name not in own]
    looks = {name: (place % BASELINE, _marker(place)) for place, name in enumerate(own + rest)}
    looks |= {name: (BASELINE, MARKERS[place % len(MARKERS)]) for place, name in enumerate(base)}
    return {name: looks[name] for name in names}


def _marker(place: int) -> str:
    return MARKERS[(place + place // BASELINE) % len(MARKERS)]


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
