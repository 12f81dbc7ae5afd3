from contextlib import contextmanager

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from prune4rel.errors import InputError
from prune4rel.judging import judge
from prune4rel.progress import Progress


def mixture(n, classes, distance, wrong, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    rows = distance * np.eye(classes, 20)[true] + rng.normal(size=(n, 20))
    moved = rng.random(n) < wrong
    return rows, true, np.where(moved, (true + rng.integers(1, classes, n)) % classes, true)


@pytest.mark.parametrize("wrong", [0.01, 0.05, 0.4])
def test_finds_wrong_labels_and_what_they_should_be(wrong):
    rows, true, given = mixture(2000, 5, 6.0, wrong)
    found = judge(rows, given)
    assert (np.where(found.is_label_issue, found.predicted_label, given) == true).mean() > 0.98
    rate = (given != true).mean()
    assert abs(found.noise_rate - rate) < 0.03
    assert found.noise_rate_interval[0] < rate < found.noise_rate_interval[1]
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(found.noise_matrix.sum(axis=1), 1)
    assert (found.confidence >= found.label_score - 1e-6).all()


def test_clean_labels_are_left_alone():
    rows, _, given = mixture(2000, 5, 3.0, 0.0)
    assert judge(rows, given).is_label_issue.mean() < 0.01


def test_the_same_on_any_number_of_threads(monkeypatch):
    rows, _, given = mixture(9000, 3, 2.0, 0.2)
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PRUNE4REL_THREADS", threads)
        results.append(judge(rows, given).probabilities)
    np.testing.assert_array_equal(*results)


def test_sparse_embeddings_are_judged_like_dense_ones():
    rows, _, given = mixture(500, 3, 4.0, 0.1)
    rows[np.abs(rows) < 0.5] = 0
    dense, sparse = judge(rows, given), judge(csr_matrix(rows), given)
    np.testing.assert_allclose(dense.label_score, sparse.label_score, atol=1e-4)


def test_copies_do_not_vouch_for_each_other():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(600, 100)), rng.integers(0, 2, 600)
    twins, given = np.repeat(rows, 2, axis=0), np.repeat(labels, 2)
    alone = judge(twins, given, groups=np.repeat(np.arange(600), 2))
    assert "no more of the labels than chance" in alone.notes[0]
    vouched = judge(twins, given)  # without groups they do
    assert not any("chance" in note for note in vouched.notes)


def test_what_is_settled_or_removed():
    rows, true, given = mixture(600, 3, 5.0, 0.2)
    wrong = given != true
    verified, removed = wrong & (np.arange(600) % 2 == 0), wrong & (np.arange(600) % 2 == 1)
    found = judge(rows, given, verified=verified, removed=removed)
    assert not found.is_label_issue[wrong].any()
    np.testing.assert_array_equal(found.label_score[verified], 1.0)
    assert found.noise_rate < 0.05


def test_settling_the_most_suspicious_makes_the_others_look_no_cleaner():
    rows, true, given = mixture(2000, 5, 2.0, 0.4)
    before = judge(rows, given)
    looked_at = np.isin(np.arange(2000), np.argsort(before.label_score)[:300])
    after = judge(rows, given, decided=np.where(looked_at, true, -1))
    np.testing.assert_array_equal(after.predicted_label[looked_at], true[looked_at])
    np.testing.assert_array_equal(after.label_score[looked_at], (given == true)[looked_at])
    np.testing.assert_allclose(np.diag(after.noise_matrix), np.diag(before.noise_matrix), atol=0.06)

    def right(found):
        return (np.where(found.is_label_issue, found.predicted_label, given) == true)[~looked_at].mean()

    assert right(after) > right(before) - 0.01
    in_their_place = judge(rows, np.where(looked_at, true, given), verified=looked_at)
    assert np.diag(in_their_place.noise_matrix).mean() > np.diag(before.noise_matrix).mean() + 0.1


def test_pure_noise_is_said():
    rng = np.random.default_rng(0)
    found = judge(rng.normal(size=(1500, 20)), rng.integers(0, 4, 1500))
    assert np.isnan(found.noise_rate)
    assert not found.is_label_issue.any()
    assert "chance" in found.notes[0]


@pytest.mark.parametrize("labels", [[3], [0, 1], [1, 1, 1, 1], [0, 0, 1], [0, 1, 2, 3, 4, 5], [0] * 20 + [1]])
def test_few_labels_are_no_trouble(labels):
    found = judge(np.random.default_rng(0).normal(size=(len(labels), 4)), labels)
    assert not found.is_label_issue.any()
    assert np.isfinite(found.probabilities).all()
    assert found.notes


def test_small_classes_count_as_right():
    rows, _, given = mixture(500, 4, 5.0, 0.1)
    given[0], given[1:3] = 6, 8  # class 6 has one member and class 8 two; nobody is of 4, 5 and 7
    found = judge(rows, given, n_classes=10)
    assert not found.is_label_issue[:3].any()
    assert "2 classes have fewer than 3 examples" in found.notes[0]
    assert found.probabilities.shape == (500, 10)
    assert found.is_label_issue[3:].mean() == pytest.approx(0.1, abs=0.05)


def test_own_probabilities_alone_and_beside_embeddings():
    rows, true, given = mixture(1500, 3, 1.5, 0.2)
    rng = np.random.default_rng(1)
    own = rng.dirichlet(np.ones(3), 1500) + 2 * np.eye(3)[true]
    own /= own.sum(axis=1, keepdims=True)
    alone, both, features = (
        judge(None, given, probabilities=own),
        judge(rows, given, probabilities=own),
        judge(rows, given),
    )
    right = [(found.predicted_label == true).mean() for found in (features, alone, both)]
    assert right[0] < right[1] <= right[2] + 0.01
    assert both.options["weight_of_probabilities"] > 0


def test_probabilities_that_were_fitted_to_the_labels_are_noticed():
    _, _, given = mixture(300, 3, 1.0, 0.2)
    found = judge(None, given, probabilities=0.1 / 3 + 0.9 * np.eye(3)[given])
    assert "agree with 100.0% of the given labels" in found.notes[0]


class Listener(Progress):
    """Adds up what it is told."""

    told = 0.0

    @contextmanager
    def task(self, name, total):
        assert name == "judging labels"

        def advance(amount):
            self.told += amount / total

        yield advance


def test_progress_is_told():
    rows, _, given = mixture(300, 3, 4.0, 0.1)
    listener = Listener()
    judge(rows, given, progress=listener)
    assert listener.told == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"embeddings": np.zeros((0, 3)), "labels": np.zeros(0, int)}, "labels are empty"),
        ({"embeddings": None, "labels": [0, 1]}, "give embeddings, or probabilities"),
        ({"embeddings": np.zeros((3, 2)), "labels": [0, 1]}, "embeddings must have one row"),
        ({"embeddings": np.zeros((2, 2)), "labels": [0, -1]}, "whole numbers from 0 on"),
        ({"embeddings": np.zeros((2, 2)), "labels": [0.5, 1]}, "whole numbers from 0 on"),
        ({"embeddings": np.zeros((2, 2)), "labels": [0, 1], "verified": [True]}, "verified must have one entry"),
        ({"embeddings": np.eye(3), "labels": [0, 1, 1], "decided": [-1, 2, -1]}, "decided must be classes below 2"),
        ({"embeddings": None, "labels": [0, 1], "probabilities": np.ones((2, 3))}, "3 columns for 2 classes"),
    ],
)
def test_what_cannot_be_judged_is_refused(words, message):
    with pytest.raises(InputError, match=message):
        judge(**words)
