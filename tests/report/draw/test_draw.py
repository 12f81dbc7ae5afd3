"""All kinds of chart at all widths: well-formed, inside their frame, with every value in its place."""

import re
from xml.etree import ElementTree as ET

import pytest

from prune4rel.report.charts import (
    Dots,
    Lines,
    Matrix,
    Point,
    Reference,
    Row,
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
        (Row("one", POINTS[:2]), Row(LONG, (None, POINTS[2]))),
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


@pytest.mark.parametrize("width", [340, 480, 760])
@pytest.mark.parametrize("kind", CHARTS)
def test_marks_lie_inside_the_frame(kind, width):
    node = parsed(CHARTS[kind], width)
    _, _, wide, high = map(float, node.get("viewBox").split())
    assert wide == width
    for mark in node.iter():
        x, y = (mark.get(name) for name in ({"circle": ("cx", "cy"), "rect": ("x", "y")}.get(mark.tag, ("x", "y"))))
        if x is not None:
            assert -1 <= float(x) <= wide + 1, ET.tostring(mark)
            assert -1 <= float(y) <= high + 1, ET.tostring(mark)


@pytest.mark.parametrize("kind", CHARTS)
def test_long_names_are_cut_on_sight_and_whole_on_pointing(kind):
    drawn = draw(CHARTS[kind], 340, "about")
    assert "…" in drawn
    assert f"<title>{LONG}</title>" in drawn


def test_points_lie_where_their_values_say():
    node = parsed(CHARTS["lines"], 760)
    marks = [mark for mark in node.iter("circle") if mark.get("class") == "mark c0"]
    x, y = ([float(mark.get(name)) for mark in marks] for name in ("cx", "cy"))
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.02)
    assert (y[0] - y[1]) / (y[1] - y[2]) == pytest.approx(0.4 / 0.3, rel=0.01)
    assert [mark.find("title").text for mark in marks] == ["tip 0", "tip 1", "tip 2"]
    assert len(re.findall("whisker c0", draw(CHARTS["lines"], 760, ""))) == 3


def test_names_are_at_the_ends_of_lines_where_there_is_room_and_in_a_legend_where_there_is_not():
    assert draw(CHARTS["lines"], 760, "").count('class="name c0"') == 1
    narrow = draw(CHARTS["lines"], 340, "")
    assert 'class="name' not in narrow
    assert narrow.count('class="key"') == 3


def test_long_series_carry_few_tips():
    many = tuple(Point(x, 0.5, tip=f"tip {x}") for x in range(1000))
    chart = Lines(number_axis("x", [0, 999]), share_axis("y", [0.5]), (Series("a", BLUE, many, markers=False),))
    assert draw(chart, 760, "").count("<title>tip") <= 30


def test_bars_are_as_long_as_their_values():
    bars = list(parsed(CHARTS["stacks"], 760).iter("rect"))
    wide = [float(bar.get("width")) for bar in bars]
    assert wide[1] / wide[0] == pytest.approx(2, rel=0.01)
    assert float(bars[1].get("x")) == pytest.approx(float(bars[0].get("x")) + wide[0], abs=0.02)
    assert len(bars) == 3


def test_strong_fields_are_dark_and_the_diagonal_has_no_colour():
    drawn = draw(CHARTS["matrix"], 480, "")
    assert drawn.count('class="same"') == 2
    assert 'class="shade s20"' in drawn
    assert 'class="shade s4"' in drawn
    assert ">10</text>" in drawn
