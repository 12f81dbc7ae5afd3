import re
from dataclasses import replace

from tests.report.draw.samples import BLUE, CHARTS, POINTS, parsed

from prune4rel.report.charts import Row
from prune4rel.report.draw import draw


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
    drawn = draw(
        replace(CHARTS["dots"], keys=(("", BLUE),), rows=(Row("one", POINTS[:1]),), row_looks=((4, "cross"),)), 480, ""
    )
    assert 'class="mark c4"' in drawn
    assert 'class="mark c0"' not in drawn
