import math
from fractions import Fraction

import numpy as np
import pytest
from tests.oracles.ranking import (
    assert_follows_the_examples,
    assert_same_from_disk_in_blocks,
    distinct,
    instance,
    sizes,
)
from tests.planted import DUPLICATE, EASY, HARD, MISLABELLED, ORIGINAL, N, places, planted

import prune4rel as p4r
from prune4rel.methods.ccs import coverage_order, label_margins, strata_of


def label_margin(p, y):
    return float(p[y]) - max([float(p[c]) for c in range(len(p)) if c != y], default=0.0)


def stratum_of(score, low, high, strata):
    """Look for the range that holds the score; exactly, for the borders lie at fractions."""
    low, high, score = Fraction(low), Fraction(high), Fraction(score)
    width = (high - low) / strata
    return next(
        (k for k in range(strata) if low + k * width <= score < low + (k + 1) * width), strata - 1 if width else 0
    )


def budgets(counts, size):
    """The paper's loop: the smallest stratum takes its even share of what is left, and leaves."""
    left, budget = dict(counts), {}
    while left:
        k = min(left, key=lambda k: (left[k], k))
        budget[k] = min(left[k], (size - sum(budget.values())) // len(left))
        del left[k]
    return budget


def assert_covers(picks, scores, size, *, beta, strata):
    """Right counts in all strata; what was dropped comes last, from the highest score down."""
    n = len(scores)
    ranking = sorted(range(n), key=lambda x: (-scores[x], x))
    survivors = n - min(n - 1, math.floor(Fraction(beta).limit_denominator(1000) * n))
    kept, dropped = ranking[:survivors], ranking[survivors:]
    low, high = min(scores[x] for x in kept), max(scores[x] for x in kept)
    of = {x: stratum_of(scores[x], low, high, strata) for x in kept}
    counts = {k: list(of.values()).count(k) for k in set(of.values())}
    fresh = min(size, survivors)
    assert {k: sum(of.get(x) == k for x in picks[:fresh]) for k in counts} == budgets(counts, fresh)
    assert picks[fresh:] == dropped[: size - fresh]


@pytest.mark.parametrize("strata", [1, 4, 50])
@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(12))
def test_every_size_covers_the_strata_as_the_papers_loop_does(seed, beta, strata):
    arrays = instance(seed)
    labels = arrays["labels"]
    scores = [label_margin(p, y) for p, y in zip(arrays["probabilities"], labels, strict=True)]
    options = {"beta": beta, "strata": strata, "seed": seed}
    every = p4r.select("ccs", **arrays, size=len(scores), **options)
    np.testing.assert_array_equal(every.scores, scores)
    np.testing.assert_array_equal(every.gains, -np.arange(len(scores)))
    for size in range(1, len(scores) + 1):
        assert_covers(every.indices[:size].tolist(), scores, size, beta=beta, strata=strata)
    for size in sizes(len(scores)):
        picks = p4r.select("ccs", **arrays, size=size, **options).indices
        assert picks.tolist() == every.indices[:size].tolist()


@pytest.mark.parametrize("seed", range(12))
def test_balanced_treats_every_class_as_a_data_set_of_its_own(seed):
    arrays = instance(seed)
    labels = arrays["labels"]
    size = max(1, len(labels) // 2)
    chosen = p4r.select("ccs", **arrays, size=size, beta=0.2, strata=4, balanced=True)
    by_turns = p4r.select("top-score", labels=labels, scores=chosen.scores, size=size, balanced=True)
    assert chosen.labels.tolist() == by_turns.labels.tolist()
    for c in set(labels.tolist()):
        members = np.flatnonzero(labels == c).tolist()
        picks = [members.index(x) for x in chosen.indices.tolist() if labels[x] == c]
        assert_covers(picks, chosen.scores[members].tolist(), len(picks), beta=0.2, strata=4)


def test_given_areas_go_first(small):
    given = np.arange(30.0)
    chosen = p4r.select("ccs", **small, aum=given, size=27)
    np.testing.assert_array_equal(chosen.scores, given)
    assert sorted(chosen.indices.tolist()) == list(range(3, 30))
    assert chosen.notes == ()


def test_says_when_it_had_to_take_what_it_dropped():
    chosen = p4r.select("ccs", labels=np.zeros(10, int), aum=np.arange(10.0), size=9, beta=0.3)
    assert chosen.indices[-2:].tolist() == [2, 1]
    assert chosen.stats["dropped_but_taken"] == 2
    assert "2 of the picks" in chosen.notes[0]


def test_a_share_that_floats_cannot_hold_drops_as_many_as_written(rng):
    order = coverage_order(np.arange(100.0), beta=0.29, strata=1, rng=rng)  # 0.29 * 100 is 28.999...
    assert order[-29:].tolist() == list(range(29))[::-1]


def test_draws_at_random_inside_a_stratum(rng):
    runs, aum = 3000, np.r_[np.zeros(4), np.ones(2)]
    kept = np.zeros((runs, 6))
    for run in range(runs):
        kept[run, coverage_order(aum, beta=0.0, strata=50, rng=rng)[:2]] = 1
    np.testing.assert_allclose(kept.mean(axis=0), [0.25] * 4 + [0.5] * 2, atol=0.04)


def test_margins_of_one_class_and_of_half_precision():
    assert label_margins(np.ones((2, 1)), np.zeros(2, int)).tolist() == [1.0, 1.0]
    assert label_margins(np.array([[0.25, 0.75]], dtype=np.float16), np.array([0])).tolist() == [-0.5]


def test_more_strata_than_examples_and_equal_scores():
    assert strata_of(np.array([0.0, 0.5, 1.0]), 10**9).tolist() == [0, 5 * 10**8, 10**9 - 1]
    assert strata_of(np.full(3, 7.0), 50).tolist() == [0, 0, 0]


@pytest.mark.parametrize("options", [{"beta": 1.0}, {"beta": -0.1}, {"beta": math.nan}, {"strata": 0}, {"strata": 2.5}])
def test_refuses_what_makes_no_sense(small, options):
    with pytest.raises(p4r.InputError, match=next(iter(options))):
        p4r.select("ccs", **small, size=1, **options)


def test_refuses_infinite_areas():
    with pytest.raises(p4r.InputError, match="row 1 is infinite"):
        p4r.select("ccs", labels=[0, 0], aum=[1.0, -math.inf], size=1)


def test_follows_the_examples():
    assert_follows_the_examples("ccs", distinct())


def test_blocks_on_disk(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("ccs", monkeypatch, tmp_path)


def test_mislabelled_last_of_all():
    assert all(places("ccs", seed=seed)[MISLABELLED] == N - 1 for seed in range(5))


def test_the_lone_hard_and_easy_examples_are_kept_more_often_than_the_duplicates_in_the_crowd():
    runs = [set(p4r.select("ccs", planted(), ratio=0.4, seed=seed).indices.tolist()) for seed in range(40)]
    often = {x: sum(x in run for run in runs) for x in (HARD, EASY, ORIGINAL, DUPLICATE)}
    beta = 1 / N  # drops the mislabelled one alone, not the hard one
    gentle = [set(p4r.select("ccs", planted(), ratio=0.4, seed=seed, beta=beta).indices.tolist()) for seed in range(40)]
    assert often[HARD] == 0
    assert all({HARD, EASY} <= run for run in gentle)
    assert max(often[ORIGINAL], often[DUPLICATE]) < often[EASY] == 40
