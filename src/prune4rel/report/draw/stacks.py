"""Stacked bars as SVG."""

from prune4rel.report.charts import Stacks
from prune4rel.report.draw.marks import SIZE, SMALL, bottom_axis, legend
from prune4rel.report.draw.markup import Markup, drawing, element
from prune4rel.report.words import shorten, text_width

ROW = 30.0
BAR = 16.0


def draw_stacks(chart: Stacks, width: float, about: str) -> Markup:
    """Draw bars in parts."""
    names = max((text_width(row.name, SIZE) for row in chart.rows), default=0.0)
    left = min(0.36 * width, names + 4) + 12
    right = width - max((text_width(row.end, SMALL) for row in chart.rows), default=0.0) - 16
    parts, head = legend(chart.keys, width)
    top = head + 4.0
    bottom = top + ROW * len(chart.rows)
    parts += bottom_axis(chart.axis, left, right, top, bottom)
    for place, row in enumerate(chart.rows):
        y = top + ROW * place + (ROW - BAR) / 2
        parts.append(
            element(
                "text",
                shorten(row.name, left - 14, SIZE),
                element("title", row.name),
                x=left - 12,
                y=y + BAR - 4,
                text_anchor="end",
                class_="key",
            )
        )
        x = left
        for value, tip, (_, look) in zip(row.values, row.tips, chart.keys, strict=True):
            wide = chart.axis.place(value) * (right - left)
            if wide > 0:
                parts.append(
                    element(
                        "rect",
                        element("title", tip),
                        x=x,
                        y=y,
                        width=max(wide, 0.5),
                        height=BAR,
                        class_=f"bar c{look[0]}",
                    )
                )
            x += wide
        parts.append(element("text", row.end, x=x + 8, y=y + BAR - 4, class_="tick"))
    return drawing(parts, width, bottom + 46, about)
