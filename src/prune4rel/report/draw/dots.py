"""Dot plots as SVG."""

from prune4rel.report.charts import Dots
from prune4rel.report.draw.marks import SIZE, bottom_axis, has_interval, legend, marker, whisker
from prune4rel.report.draw.markup import Markup, drawing, element
from prune4rel.report.words import shorten, text_width

ROW = 27.0
BAND = 22.0


def draw_dots(chart: Dots, width: float, about: str) -> Markup:
    """Draw a dot plot."""
    names = max((text_width(row.name, SIZE) for row in chart.rows), default=0.0)
    left = min(0.5 * width, names + 4) + 12
    right = width - 22.0
    parts, head = legend(chart.keys, width)
    top = head + (22.0 if chart.references else 6.0)
    bottom = top + ROW * len(chart.rows) + 4

    def at(value: float) -> float:
        return left + chart.axis.place(value) * (right - left)

    parts += bottom_axis(chart.axis, left, right, top, bottom)
    for reference in chart.references:
        x = at(reference.value)
        parts.append(element("line", x1=x, x2=x, y1=top - 4, y2=bottom, class_="reference"))
        half = text_width(reference.label, SIZE) / 2
        middle = min(max(x, half), width - half)
        parts.append(element("text", reference.label, x=middle, y=top - 9, text_anchor="middle", class_="note"))
    for place, row in enumerate(chart.rows):
        y = top + ROW * (place + 0.5) + 2
        parts.append(
            element(
                "text",
                shorten(row.name, left - 14, SIZE),
                element("title", row.name),
                x=left - 12,
                y=y + 4.5,
                text_anchor="end",
                class_="key",
            )
        )
        known = [point for point in row.points if point is not None]
        if len(known) > 1:
            ends = [at(point.y) for point in known]
            parts.append(element("line", x1=min(ends), x2=max(ends), y1=y, y2=y, class_="link"))
        for (_, look), point in zip(chart.keys, row.points, strict=True):
            if point is None:
                continue
            mine = chart.row_looks[place] if chart.row_looks else look
            if has_interval(point):
                parts.append(whisker(mine, (at(point.low or 0.0), y), (at(point.high or 0.0), y)))
            parts.append(marker(mine, at(point.y), y, point.tip, radius=4.8))
    return drawing(parts, width, bottom + 46, about)
