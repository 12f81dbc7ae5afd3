import csv
import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from prune4rel.recipes.catalogue import get, with_ours
from prune4rel.recipes.cells import NOISE, Wanted, narrow
from prune4rel.recipes.compare import Found, compare
from prune4rel.recipes.harvest import write_text
from prune4rel.recipes.paper import Published
from prune4rel.recipes.write import (
    NOT_RUN,
    SMOKE,
    Bin,
    Notes,
    bins_of,
    bins_to_csv,
    correlation,
    rank_correlation,
    to_csv,
    to_markdown,
    with_spread,
)


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


@pytest.fixture
def table1(finding):
    cells = narrow(with_ours(get("table1")), Wanted(noise=("worst",), learner=("sop+",), ratio=(0.2,)))
    findings = [finding("Uniform", value, seed=seed) for seed, value in enumerate((82.0, 83.0, 84.0))]
    findings += [finding("SSP", 70.0), finding("Ours (label-aware)", 86.0)]
    return compare(get("table1"), cells, findings)


def test_markdown(table1):
    text = to_markdown(get("table1"), table1, {})
    assert "| Uniform | 83.0 ± 1.0 | 3 | 81.9 ± 0.1 | +1.1 |" in text
    assert "| SSP | 70.0 | 1 | 70.8 ± 2.7 | -0.8 |" in text
    assert f"| Moderate | {NOT_RUN} |  | 75.2 ± 1.5 |  |" in text
    assert "| Ours (label-aware) | 86.0 | 1 | - |  |" in text
    assert "The order agrees. Kendall's tau is 1.00. Here: Uniform, SSP. In the paper: Uniform, SSP." in text
    assert "which the paper does not have" in text


def test_errata_are_footnotes_where_they_belong(finding):
    cells = narrow(get("table4").cells, Wanted(dataset=("cifar100n",)))
    text = to_markdown(get("table4"), compare(get("table4"), cells, []), {})
    marked = [line for line in text.splitlines() if line.startswith("|") and "[1]" in line]
    assert [line.split("|")[4].strip() for line in marked] == ["54.6 [1]", "60.2 [1]", "64.6 [1]"]
    assert all("Moderate" in line for line in marked)
    assert text.rstrip().splitlines()[-1].startswith("[1] Table 4 repeats")
    blocks = compare(
        get("table4"), narrow(get("table4").cells, Wanted(noise=("worst",))), [finding("SSP", 40.0, metric=NOISE)]
    )
    assert "[1]" not in to_markdown(get("table4"), blocks, {})


def test_notes_are_numbered_once():
    notes = Notes()
    assert (notes.mark(("a",)), notes.mark(("b", "a")), notes.mark(())) == (" [1]", " [2] [1]", "")
    assert notes.lines() == ["[1] a", "[2] b"]


def test_csv(table1):
    rows = list(csv.DictReader(io.StringIO(to_csv(get("table1"), table1))))
    by_method = {row["method"]: row for row in rows}
    assert len(rows) == 12
    uniform = by_method["Uniform"]
    assert (float(uniform["ours_mean"]), float(uniform["ours_std"]), uniform["seeds"]) == (83.0, 1.0, "3")
    assert (uniform["paper_mean"], uniform["paper_std"]) == ("81.9", "0.1")
    assert float(uniform["difference"]) == pytest.approx(1.1)
    left_out = by_method["Margin"]
    assert (left_out["ours_mean"], left_out["seeds"], left_out["difference"]) == ("", "0", "")
    assert by_method["Ours (coverage)"]["paper_mean"] == ""


def test_smoke_is_marked_and_shows_no_paper(table1, finding):
    del table1
    cells = narrow(get("table1").cells, Wanted(noise=("worst",), learner=("sop+",), ratio=(0.2,)))
    blocks = compare(get("table1"), cells, [finding("Uniform", 12.0)], smoke=True)
    text = to_markdown(get("table1"), blocks, {}, smoke=True)
    assert SMOKE in text
    assert "81.9" not in text
    assert "| Uniform | 12.0 | 1 |" in text
    assert "order" not in text
    assert all(row["smoke"] == "True" for row in csv.DictReader(io.StringIO(to_csv(get("table1"), blocks, smoke=True))))


def test_bins():
    bins = {
        "CIFAR-10N worst": (2, [Bin(0, 1, 10, 0.5, 0.25), Bin(1.5, 2, 12, 1.75, 0.75)]),
        "CIFAR-10N random": (0, []),
    }
    text = to_markdown(get("fig2"), (), bins)
    assert "## CIFAR-10N worst, 2 trainings" in text
    assert "| 2 | 1.5 | 2 | 12 | 75.0 |" in text
    assert "Pearson's correlation is 1.00, Spearman's 1.00." in text
    assert text.rstrip().endswith(NOT_RUN)
    rows = list(csv.DictReader(io.StringIO(bins_to_csv(get("fig2"), bins))))
    assert [(row["bin"], row["accuracy"], row["examples"]) for row in rows] == [
        ("1", "0.25", "10"),
        ("2", "0.75", "12"),
    ]


def test_spread_and_small_numbers():
    assert with_spread(Found(0.0123, None, 1)) == "0.012"
    assert with_spread(Published(0.8)) == "0.8"
    assert with_spread(Found(84.96, 0.04, 2)) == "85.0 ± 0.0"


def test_texts_replace_older_ones(tmp_path):
    write_text(tmp_path / "a.md", "one ± two\n")
    write_text(tmp_path / "a.md", "three\n", force=True)
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == "three\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
