from dataclasses import replace

import numpy as np
import pytest
from tests.report.stories import bare_story, digits_story, looks

from prune4rel.report.figures.cost import cost


def test_cost_adds_up():
    story = digits_story()
    chart = cost(story, looks()).panels[0].chart
    for row in chart.rows[:-1]:
        mine = [cell for cell in story.cells if (cell.label, cell.ratio) == (row.name, 0.3)]
        assert sum(row.values) == pytest.approx(np.mean([sum(cell.seconds.values()) for cell in mine]))
    assert chart.rows[-1].name == "all examples"
    assert chart.axis.high >= max(sum(row.values) for row in chart.rows)


@pytest.mark.parametrize(("seconds", "unit"), [(5, "seconds"), (600, "minutes"), (90_000, "hours")])
def test_time_is_told_in_a_fitting_unit(seconds, unit):
    cell = replace(bare_story().cells[0], seconds={"training": seconds, "waiting": 1.0})
    chart = cost(bare_story(cells=(cell,)), {}).panels[0].chart
    assert chart.axis.label == unit
    assert [name for name, _ in chart.keys] == ["training", "waiting"]
