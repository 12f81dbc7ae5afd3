from dataclasses import replace

from tests.report.stories import digits_story, looks

from prune4rel.report.charts import Dots
from prune4rel.report.figures.accuracy import accuracy
from prune4rel.report.figures.noise import subset_noise


def test_one_ratio_makes_a_dot_plot_best_first():
    story = digits_story()
    cells = tuple(cell for cell in story.cells if cell.ratio == 0.3)
    chart = accuracy(replace(story, cells=cells), looks()).panels[0].chart
    assert isinstance(chart, Dots)
    means = [row.points[0].y for row in chart.rows]
    assert means == sorted(means, reverse=True)


def test_each_learner_has_a_panel_and_selections_count_once_for_noise():
    story = digits_story()
    both = replace(story, cells=story.cells + tuple(replace(cell, learner="elr") for cell in story.cells))
    assert [panel.title for panel in accuracy(both, looks()).panels] == ["linear", "elr"]
    assert len(subset_noise(both, looks()).table.rows) == len(story.cells)
