from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from prune4rel.recipes.bins import Bin, bins_of, correlation, rank_correlation


def test_equal_numbers_where_nothing_ties():
    values = np.random.default_rng(0).permutation(150).astype(float)
    bins = bins_of(values, values >= 75)
    assert [each.examples for each in bins] == [10] * 15
    assert [each.accuracy for each in bins] == [0.0] * 7 + [0.5] + [1.0] * 7
    assert (bins[0].low, bins[0].high, bins[0].confidence) == (0.0, 9.0, 4.5)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=60), st.integers(1, 8))
def test_every_example_is_in_one_bin_and_ties_stay_together(pairs, count):
    values = np.array([float(value) for value, _ in pairs])
    right = np.array([flag for _, flag in pairs], dtype=bool)
    bins = bins_of(values, right, count)
    assert sum(each.examples for each in bins) == len(pairs)
    assert len(bins) <= count
    assert all(one.high < other.low for one, other in pairwise(bins))
    assert sum(each.examples * each.accuracy for each in bins) == pytest.approx(right.sum())


def make(accuracies):
    return [Bin(k, k + 1, 1, float(k), accuracy) for k, accuracy in enumerate(accuracies)]


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=9))
def test_rank_correlation_is_that_of_scipy(accuracies):
    found = rank_correlation(make(accuracies))
    if len(set(accuracies)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(range(len(accuracies)), accuracies).statistic)


def test_no_correlation_without_two_values():
    assert correlation([]) is None
    assert correlation(make([0.5])) is None
    assert correlation(make([0.5, 0.5])) is None
    assert rank_correlation([]) is None
    assert correlation(make([0.9, 0.1])) == pytest.approx(-1)
