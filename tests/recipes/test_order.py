from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from prune4rel.recipes.order import compare_order

PAPER = {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}


def test_the_same_order():
    found = compare_order({"a": 9, "b": 8, "c": 7, "d": 6}, PAPER)
    assert (found.tau, found.swapped, found.sentence) == (1.0, (), "The order agrees.")
    assert found.here == found.paper == ("a", "b", "c", "d")


def test_one_swap_is_named():
    found = compare_order({"a": 9, "b": 7, "c": 8, "d": 6}, PAPER)
    assert found.swapped == (("c", "b"),)
    assert found.sentence == "The order agrees except that c is ahead of b."
    assert found.tau == pytest.approx(4 / 6)


def test_two_swaps_are_named():
    found = compare_order({"a": 8, "b": 9, "c": 6, "d": 7}, PAPER)
    assert found.sentence == "The order agrees except that b is ahead of a and d is ahead of c."


def test_many_swaps_are_counted():
    found = compare_order({"a": 1, "b": 2, "c": 3, "d": 4}, PAPER)
    assert found.tau == -1
    assert found.sentence == "The order differs in 6 of 6 pairs; best here is d, in the paper a."
    half = compare_order({"a": 9, "b": 1, "c": 2, "d": 3}, PAPER)
    assert half.sentence == "The order differs in 3 of 6 pairs; a is best in both."


def test_two_that_are_swapped_do_not_agree():
    found = compare_order({"a": 1, "b": 2}, {"a": 2, "b": 1})
    assert found.sentence == "The order differs in 1 of 1 pairs; best here is b, in the paper a."


def test_lower_may_be_better():
    found = compare_order({"a": 1.0, "b": 2.0}, {"a": 10, "b": 20}, lower_first=True)
    assert (found.here, found.paper, found.tau) == (("a", "b"), ("a", "b"), 1.0)


def test_ties_are_no_swaps():
    found = compare_order({"a": 2, "b": 1}, {"a": 5, "b": 5})
    assert (found.swapped, found.pairs, found.tau) == ((), 0, None)
    assert "all are level" in found.sentence


def test_what_only_one_has_does_not_count():
    found = compare_order({"a": 2, "x": 5}, PAPER)
    assert (found.here, found.sentence) == (("a",), "There is no order to compare.")


@pytest.mark.parametrize("values", list(permutations(range(4)))[:24])
def test_tau_is_that_of_scipy(values):
    found = compare_order(dict(zip("abcd", values, strict=True)), PAPER)
    assert found.tau == pytest.approx(kendalltau(values, list(PAPER.values())).statistic)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_tau_is_that_of_scipy_with_ties(pairs):
    here, paper = ({str(k): pair[side] for k, pair in enumerate(pairs)} for side in (0, 1))
    found = compare_order(here, paper)
    if found.tau is None:
        assert len(set(here.values())) == 1 or len(set(paper.values())) == 1
    else:
        assert found.tau == pytest.approx(kendalltau(list(here.values()), list(paper.values())).statistic)
