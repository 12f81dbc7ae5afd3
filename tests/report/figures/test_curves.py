from dataclasses import replace

import numpy as np
import pytest
from tests.report.stories import bare_story, digits_story, looks

from prune4rel.report.figures.curves import curves


def test_curves_end_in_the_result():
    story = digits_story()
    for series in curves(story, looks()).panels[0].chart.series:
        last = [
            cell.curve[-1]["test_accuracy"] for cell in story.cells if (cell.label, cell.ratio) == (series.name, 0.3)
        ]
        assert series.points[-1].y == pytest.approx(np.mean(last))
        assert [point.x for point in series.points] == list(range(1, 9))


def test_long_and_broken_curves_are_drawn_all_the_same():
    curve = tuple({"epoch": float(e), "test_accuracy": 0.5 if e % 7 else float("nan")} for e in range(1, 1001))
    cell = replace(bare_story().cells[0], curve=(*curve, {"epoch": 1001.0, "loss": 1.0}))
    points = curves(bare_story(cells=(cell,)), {"uniform": (7, "circle")}).panels[0].chart.series[0].points
    assert len(points) <= 151
    assert points[-1].x == 1000
