import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.report.charts import Axis, Reference
from prune4rel.report.draw.marks import apart, bottom_axis, legend, marker
from prune4rel.report.palette import MARKERS


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
    drawn = marker((3, shape), 10.0, 20.0, "tip & more")
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
    assert len(parts) == 7
    assert legend([("", (0, "circle"))], 100) == ([], 0.0)


def test_ticks_that_would_touch_are_left_out():
    axis = Axis("x", 0, 1, tuple((place / 100, f"{place}%") for place in range(101)))
    drawn = bottom_axis(axis, 0, 300, 0, 10)
    ticks = [float(re.search(r'x="([\d.]+)"', part)[1]) for part in drawn if "tick" in part]
    assert 2 < len(ticks) < 20
    assert min(other - one for one, other in itertools.pairwise(ticks)) > 15
