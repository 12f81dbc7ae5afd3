"""Charts as SVG text, for any width."""

from prune4rel.report.charts import Chart, Dots, Lines, Stacks
from prune4rel.report.draw.dots import draw_dots
from prune4rel.report.draw.lines import draw_lines
from prune4rel.report.draw.markup import Markup
from prune4rel.report.draw.matrix import draw_matrix
from prune4rel.report.draw.stacks import draw_stacks


def draw(chart: Chart, width: float, about: str) -> Markup:
    """Draw a chart `width` pixels wide; `about` is read out to those who cannot see it."""
    if isinstance(chart, Lines):
        return draw_lines(chart, width, about)
    if isinstance(chart, Dots):
        return draw_dots(chart, width, about)
    if isinstance(chart, Stacks):
        return draw_stacks(chart, width, about)
    return draw_matrix(chart, width, about)


__all__ = ["Markup", "draw"]
