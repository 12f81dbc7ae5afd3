"""All kinds of chart at all widths."""

from xml.etree import ElementTree as ET

import pytest
from tests.report.draw.samples import CHARTS, LONG, parsed

from prune4rel.report.draw import draw


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
