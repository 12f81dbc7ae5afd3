import numpy as np
import pytest
from tests.oracles.ranking import assert_ranks_by
from tests.planted import planted

from prune4rel import select


def test_labels_are_all_it_needs():
    chosen = select("uniform", labels=np.arange(50) % 5, ratio=0.4)
    assert len(set(chosen.indices)) == 20
    assert chosen.scores.shape == (50,)
    assert np.isnan(chosen.objective)


def test_every_example_is_as_likely_as_any_other():
    counts = np.zeros(10)
    for seed in range(200):
        counts[select("uniform", labels=np.zeros(10, dtype=int), size=5, seed=seed).indices] += 1
    assert counts.sum() == 1000
    assert 70 < counts.min() <= counts.max() < 130


def test_larger_selections_contain_smaller_ones():
    labels = np.arange(30) % 3
    small, large = (select("uniform", labels=labels, size=size, seed=7).indices for size in (8, 20))
    assert large[:8].tolist() == small.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_ranks_by_random_numbers_from_the_seed(seed):
    labels = np.arange(25) % 4
    expected = np.random.default_rng(seed).random(25)
    assert_ranks_by("uniform", {"labels": labels}, expected, keep="highest", seed=seed)


def test_balanced_is_stratified_with_equal_counts():
    labels = np.repeat([0, 1, 2], [3, 30, 60])
    for seed in range(5):
        chosen = select("uniform", labels=labels, size=23, balanced=True, seed=seed)
        assert np.bincount(chosen.labels).tolist() == [3, 10, 10]


def test_easy_hard_mislabelled_or_a_duplicate_makes_no_difference():
    with_signals = select("uniform", planted(), ratio=0.3, seed=2)
    labels_alone = select("uniform", labels=planted().labels, ratio=0.3, seed=2)
    assert with_signals.indices.tolist() == labels_alone.indices.tolist()
