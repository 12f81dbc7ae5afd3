from dataclasses import replace

import numpy as np
import pytest
from tests.report.stories import bare_story, column, digits_story, symbols

from prune4rel.report.charts import Dots, Lines, Missing
from prune4rel.report.method_figures import accuracy, cost, coverage, curves, subset_noise


def test_accuracy_draws_means_and_spreads():
    story = digits_story()
    chart = accuracy(story, symbols()).panels[0].chart
    assert isinstance(chart, Lines)
    for series in chart.series:
        for point in series.points:
            values = [cell.test_accuracy for cell in story.cells if (cell.label, cell.ratio) == (series.name, point.x)]
            assert point.y == pytest.approx(np.mean(values))
            assert point.high - point.low == pytest.approx(2 * np.std(values, ddof=1))
    assert chart.references[0].value == story.full_training.test_accuracy


def test_one_seed_has_no_bars_and_says_so():
    story = digits_story()
    figure = accuracy(replace(story, cells=tuple(cell for cell in story.cells if cell.seed == 1)), symbols())
    assert "no error bars" in figure.caption
    assert all(point.low is None for series in figure.panels[0].chart.series for point in series.points)


def test_one_ratio_makes_a_dot_plot_best_first():
    story = digits_story()
    cells = tuple(cell for cell in story.cells if cell.ratio == 0.3)
    chart = accuracy(replace(story, cells=cells), symbols()).panels[0].chart
    assert isinstance(chart, Dots)
    means = [row.points[0].y for row in chart.rows]
    assert means == sorted(means, reverse=True)


def test_each_learner_has_a_panel_and_selections_count_once_for_noise():
    story = digits_story()
    both = replace(story, cells=story.cells + tuple(replace(cell, learner="elr") for cell in story.cells))
    assert [panel.title for panel in accuracy(both, symbols()).panels] == ["linear", "elr"]
    assert len(subset_noise(both, symbols()).table.rows) == len(story.cells)


def test_noise_is_counted_from_the_picks():
    story = digits_story()
    wrong = story.labels != story.clean_labels
    assert column(subset_noise(story, symbols()), "subset_noise") == [
        wrong[cell.indices].mean() for cell in story.cells
    ]


def test_coverage_grows_to_the_objective():
    story = digits_story()
    figure = coverage(story, symbols())
    assert [panel.title for panel in figure.panels] == ["Coverage objective", "Gain of a pick"]
    assert column(figure, "objective")[-1] == pytest.approx(story.spotlight.objective, rel=1e-6)
    assert column(figure, "picks")[-1] == story.spotlight.size
    growth = column(figure, "objective")
    assert growth == sorted(growth)


def test_gains_that_are_not_the_objectives_have_no_growth_curve():
    story = digits_story()
    cells = tuple(replace(cell, objective=10 * cell.objective) for cell in story.cells)
    figure = coverage(replace(story, cells=cells), symbols())
    assert [panel.title for panel in figure.panels] == ["Gain of a pick"]
    assert set(column(figure, "objective")) == {None}


@pytest.mark.parametrize("gains", [np.zeros(539), np.full(539, np.nan), np.array([])])
def test_gains_that_say_nothing_leave_coverage_out(gains):
    story = digits_story()
    light = replace(story.spotlight, gains=gains, objective=0.0)
    found = coverage(replace(story, cells=(light,)), symbols())
    assert isinstance(found, Missing) or [panel.title for panel in found.panels] == ["Coverage objective"]


def test_curves_end_in_the_result():
    story = digits_story()
    for series in curves(story, symbols()).panels[0].chart.series:
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


def test_cost_adds_up():
    story = digits_story()
    chart = cost(story, symbols()).panels[0].chart
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
