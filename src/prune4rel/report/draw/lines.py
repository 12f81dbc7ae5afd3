"""Line charts as SVG."""

from prune4rel.report.charts import Lines, Series
from prune4rel.report.draw.marks import (
    LINE,
    SIZE,
    apart,
    bottom_axis,
    has_interval,
    left_axis,
    legend,
    marker,
    path_through,
    tick_room,
    whisker,
)
from prune4rel.report.draw.markup import Markup, drawing, element, group
from prune4rel.report.words import shorten, text_width

WIDE = 560.0
"""From this width on, lines are named at their ends; below it, in a legend."""

MOST_TIPS = 30
BOLD = 1.08


def draw_lines(chart: Lines, width: float, about: str) -> Markup:
    """Draw a line chart."""
    direct = width >= WIDE
    names = [series.name for series in chart.series] + [reference.label for reference in chart.references]
    room = min(0.32 * width, BOLD * max(text_width(name, SIZE) for name in names) + 22) if direct else 10.0
    looks = [(one.name, one.look) for one in chart.series]
    keys, head = ([], 0.0) if direct else legend(looks, width, chart.references)
    left, right, top = tick_room(chart.y), width - room, head + 34.0
    bottom = top + max(min(0.52 * width, 330.0), LINE * (len(names) if direct else 0))

    def at(x: float, y: float) -> tuple[float, float]:
        return left + chart.x.place(x) * (right - left), bottom - chart.y.place(y) * (bottom - top)

    parts = [*keys, *left_axis(chart.y, left, right, top, bottom)]
    parts += bottom_axis(chart.x, left, right, bottom, bottom)
    for reference in chart.references:
        y = at(chart.x.low, reference.value)[1]
        parts.append(element("line", x1=left, x2=right, y1=y, y2=y, class_="reference"))
    for one in chart.series:
        places = [at(point.x, point.y) for point in one.points]
        parts.append(_line(one, places))
        told = -(-len(places) // MOST_TIPS)
        for number, (point, (x, y)) in enumerate(zip(one.points, places, strict=True)):
            if has_interval(point):
                parts.append(
                    whisker(one.look, (x, at(point.x, point.low or 0.0)[1]), (x, at(point.x, point.high or 0.0)[1]))
                )
            if one.markers or len(places) == 1:
                parts.append(marker(one.look, x, y, point.tip))
            elif number % told == 0:
                parts.append(element("circle", element("title", point.tip), cx=x, cy=y, r=6, class_="touch"))
    if direct:
        ends = [at(one.points[-1].x, one.points[-1].y)[1] for one in chart.series]
        ends += [at(chart.x.low, reference.value)[1] for reference in chart.references]
        colours = [f"c{one.look[0]}" for one in chart.series] + ["note"] * len(chart.references)
        for name, colour, y in zip(names, colours, apart(ends, LINE - 2, top, bottom), strict=True):
            parts.append(
                element(
                    "text",
                    shorten(name, room - 14, BOLD * SIZE),
                    element("title", name),
                    x=right + 12,
                    y=y + 4.5,
                    class_=f"name {colour}",
                )
            )
    return drawing(parts, width, bottom + 46, about)


def _line(series: Series, places: list[tuple[float, float]]) -> Markup:
    dashed = " dashed" if series.dashed else ""
    return group(element("path", d=path_through(places), class_=f"line c{series.look[0]}{dashed}"))
