import pytest

from prune4rel.recipes.catalogue import get, with_ours
from prune4rel.recipes.cells import ACCURACY, NOISE
from prune4rel.recipes.compare import Found, agreement, average, compare
from prune4rel.recipes.narrow import Wanted, narrow
from prune4rel.recipes.paper import Published

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
