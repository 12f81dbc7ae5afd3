import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.stories import bare_story, column, digits_story, symbols

from prune4rel.report.charts import Lines, Missing
from prune4rel.report.label_figures import bins_of, class_balance, confusion, pairs_of, relabeling, wilson


def test_balance_holds_shares_before_and_after():
    story = digits_story()
    figure = class_balance(story, symbols())
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


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_pairs_are_counted_one_by_one(pairs):
    counts = np.zeros((4, 4), dtype=int)
    for one, other in pairs:
        counts[one, other] += 1
    given_labels, corrected = np.array(pairs, dtype=int).reshape(-1, 2).T
    np.testing.assert_array_equal(pairs_of(given_labels, corrected, 4), counts)


def test_confusion_lists_every_pair_and_colours_the_moves():
    story = digits_story()
    figure = confusion(story, symbols())
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


def test_relabeling_counts_what_is_true_in_each_bin():
    story = digits_story()
    figure = relabeling(story, symbols())
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
    assert isinstance(relabeling(replace(digits_story(), **{part: None}), symbols()), Missing)
