from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from prune4rel.recipes.catalogue import get, with_ours
from prune4rel.recipes.cells import ACCURACY, NOISE, Wanted, narrow
from prune4rel.recipes.compare import Found, agreement, average, compare, compare_order
from prune4rel.recipes.paper import Published

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


ONE = Wanted(noise=("worst",), learner=("sop+",), ratio=(0.2,))


@pytest.fixture
def block(finding):
    """CIFAR-10N worst, SOP+, ratio 0.2, where the paper has Uniform 81.9, SmallLoss 78.8, Prune4ReL_B 84.9."""
    findings = [finding("Uniform", value, seed=seed) for seed, value in enumerate((82.0, 83.0, 84.0))]
    findings += [finding("SmallLoss", 83.5), finding("Prune4ReL_B", 86.0), finding("Ours (coverage)", 99.0)]
    (made,) = compare(get("table1"), narrow(with_ours(get("table1")), ONE), findings)
    return made


def row_of(block, method):
    return next(row for row in block.rows if row.cell.method == method)


def test_numbers_by_hand(block):
    row = row_of(block, "Uniform")
    assert row.ours == Found(83.0, 1.0, 3)
    assert row.paper == Published(81.9, 0.1)
    assert row.difference == pytest.approx(1.1)
    assert row_of(block, "SmallLoss").ours == Found(83.5, None, 1)


def test_what_was_not_run_is_not_filled_in(block):
    row = row_of(block, "Moderate")
    assert (row.ours, row.difference) == (None, None)
    assert row.paper == Published(75.2, 1.5)


def test_ours_are_shown_and_not_ranked(block):
    assert row_of(block, "Ours (coverage)").paper is None
    assert block.order.here == ("Prune4ReL_B", "SmallLoss", "Uniform")
    assert block.order.paper == ("Prune4ReL_B", "Uniform", "SmallLoss")
    assert block.order.sentence == "The order agrees except that SmallLoss is ahead of Uniform."


def test_agreement_sums_up(block):
    assert agreement([block]) == (
        "The order of methods agrees with the paper's in 0 of 1 settings; of 3 pairs of methods 2 are in the same "
        "order."
    )


def test_random_noise_needs_all_three_label_sets(finding):
    def some(seed, *values):
        return [
            finding("Uniform", value, seed=seed, labels=f"random{number}", noise="random")
            for number, value in enumerate(values, 1)
        ]

    assert average(some(0, 80.0, 82.0), ACCURACY) is None
    assert average(some(0, 80.0, 82.0, 84.0), ACCURACY) == Found(82.0, None, 1)
    both = average([*some(0, 80.0, 82.0, 84.0), *some(1, 83.0, 84.0, 85.0), *some(2, 1.0)], ACCURACY)
    assert both == Found(83.0, pytest.approx(2**0.5), 2)


def test_a_number_that_is_missing_is_not_a_zero(finding):
    assert average([finding("Uniform", 80.0)], NOISE) is None
    assert average([], ACCURACY) is None


def test_table2_ranks_all_learners_together():
    cells = narrow(get("table2").cells, Wanted(noise=("worst",), ratio=(0.8,)))
    (block,) = compare(get("table2"), cells, [])
    assert len(block.rows) == 5
    assert block.name_of(block.rows[0]) == "cross-entropy + Uniform"
    assert block.title == "CIFAR-10N worst, ratio 0.8, test accuracy, %"


def test_table5_has_a_block_a_metric():
    blocks = compare(get("table5"), get("table5").cells, [])
    assert [block.metric for block in blocks] == list(get("table5").metrics)
    assert blocks[1].order.here == ()


def test_low_noise_comes_first(finding):
    cells = narrow(get("table4").cells, ONE)
    findings = [finding("GraNd", 90.0, metric=NOISE), finding("SmallLoss", 1.0, metric=NOISE)]
    (block,) = compare(get("table4"), cells, findings)
    assert block.order.here == block.order.paper == ("SmallLoss", "GraNd")


def test_smoke_knows_nothing_of_the_paper(finding):
    cells = narrow(get("table1").cells, ONE)
    (block,) = compare(get("table1"), cells, [finding("Uniform", 10.0)], smoke=True)
    assert all(row.paper is None and not row.remarks for row in block.rows)
    assert row_of(block, "Uniform").ours == Found(10.0, None, 1)
