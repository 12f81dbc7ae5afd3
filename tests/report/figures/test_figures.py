"""Every figure from a real story, against the arrays it was drawn from."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.stories import bare_story, digits_story

from prune4rel.report.charts import Dots, Lines
from prune4rel.report.figure import Figure, Missing, label_looks
from prune4rel.report.figures import SECTIONS
from prune4rel.report.figures.accuracy import accuracy
from prune4rel.report.figures.balance import class_balance
from prune4rel.report.figures.confusion import confusion, pairs_of
from prune4rel.report.figures.cost import cost
from prune4rel.report.figures.coverage import coverage
from prune4rel.report.figures.curves import curves
from prune4rel.report.figures.noise import subset_noise
from prune4rel.report.figures.relabeling import bins_of, relabeling, wilson

LOOKS = label_looks([digits_story()])


def column(figure, name):
    place = figure.table.columns.index(name)
    return [row[place] for row in figure.table.rows]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.key)
def test_every_figure_can_be_drawn_from_digits_and_is_missing_with_a_reason_from_nothing(section):
    made = section.make(digits_story(), LOOKS)
    assert isinstance(made, Figure)
    assert made.caption.endswith(".")
    assert made.table.rows
    assert all(len(row) == len(made.table.columns) for row in made.table.rows)
    missing = section.make(bare_story(), label_looks([bare_story()]))
    assert isinstance(missing, Missing)
    assert missing.reason.endswith(".")


def test_accuracy_draws_means_and_spreads():
    story = digits_story()
    chart = accuracy(story, LOOKS).panels[0].chart
    assert isinstance(chart, Lines)
    for series in chart.series:
        for point in series.points:
            values = [cell.test_accuracy for cell in story.cells if (cell.label, cell.ratio) == (series.name, point.x)]
            assert point.y == pytest.approx(np.mean(values))
            assert point.high - point.low == pytest.approx(2 * np.std(values, ddof=1))
    assert chart.references[0].value == story.full_training.test_accuracy


def test_one_ratio_makes_a_dot_plot_best_first():
    story = digits_story()
    cells = tuple(cell for cell in story.cells if cell.ratio == 0.3)
    chart = accuracy(replace(story, cells=cells), LOOKS).panels[0].chart
    assert isinstance(chart, Dots)
    means = [row.points[0].y for row in chart.rows]
    assert means == sorted(means, reverse=True)


def test_each_learner_has_a_panel_and_selections_count_once_for_noise():
    story = digits_story()
    both = replace(story, cells=story.cells + tuple(replace(cell, learner="elr") for cell in story.cells))
    assert [panel.title for panel in accuracy(both, LOOKS).panels] == ["linear", "elr"]
    assert len(subset_noise(both, LOOKS).table.rows) == len(story.cells)


def test_one_seed_has_no_bars_and_says_so():
    story = digits_story()
    figure = accuracy(replace(story, cells=tuple(cell for cell in story.cells if cell.seed == 1)), LOOKS)
    assert "no error bars" in figure.caption
    assert all(point.low is None for series in figure.panels[0].chart.series for point in series.points)


def test_noise_is_counted_from_the_picks():
    story = digits_story()
    wrong = story.labels != story.clean_labels
    assert column(subset_noise(story, LOOKS), "subset_noise") == [wrong[cell.indices].mean() for cell in story.cells]


def test_coverage_grows_to_the_objective():
    story = digits_story()
    figure = coverage(story, LOOKS)
    assert [panel.title for panel in figure.panels] == ["Coverage objective", "Gain of a pick"]
    assert column(figure, "objective")[-1] == pytest.approx(story.spotlight.objective, rel=1e-6)
    assert column(figure, "picks")[-1] == story.spotlight.size
    growth = column(figure, "objective")
    assert growth == sorted(growth)


def test_gains_that_are_not_the_objectives_have_no_growth_curve():
    story = digits_story()
    cells = tuple(replace(cell, objective=10 * cell.objective) for cell in story.cells)
    figure = coverage(replace(story, cells=cells), LOOKS)
    assert [panel.title for panel in figure.panels] == ["Gain of a pick"]
    assert set(column(figure, "objective")) == {None}


@pytest.mark.parametrize("gains", [np.zeros(539), np.full(539, np.nan), np.array([])])
def test_gains_that_say_nothing_leave_coverage_out(gains):
    story = digits_story()
    light = replace(story.spotlight, gains=gains, objective=0.0)
    found = coverage(replace(story, cells=(light,)), LOOKS)
    assert isinstance(found, Missing) or [panel.title for panel in found.panels] == ["Coverage objective"]


def test_balance_holds_shares_before_and_after():
    story = digits_story()
    figure = class_balance(story, LOOKS)
    np.testing.assert_allclose(column(figure, "share_of_training_set"), np.bincount(story.labels) / story.n)
    picked = np.bincount(story.labels[story.spotlight.indices], minlength=10)
    assert column(figure, "picked") == picked.tolist()


def test_many_classes_are_drawn_as_curves():
    n = 100
    cell = replace(bare_story().cells[0], indices=np.arange(n), size=n, class_counts=(1,) * n)
    names = tuple(map(str, range(n)))
    story = bare_story(
        n=n, labels=np.arange(n), class_names=names, class_counts=(1,) * n, cells=(cell,), spotlight=cell
    )
    chart = class_balance(story, {}).panels[0].chart
    assert isinstance(chart, Lines)
    assert len(chart.series[0].points) == n


def test_relabeling_counts_what_is_true_in_each_bin():
    story = digits_story()
    figure = relabeling(story, LOOKS)
    assert sum(column(figure, "examples")) == story.n
    low, high = column(figure, "lowest_confidence"), column(figure, "highest_confidence")
    right = column(figure, "corrected_right")
    for place in range(len(right)):
        inside = (story.neighbourhood >= low[place]) & (story.neighbourhood <= high[place])
        assert inside.sum() == column(figure, "examples")[place]
        assert right[place] == pytest.approx((story.corrected == story.clean_labels)[inside].mean())


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]) | st.floats(0, 50), max_size=60), st.integers(2, 15))
def test_bins_are_a_partition_in_order_and_keep_equal_values_together(values, most):
    support = np.array(values)
    bins = bins_of(support, most)
    assert len(bins) <= most
    assert sorted(np.concatenate([np.array([], dtype=int), *bins]).tolist()) == list(range(len(support)))
    for one, other in itertools.pairwise(bins):
        assert support[one].max() < support[other].min()


@given(st.integers(1, 500), st.data())
def test_wilson_intervals_hold_the_share(n, data):
    share = data.draw(st.integers(0, n)) / n
    low, high = wilson(share, n)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    assert math.isclose(low, 0, abs_tol=1e-12) == (share == 0)


@pytest.mark.parametrize("part", ["neighbourhood", "corrected", "clean_labels"])
def test_relabeling_says_which_part_is_missing(part):
    assert isinstance(relabeling(replace(digits_story(), **{part: None}), LOOKS), Missing)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_pairs_are_counted_one_by_one(pairs):
    counts = np.zeros((4, 4), dtype=int)
    for one, other in pairs:
        counts[one, other] += 1
    given_labels, corrected = np.array(pairs, dtype=int).reshape(-1, 2).T
    np.testing.assert_array_equal(pairs_of(given_labels, corrected, 4), counts)


def test_confusion_lists_every_pair_and_colours_the_moves():
    story = digits_story()
    figure = confusion(story, LOOKS)
    assert sum(column(figure, "examples")) == story.n
    squares = figure.panels[0].chart.squares
    assert all(
        (square.strength is None) == (row == place)
        for row, line in enumerate(squares)
        for place, square in enumerate(line)
    )
    assert max(square.strength or 0 for line in squares for square in line) == 1


def test_confusion_of_many_classes_draws_the_busiest():
    n = 60
    labels = np.arange(n)
    corrected = np.where(labels < 5, (labels + 1) % 5, labels)
    names = tuple(f"c{place}" for place in labels)
    story = bare_story(n=n, labels=labels, corrected=corrected, class_names=names, class_counts=(1,) * n, cells=())
    figure = confusion(story, {})
    assert set(names[:5]) <= set(figure.panels[0].chart.names)
    assert len(figure.panels[0].chart.names) == 24
    assert len(figure.table.rows) == n


def test_curves_end_in_the_result():
    story = digits_story()
    for series in curves(story, LOOKS).panels[0].chart.series:
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
    chart = cost(story, LOOKS).panels[0].chart
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
