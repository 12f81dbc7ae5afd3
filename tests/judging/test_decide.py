import numpy as np
import pytest

from prune4rel.errors import InputError
from prune4rel.judging import judge
from prune4rel.judging.again import cast_label_votes, cast_votes
from prune4rel.judging.decide import SHARE, SURELY, Grounds, decide


def mixture(n, distance, classes=6, width=24, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    centres = rng.normal(size=(classes, width))
    rows = distance * centres[truth] / np.sqrt(width) + rng.normal(size=(n, width))
    return rows.astype(np.float32), truth


def spoilt(truth, rate, seed=1):
    rng = np.random.default_rng(seed)
    moved = rng.random(len(truth)) < rate
    return np.where(moved, (truth + rng.integers(1, truth.max() + 1, len(truth))) % (truth.max() + 1), truth)


@pytest.mark.parametrize("distance", [1.0, 2.0, 3.0, 6.0])
@pytest.mark.parametrize("rate", [0.0, 0.03, 0.2, 0.4])
def test_correcting_never_leaves_fewer_labels_right(distance, rate):
    rows, truth = mixture(3000, distance)
    given = spoilt(truth, rate)
    found = judge(rows, given)
    corrected = np.where(found.is_label_issue, found.predicted_label, given)
    assert (corrected == truth).mean() >= (given == truth).mean()


def test_heads_that_curved_classes_mislead_change_nothing():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 12)).astype(np.float32)
    score = np.abs(rows[:, 0]) + 0.7 * rows[:, 1] * rows[:, 2] + 0.5 * rows[:, 3]
    truth = np.digitize(score, np.quantile(score, [0.25, 0.5, 0.75]))
    found = judge(rows, truth)
    assert (found.predicted_label == truth).all()
    assert found.is_label_issue.mean() <= SHARE * found.stats["disagree"]


def test_what_nobody_can_tell_is_flagged_by_a_third_and_kept():
    q, given = np.random.default_rng(0).dirichlet(np.ones(4), 900).astype(np.float32), np.zeros(900, np.int64)
    before = q[:, 0].copy()
    found = decide(q.copy(), given, np.ones(900, bool), Grounds(900, [1.0, 1.0001], 0.6, -0.1))
    assert found.verdict == "undecided"
    assert (found.predicted == given).all()
    assert found.issues.sum() == int(SHARE * 0.6 * 900)
    assert before[found.issues].max() <= before[~found.issues].min()
    assert 1 - found.probabilities[:, 0].mean() == pytest.approx(SHARE * 0.6, abs=1e-3)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("told", [0.0, 0.05, 0.4])
def test_a_share_that_is_told_holds_and_keeps_the_order(told):
    rows, truth = mixture(1500, 2.0)
    given = spoilt(truth, 0.1)
    alone, found = judge(rows, given), judge(rows, given, noise_rate=told)
    assert found.is_label_issue.sum() == round(told * 1500)
    assert (found.predicted_label != given).sum() == round(SURELY * round(told * 1500))
    assert found.noise_rate == pytest.approx(told, abs=2e-3)
    lowest = np.sort(np.argsort(alone.label_score, kind="stable")[: round(told * 1500)])
    assert np.isin(np.flatnonzero(found.is_label_issue), lowest).mean() > 0.97 if told else True
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-5)


def test_settled_labels_are_no_issue_whatever_is_told():
    rows, truth = mixture(400, 3.0)
    settled = np.arange(400) < 200
    found = judge(rows, spoilt(truth, 0.2), verified=settled, noise_rate=0.5)
    assert not found.is_label_issue[settled].any()
    assert found.is_label_issue[~settled].sum() == 100


def test_a_share_that_is_none_is_refused():
    with pytest.raises(InputError, match="share from 0"):
        judge(np.eye(4), [0, 1, 0, 1], noise_rate=1.5)


def test_votes_for_labels_are_those_of_certain_examples():
    rng = np.random.default_rng(0)
    labels, near = rng.integers(0, 5, 200), rng.integers(0, 200, (200, 7))
    weights = rng.random((200, 7), dtype=np.float32) * (rng.random((200, 7)) < 0.8)
    certain = cast_votes(np.eye(5, dtype=np.float32)[labels], near, weights)
    some = np.array([3, 100, 17])
    np.testing.assert_allclose(cast_label_votes(labels, 5, near[some], weights[some]), certain[some], atol=1e-5)
