from dataclasses import replace

import numpy as np
import pytest
from tests.report.stories import column, digits_story, looks

from prune4rel.report.figure import Missing
from prune4rel.report.figures.coverage import coverage


def test_coverage_grows_to_the_objective():
    story = digits_story()
    figure = coverage(story, looks())
    assert [panel.title for panel in figure.panels] == ["Coverage objective", "Gain of a pick"]
    assert column(figure, "objective")[-1] == pytest.approx(story.spotlight.objective, rel=1e-6)
    assert column(figure, "picks")[-1] == story.spotlight.size
    growth = column(figure, "objective")
    assert growth == sorted(growth)


def test_gains_that_are_not_the_objectives_have_no_growth_curve():
    story = digits_story()
    cells = tuple(replace(cell, objective=10 * cell.objective) for cell in story.cells)
    figure = coverage(replace(story, cells=cells), looks())
    assert [panel.title for panel in figure.panels] == ["Gain of a pick"]
    assert set(column(figure, "objective")) == {None}


@pytest.mark.parametrize("gains", [np.zeros(539), np.full(539, np.nan), np.array([])])
def test_gains_that_say_nothing_leave_coverage_out(gains):
    story = digits_story()
    light = replace(story.spotlight, gains=gains, objective=0.0)
    found = coverage(replace(story, cells=(light,)), looks())
    assert isinstance(found, Missing) or [panel.title for panel in found.panels] == ["Coverage objective"]
