"""A drawing as plain marks. They are written as SVG for the page, and painted on paper from the same marks."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prune4rel.report.words import plain

Place = tuple[float, float]


@dataclass(frozen=True)
class Style:
    """How marks of a kind look. Colours go by name; ``tint`` is the mark's own, such as ``c3`` in ``"line c3"``."""

    fill: str = "none"
    stroke: str = "none"
    width: float = 1.0
    dash: tuple[float, float] | None = None
    opacity: float = 1.0
    size: float = 13.0
    bold: bool = False
    italic: bool = False


STYLES = {
    "grid": Style(stroke="rule"),
    "reference": Style(stroke="muted", width=1.2, dash=(2, 4)),
    "line": Style(stroke="tint", width=2),
    "dashed": Style(stroke="tint", width=1.6, dash=(5, 5)),
    "whisker": Style(stroke="tint", width=1.6, opacity=0.75),
    "mark": Style(fill="tint", stroke="paper", width=1.2),
    "touch": Style(fill="transparent"),
    "link": Style(stroke="rule", width=3),
    "bar": Style(fill="tint", stroke="paper", width=1),
    "same": Style(fill="wash"),
    "shade": Style(fill="tint"),
    "haze": Style(fill="muted", opacity=0.35),
    "dot": Style(fill="tint"),
    "ring": Style(stroke="tint", width=0.7),
    "key": Style(fill="ink"),
    "cell": Style(fill="ink"),
    "onto": Style(fill="paper"),
    "quiet": Style(fill="muted"),
    "tick": Style(fill="muted", size=12),
    "axis": Style(fill="muted", size=12),
    "note": Style(fill="muted", size=12, italic=True),
    "name": Style(fill="tint", bold=True),
    "title": Style(fill="ink", size=14.5, bold=True),
}


@dataclass(frozen=True)
class Path:
    """Places joined by lines; `closed` ones are areas. `kind` begins with one of `STYLES`."""

    places: Sequence[Place]
    kind: str
    tip: str = ""
    closed: bool = False


@dataclass(frozen=True)
class Disc:
    """A circle."""

    x: float
    y: float
    radius: float
    kind: str
    tip: str = ""


@dataclass(frozen=True)
class Box:
    """A rectangle; `x` and `y` are those of its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    tip: str = ""
    corner: float | None = None


@dataclass(frozen=True)
class Text:
    """Words on a base line, `turned` ones upwards. `whole` is said on pointing, `size` is the style's unless given."""

    x: float
    y: float
    words: str
    kind: str
    whole: str = ""
    anchor: str = "start"
    size: float | None = None
    turned: bool = False


@dataclass(frozen=True, eq=False)
class Cloud:
    """Many circles of one size at (k, 2) places."""

    places: NDArray[np.float64]
    radius: float
    kind: str


@dataclass(frozen=True, eq=False)
class Picture:
    """(h, w, 3) uint8 pixels in a square with sides of length `side`."""

    x: float
    y: float
    side: float
    pixels: NDArray[np.uint8]


Mark = Path | Disc | Box | Text | Cloud | Picture


@dataclass(frozen=True, eq=False)
class Scene:
    """Marks, and the size of the sheet they lie on; y grows downwards."""

    marks: Sequence[Mark]
    width: float
    height: float


class Markup(str):
    """Text that is markup already; templates and `element` take it as it is."""

    __slots__ = ()

    def __html__(self) -> Self:
        return self


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """Make an element. Plain text is escaped, `Markup` is not; ``_`` in attribute names stands for ``-``.

    >>> element("text", "a < b", x=1.5, text_anchor="end", class_="tick")
    '<text x="1.5" text-anchor="end" class="tick">a &lt; b</text>'
    """
    told = "".join(
        f' {name.strip("_").replace("_", "-")}="{escape(_written(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else escape(plain(child)) for child in children)
    return Markup(f"<{tag}{told}>{inside}</{tag}>" if inside else f"<{tag}{told}/>")


def _written(value: str | float) -> str:
    if isinstance(value, str):
        return plain(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def svg(scene: Scene, about: str) -> Markup:
    """Write a scene as a picture that scales; `about` is read out to those who cannot see it."""
    return element(
        "svg",
        *(svg_mark(mark) for mark in scene.marks),
        viewBox=f"0 0 {_written(scene.width)} {_written(scene.height)}",
        role="img",
        aria_label=about,
        width=scene.width,
        height=scene.height,
    )


def svg_mark(mark: Mark) -> Markup:
    """Write one mark.

    >>> svg_mark(Disc(1.0, 2.0, 3.0, "mark c0", tip="here"))
    '<circle cx="1" cy="2" r="3" class="mark c0"><title>here</title></circle>'
    """
    match mark:
        case Path():
            return _svg_path(mark)
        case Disc():
            return element("circle", *_title(mark.tip), cx=mark.x, cy=mark.y, r=mark.radius, class_=mark.kind)
        case Box(x, y, width, height):
            where: dict[str, Any] = {"x": x, "y": y, "width": width, "height": height, "rx": mark.corner}
            return element("rect", *_title(mark.tip), **where, class_=mark.kind)
        case Text():
            return _svg_text(mark)
        case Cloud():
            discs = (element("circle", cx=float(x), cy=float(y), r=mark.radius) for x, y in mark.places)
            return element("g", *discs, class_=mark.kind)
        case Picture(x, y, side):
            from prune4rel.report.pictures import picture_uri  # noqa: PLC0415 - only for pictures

            return element("image", href=picture_uri(mark.pixels), x=x, y=y, width=side, height=side)


def _svg_path(mark: Path) -> Markup:
    if len(mark.places) == 2:
        (x1, y1), (x2, y2) = mark.places
        return element("line", *_title(mark.tip), x1=x1, y1=y1, x2=x2, y2=y2, class_=mark.kind)
    corners = "L".join(f"{_written(x)},{_written(y)}" for x, y in mark.places)
    return element("path", *_title(mark.tip), d=f"M{corners}{'Z' if mark.closed else ''}", class_=mark.kind)


def _svg_text(mark: Text) -> Markup:
    at: dict[str, Any] = {"x": mark.x, "y": mark.y}
    if mark.turned:
        at = {"transform": f"translate({mark.x:.1f} {mark.y:.1f}) rotate(-90)"}
    return element(
        "text",
        mark.words,
        *_title(mark.whole),
        **at,
        text_anchor=None if mark.anchor == "start" else mark.anchor,
        class_=mark.kind,
        style=None if mark.size is None else f"font-size:{mark.size:.1f}px",
    )


def _title(tip: str) -> list[Markup]:
    return [element("title", tip)] if tip else []
