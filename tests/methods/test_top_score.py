import numpy as np
import pytest
from tests.oracles.ranking import assert_follows_the_examples, assert_ranks_by
from tests.planted import EASY, HARD, MISLABELLED, N, assert_twins_side_by_side, places


@pytest.mark.parametrize("seed", range(6))
def test_ranks_by_the_given_scores(seed):
    rng = np.random.default_rng(seed)
    scores = rng.choice([-np.inf, -1.5, 0.0, 2.0, np.inf], 20) if seed % 2 else rng.normal(size=20)
    assert_ranks_by("top-score", {"labels": rng.integers(0, 3, 20), "scores": scores}, scores, keep="highest")


def test_follows_the_examples(rng):
    assert_follows_the_examples("top-score", {"labels": rng.integers(0, 3, 40), "scores": rng.normal(size=40)})


def test_what_scores_highest_comes_first():
    place = places("top-score")
    assert [place[x] for x in (MISLABELLED, HARD, EASY)] == [0, 1, N - 1]
    assert_twins_side_by_side(place)
