import re

import pytest
from tests.report.draw.samples import BLUE, CHARTS, parsed

from prune4rel.report.charts import Lines, Point, Series, number_axis, share_axis
from prune4rel.report.draw import draw


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
