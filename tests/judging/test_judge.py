import numpy as np
import pytest

from prune4rel.errors import InputError
from prune4rel.judging import judge


def mixture(n, classes, distance, wrong, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    rows = distance * np.eye(classes, 20)[true] + rng.normal(size=(n, 20))
    moved = rng.random(n) < wrong
    return rows, true, np.where(moved, (true + rng.integers(1, classes, n)) % classes, true)


@pytest.mark.parametrize("wrong", [0.05, 0.4])
def test_finds_wrong_labels_and_what_they_should_be(wrong):
    rows, true, given = mixture(2000, 5, 6.0, wrong)
    found = judge(rows, given)
    assert (np.where(found.is_label_issue, found.predicted_label, given) == true).mean() > 0.98
    assert abs(found.noise_rate - (given != true).mean()) < 0.03
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-5)


def test_the_same_on_any_number_of_threads(monkeypatch):
    rows, _, given = mixture(9000, 3, 2.0, 0.2)
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PRUNE4REL_THREADS", threads)
        results.append(judge(rows, given).probabilities)
    np.testing.assert_array_equal(*results)


def test_nothing_to_judge_is_refused():
    with pytest.raises(InputError, match="labels are empty"):
        judge(np.zeros((0, 3)), [])
    with pytest.raises(InputError, match="give embeddings, or probabilities"):
        judge(None, [0, 1])
