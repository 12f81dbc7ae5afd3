"""Tables of coloured fields as SVG."""

from collections.abc import Sequence

from prune4rel.report.charts import Matrix, Square
from prune4rel.report.draw.marks import SIZE, SMALL
from prune4rel.report.draw.markup import Markup, drawing, element
from prune4rel.report.words import shorten, text_width

LARGEST = 48.0
DARK_FROM = 0.55
SHADES = 20
SMALLEST = 7.0


def draw_matrix(chart: Matrix, width: float, about: str) -> Markup:
    """Draw a matrix, its row names at the left and its column names on top, upright where there is room."""
    n = len(chart.names)
    longest = max(text_width(name, SMALL) for name in chart.names)
    room = min(0.3 * width, longest + 2)
    left = room + 34
    side = min(LARGEST, (width - left - 2) / n)
    upright = longest <= side - 4
    head = SMALL + 8 if upright else min(90.0, longest + 8)
    top = head + 32
    right, bottom = left + side * n, top + side * n
    parts = [
        element("text", chart.column_label, x=left, y=12, class_="axis"),
        element(
            "text",
            chart.row_label,
            transform=f"translate(13 {(top + bottom) / 2:.1f}) rotate(-90)",
            text_anchor="middle",
            class_="axis",
        ),
    ]
    size = min(SMALL, 0.92 * side)
    for place, name in enumerate(chart.names):
        middle = (place + 0.5) * side
        parts.append(
            element(
                "text",
                shorten(name, room, size),
                element("title", name),
                x=left - 8,
                y=top + middle + 0.35 * size,
                text_anchor="end",
                class_="tick",
                style=f"font-size:{size:.1f}px",
            )
        )
        turned = f"translate({left + middle + (0 if upright else 0.35 * size):.1f} {top - 8:.1f})"
        parts.append(
            element(
                "text",
                shorten(name, head - 4 if not upright else side, size),
                element("title", name),
                transform=turned if upright else f"{turned} rotate(-90)",
                text_anchor="middle" if upright else "start",
                class_="tick",
                style=f"font-size:{size:.1f}px",
            )
        )
    inside = side - max(1.0, 0.05 * side)
    stays = _text_size([square for line in chart.squares for square in line if square.strength is None], inside)
    moves = _text_size([square for line in chart.squares for square in line if square.strength is not None], inside)
    for row, squares in enumerate(chart.squares):
        for column, square in enumerate(squares):
            size = stays if square.strength is None else moves
            parts += _square(square, left + column * side, top + row * side, inside, size)
    return drawing(parts, max(width, right), bottom + 6, about)


def _text_size(squares: Sequence[Square], inside: float) -> float:
    """Return the size at which the widest text fits, 0 if it would be too small to read."""
    widest = max((text_width(square.text, 1.0) for square in squares), default=0.0)
    size = min(SIZE, 0.36 * inside, (inside - 2) / widest if widest else SIZE)
    return size if size >= SMALLEST else 0.0


def _square(square: Square, x: float, y: float, inside: float, size: float) -> list[Markup]:
    strength = -1 if square.strength is None else round(SHADES * square.strength)
    kind = "same" if strength < 0 else f"shade s{strength}"
    parts = [
        element(
            "rect", element("title", square.tip), x=x, y=y, width=inside, height=inside, rx=0.06 * inside, class_=kind
        )
    ]
    if square.text and size:
        tone = "onto" if (square.strength or 0) > DARK_FROM else "upon"
        parts.append(
            element(
                "text",
                square.text,
                x=x + inside / 2,
                y=y + inside / 2 + 0.35 * size,
                text_anchor="middle",
                class_=f"cell {tone}" + (" quiet" if square.strength is None else ""),
                style=f"font-size:{size:.1f}px",
            )
        )
    return parts
