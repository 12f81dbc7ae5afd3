from dataclasses import replace

import numpy as np
import pytest
from tests.report.stories import digits_story, looks

from prune4rel.report.charts import Lines
from prune4rel.report.figures.accuracy import accuracy


def test_accuracy_draws_means_and_spreads():
    story = digits_story()
    chart = accuracy(story, looks()).panels[0].chart
    assert isinstance(chart, Lines)
    for series in chart.series:
        for point in series.points:
            values = [cell.test_accuracy for cell in story.cells if (cell.label, cell.ratio) == (series.name, point.x)]
            assert point.y == pytest.approx(np.mean(values))
            assert point.high - point.low == pytest.approx(2 * np.std(values, ddof=1))
    assert chart.references[0].value == story.full_training.test_accuracy


def test_one_seed_has_no_bars_and_says_so():
    story = digits_story()
    figure = accuracy(replace(story, cells=tuple(cell for cell in story.cells if cell.seed == 1)), looks())
    assert "no error bars" in figure.caption
    assert all(point.low is None for series in figure.panels[0].chart.series for point in series.points)
