import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.stories import column, digits_story, looks

from prune4rel.report.figure import Missing
from prune4rel.report.figures.relabeling import bins_of, relabeling, wilson


def test_relabeling_counts_what_is_true_in_each_bin():
    story = digits_story()
    figure = relabeling(story, looks())
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
    assert isinstance(relabeling(replace(digits_story(), **{part: None}), looks()), Missing)
