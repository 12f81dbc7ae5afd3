"""All kinds of chart at all widths."""

import itertools
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.samples import BLUE, CHARTS, LONG, POINTS, parsed

from prune4rel.report.charts import Axis, DotRow, Lines, Point, Reference, Series, number_axis, share_axis
from prune4rel.report.draw import apart, bottom_axis, draw, legend, marker
from prune4rel.report.scene import Text, svg_mark
from prune4rel.report.words import MARKERS


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


def test_dots_of_a_row_are_joined_and_lie_where_their_values_say():
    node = parsed(CHARTS["dots"], 760)
    first = [mark for mark in node.iter() if (mark.get("class") or "").startswith("mark")]
    assert len([mark for mark in node.iter("line") if mark.get("class") == "link"]) == 1
    keys, (before, after, lone) = first[:2], first[2:]
    assert len(keys) == 2
    assert float(before.get("cx")) < centre_of(after) < centre_of(lone)
    assert len([mark for mark in node.iter("line") if "whisker" in mark.get("class")]) == 3


def centre_of(square):
    corners = [float(pair.split(",")[0]) for pair in re.findall(r"-?[\d.]+,-?[\d.]+", square.get("d"))]
    return sum(corners) / len(corners)


def test_each_row_may_have_a_look_of_its_own():
    chart = replace(CHARTS["dots"], keys=(("", BLUE),), rows=(DotRow("one", POINTS[:1]),), row_symbols=((4, "cross"),))
    drawn = draw(chart, 480, "")
    assert 'class="mark c4"' in drawn
    assert 'class="mark c0"' not in drawn


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


@given(st.lists(st.floats(0, 100), max_size=9))
def test_places_are_kept_apart_and_inside(wanted):
    found = apart(wanted, 10, 0, 100)
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    ranked = [found[place] for place in order]
    assert all(other - one >= 10 - 1e-9 for one, other in itertools.pairwise(ranked))
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in found)


def test_places_that_are_apart_stay():
    assert apart([50, 10, 30], 10, 0, 100) == [50, 10, 30]


@pytest.mark.parametrize("shape", MARKERS)
def test_markers_are_centred(shape):
    drawn = svg_mark(marker((3, shape), 10.0, 20.0, "tip & more"))
    assert "<title>tip &amp; more</title>" in drawn
    assert 'class="mark c3"' in drawn
    if shape == "circle":
        assert 'cx="10" cy="20"' in drawn
    else:
        corners = [tuple(map(float, pair.split(","))) for pair in re.findall(r"-?[\d.]+,-?[\d.]+", drawn)]
        assert sum(x for x, _ in corners) / len(corners) == pytest.approx(10, abs=0.1)
        assert sum(y for _, y in corners) / len(corners) == pytest.approx(20, abs=0.1)


def test_a_legend_breaks_into_lines_that_fit():
    keys = [(f"method number {place}", (0, "circle")) for place in range(6)]
    _, wide = legend(keys, 2000)
    parts, narrow = legend(keys, 260, [Reference(0.5, "whole set")])
    assert narrow > wide
    assert len([mark for mark in parts if isinstance(mark, Text)]) == 7
    assert len(parts) == 14
    assert legend([("", (0, "circle"))], 100) == ([], 0.0)


def test_ticks_that_would_touch_are_left_out():
    axis = Axis("x", 0, 1, tuple((place / 100, f"{place}%") for place in range(101)))
    drawn = bottom_axis(axis, 0, 300, 0, 10)
    ticks = [mark.x for mark in drawn if mark.kind == "tick"]
    assert 2 < len(ticks) < 20
    assert min(other - one for one, other in itertools.pairwise(ticks)) > 15
