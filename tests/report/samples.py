"""One chart of each kind, and its drawing taken apart."""

from xml.etree import ElementTree as ET

from prune4rel.report.charts import (
    DotRow,
    Dots,
    Lines,
    Matrix,
    Point,
    Reference,
    Series,
    Square,
    Stack,
    Stacks,
    number_axis,
    share_axis,
)
from prune4rel.report.draw import draw

LONG = "a name that is far too long for the room there is, whatever the width"
BLUE, RED = (0, "circle"), (1, "square")
POINTS = tuple(Point(x, y, y - 0.05, y + 0.05, f"tip {x}") for x, y in ((0, 0.2), (1, 0.6), (2, 0.9)))
CHARTS = {
    "lines": Lines(
        number_axis("x", [0, 2]),
        share_axis("y", [0.1, 0.95]),
        (Series("short", BLUE, POINTS), Series(LONG, RED, POINTS[:1], dashed=True, markers=False)),
        (Reference(0.5, "half"),),
    ),
    "dots": Dots(
        share_axis("y", [0.1, 0.95]),
        (("before", BLUE), ("after", RED)),
        (DotRow("one", POINTS[:2]), DotRow(LONG, (None, POINTS[2]))),
        (Reference(0.95, "limit"),),
    ),
    "stacks": Stacks(
        number_axis("s", [9], zero=True),
        (("a", BLUE), ("b", RED)),
        (Stack("one", (3.0, 6.0), "9 s", ("three", "six")), Stack(LONG, (0.0, 1.0), "1 s", ("none", "one"))),
    ),
    "matrix": Matrix(
        "given",
        "now",
        ("cat", LONG),
        ((Square(None, "90", "stay"), Square(1.0, "10", "cat to dog")), (Square(0.2, "", ""), Square(None, "8", ""))),
    ),
}


def parsed(chart, width):
    return ET.fromstring(draw(chart, width, "about"))  # noqa: S314 - our own
