"""The small parts of charts: markers, whiskers, legends, axes."""

import math
from collections.abc import Sequence

from prune4rel.report.charts import Axis, Point, Reference
from prune4rel.report.draw.markup import Markup, element, group
from prune4rel.report.palette import Look
from prune4rel.report.words import shorten, text_width

SIZE = 13.0
SMALL = 12.0
LINE = 18.0
RADIUS = 4.0
SWATCH = 20.0
GAP = 18.0


def marker(look: Look, x: float, y: float, tip: str = "", radius: float = RADIUS) -> Markup:
    """Draw a marker with what to say about it."""
    colour, shape = look
    inside = [element("title", tip)] if tip else []
    kind = f"mark c{colour}"
    if shape == "circle":
        return element("circle", *inside, cx=x, cy=y, r=radius, class_=kind)
    return element("path", *inside, d=_outline(shape, x, y, radius), class_=kind)


def _outline(shape: str, x: float, y: float, radius: float) -> str:
    if shape == "cross":
        arm, half = 1.25 * radius, 0.42 * radius
        corners = [
            (half, half), (half, arm), (-half, arm), (-half, half), (-arm, half), (-arm, -half),
            (-half, -half), (-half, -arm), (half, -arm), (half, -half), (arm, -half), (arm, half),
        ]  # fmt: skip
    else:
        sides, turn, size = {"square": (4, 0.25, 1.25), "diamond": (4, 0.0, 1.35), "triangle": (3, 0.25, 1.35)}[shape]
        steps = [2 * math.pi * (side / sides + (turn if sides == 3 else turn / 2)) for side in range(sides)]
        corners = [(size * radius * math.cos(step), -size * radius * math.sin(step)) for step in steps]
    return "M" + "L".join(f"{x + dx:.2f},{y + dy:.2f}" for dx, dy in corners) + "Z"


def whisker(look: Look, one: tuple[float, float], other: tuple[float, float]) -> Markup:
    """Draw an interval."""
    return element("line", x1=one[0], y1=one[1], x2=other[0], y2=other[1], class_=f"whisker c{look[0]}")


def has_interval(point: Point) -> bool:
    """Tell whether there is an interval to draw."""
    return point.low is not None and point.high is not None and point.high > point.low


def path_through(places: Sequence[tuple[float, float]]) -> str:
    """Return the path that joins some places."""
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places)


def legend(
    keys: Sequence[tuple[str, Look]], width: float, references: Sequence[Reference] = ()
) -> tuple[list[Markup], float]:
    """Draw markers with their names, as many a line as fit; returns them and their height."""
    entries = [*keys, *((reference.label, None) for reference in references)]
    if not any(name for name, _ in entries):
        return [], 0.0
    x, y, parts = 0.0, SIZE, []
    for name, look in entries:
        text = shorten(name, width - SWATCH, SIZE)
        wide = SWATCH + text_width(text, SIZE)
        if x and x + wide > width:
            x, y = 0.0, y + LINE
        parts.append(
            group(
                marker(look, x + 7, y - 4.5) if look else _dotted(x, y - 4.5),
                element("text", text, element("title", name), x=x + SWATCH - 3, y=y, class_="key"),
            )
        )
        x += wide + GAP
    return parts, y + 12


def _dotted(x: float, y: float) -> Markup:
    return element("line", x1=x, x2=x + SWATCH - 6, y1=y, y2=y, class_="reference")


def bottom_axis(axis: Axis, left: float, right: float, top: float, bottom: float) -> list[Markup]:
    """Draw ticks and label below, and fine lines upwards."""
    parts = []
    last = -math.inf
    for value, text in axis.ticks:
        x = left + axis.place(value) * (right - left)
        if not left - 0.5 <= x <= right + 0.5:
            continue
        parts.append(element("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid"))
        half = text_width(text, SMALL) / 2
        if x - half < last + 6:
            continue
        last = x + half
        parts.append(element("text", text, x=x, y=bottom + 18, text_anchor="middle", class_="tick"))
    parts.append(element("text", axis.label, x=(left + right) / 2, y=bottom + 38, text_anchor="middle", class_="axis"))
    return parts


def left_axis(axis: Axis, left: float, right: float, top: float, bottom: float) -> list[Markup]:
    """Draw ticks at the left, fine lines to the right, and the label above."""
    parts = []
    for value, text in axis.ticks:
        y = bottom - axis.place(value) * (bottom - top)
        parts.append(element("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
        parts.append(element("text", text, x=left - 8, y=y + 4, text_anchor="end", class_="tick"))
    parts.append(element("text", axis.label, x=0, y=top - 14, class_="axis"))
    return parts


def tick_room(axis: Axis) -> float:
    """Return the room that the ticks of a left axis take."""
    return 12 + max((text_width(text, SMALL) for _, text in axis.ticks), default=0.0)


def apart(wanted: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Move places so that neighbours are `least` apart and all lie between `low` and `high`, as little as may be.

    >>> apart([10, 12, 50], 10, 0, 100)
    [6.0, 16.0, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda item: wanted[item])
    clusters: list[tuple[float, int]] = []
    for item in order:
        clusters.append((float(wanted[item]), 1))
        while len(clusters) > 1 and clusters[-2][0] + clusters[-2][1] * least > clusters[-1][0]:
            (later, few), (first, many) = clusters.pop(), clusters.pop()
            clusters.append(((first * many + (later - many * least) * few) / (many + few), many + few))
    places = [first + step * least for first, members in clusters for step in range(members)]
    for step in reversed(range(len(places))):
        places[step] = min(places[step], high - (len(places) - 1 - step) * least)
    for step in range(len(places)):
        places[step] = max(places[step], low + step * least)
    found = dict(zip(order, places, strict=True))
    return [found[item] for item in range(len(wanted))]
