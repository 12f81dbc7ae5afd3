import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.errors import InputError
from prune4rel.learners.losses import clean_probabilities, most_trusted


def two_heaps(m=200, share=0.7, seed=0):
    rng = np.random.default_rng(seed)
    low = rng.random(m) < share
    return np.where(low, rng.normal(0.3, 0.1, m), rng.normal(2.5, 0.3, m)), low


@pytest.mark.parametrize("seed", range(5))
def test_tells_two_heaps_apart(seed):
    losses, low = two_heaps(seed=seed)
    clean = clean_probabilities(losses, seed)
    np.testing.assert_array_equal(clean > 0.5, low)


def test_is_the_posterior_of_the_lower_gaussian():
    losses, _ = two_heaps(m=2000)
    clean = clean_probabilities(losses, 0)
    scaled = (losses - losses.min()) / (losses.max() - losses.min())
    low, high = scaled[clean > 0.5], scaled[clean <= 0.5]
    densities = [
        len(part) * np.exp(-((scaled - part.mean()) ** 2) / (2 * (part.var() + 5e-4))) / np.sqrt(part.var() + 5e-4)
        for part in (low, high)
    ]
    np.testing.assert_allclose(clean, densities[0] / sum(densities), atol=0.02)


def test_scale_and_place_do_not_matter():
    losses, _ = two_heaps()
    np.testing.assert_allclose(clean_probabilities(losses, 4), clean_probabilities(7 * losses + 3, 4), atol=1e-9)


def test_same_seed_same_answer():
    losses = np.random.default_rng(0).exponential(size=50)
    np.testing.assert_array_equal(clean_probabilities(losses, 5), clean_probabilities(losses, 5))


@pytest.mark.parametrize("m", [1, 2, 30])
def test_equal_losses_speak_against_nobody(m):
    assert clean_probabilities(np.full(m, 0.7), 0).tolist() == [1.0] * m


def test_a_loss_that_is_no_number_is_not_trusted():
    losses, low = two_heaps()
    losses[[3, 8]] = np.nan, np.inf
    clean = clean_probabilities(losses, 0)
    assert clean[[3, 8]].tolist() == [0, 0]
    others = np.setdiff1d(np.arange(200), [3, 8])
    np.testing.assert_array_equal((clean > 0.5)[others], low[others])


def test_nothing_but_no_numbers_is_an_error():
    with pytest.raises(InputError, match="the network has diverged; lower the learning rate"):
        clean_probabilities(np.full(4, np.nan), 0)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=20))
def test_any_losses_give_probabilities(losses):
    clean = clean_probabilities(np.array(losses), 0)
    assert ((clean >= 0) & (clean <= 1)).all()


def test_two_examples_are_told_apart():
    assert (clean_probabilities(np.array([3.0, 0.1]), 0) > 0.5).tolist() == [False, True]


def test_whoever_passed_is_trusted():
    trusted = np.array([False, True, False])
    assert most_trusted(np.array([0.9, 0.1, 0.2]), trusted) is trusted


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([0.2], [True]), ([0.2, 0.2], [True, False]), ([0.1, 0.3, 0.2, 0.3, 0.0], [False, True, True, True, False])],
)
def test_where_nobody_passed_the_better_half_is_trusted(scores, expected):
    assert most_trusted(np.array(scores), np.zeros(len(scores), dtype=bool)).tolist() == expected
