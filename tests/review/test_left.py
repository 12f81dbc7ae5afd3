"""What is left to expect: held against the truth, drawn many times over."""

import numpy as np
import pytest

from prune4rel.review import expect_left
from prune4rel.review.left import Expectation, ScoreBins


def drawn(seed, n=1500):
    """Scores, and labels that are wrong more or less often than scores claim: by how much is drawn, too."""
    rng = np.random.default_rng(seed)
    claimed = np.concatenate([rng.normal(-5, 2, n - n // 4), rng.normal(3, 2, n // 4)])
    off = rng.choice([0.3, 1.0, 3.0]) * rng.normal() + rng.normal(scale=0.3) * np.sin(claimed)
    wrong = rng.random(n) < 1 / (1 + np.exp(-claimed - off))
    return 1 / (1 + np.exp(claimed)), wrong, rng


@pytest.mark.parametrize("by", ["suspicion", "chance"])
@pytest.mark.parametrize("decisions", [0, 30, 300])
def test_nine_in_ten_intervals_hold_the_truth(by, decisions):
    held, widths = [], []
    for seed in range(40):
        score, wrong, rng = drawn(seed)
        order = np.argsort(score) if by == "suspicion" else rng.permutation(len(score))
        reviewed = np.zeros(len(score), dtype=bool)
        reviewed[order[:decisions]] = True
        rows = np.flatnonzero(~reviewed)
        left = expect_left(score, reviewed, reviewed & wrong, rows)
        assert left.low <= left.expected <= left.high
        held.append(left.low <= wrong[rows].sum() <= left.high)
        widths.append(left.high - left.low)
    assert np.mean(held) >= 0.8  # 0.9, and what chance takes away of forty
    assert np.median(widths) < 1000


def test_believes_the_scores_until_somebody_decides():
    score, _, _ = drawn(0)
    nobody = np.zeros(len(score), dtype=bool)
    left = expect_left(score, nobody, nobody, np.arange(len(score)))
    assert left.expected == pytest.approx((1 - score).sum(), rel=1e-6)


def test_parts_come_to_the_whole():
    score, wrong, _ = drawn(1)
    reviewed = np.arange(len(score)) % 10 == 0
    expectation = Expectation(ScoreBins(score), reviewed, reviewed & wrong)
    rows = np.flatnonzero(~reviewed)
    parts = [expectation.among(some).expected for some in (rows[:100], rows[100:])]
    assert sum(parts) == pytest.approx(expectation.among(rows).expected)


def test_much_evidence_beats_the_scores_and_narrows_the_range():
    n = 4000
    rng = np.random.default_rng(0)
    wrong = rng.random(n) < 0.2
    widths = []
    for seen in (40, 400, 2000):
        reviewed = np.arange(n) < seen
        left = expect_left(np.full(n, 0.999), reviewed, reviewed & wrong, np.flatnonzero(~reviewed))
        assert left.low <= wrong[seen:].sum() <= left.high
        widths.append((left.high - left.low) / (n - seen))
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.06


@pytest.mark.parametrize("score", [[0.5], [1.0], [0.0], [0.3] * 7, [0.0, 1.0, 1.0]])
def test_few_and_extreme_scores(score):
    score = np.array(score, dtype=float)
    nobody = np.zeros(len(score), dtype=bool)
    left = expect_left(score, nobody, nobody, np.arange(len(score)))
    assert 0 <= left.low <= left.expected <= left.high <= len(score)
    everybody = ~nobody
    assert expect_left(score, everybody, nobody, np.arange(0)).high == 0
