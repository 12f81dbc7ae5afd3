import math

import numpy as np
import pytest
from tests.oracles.ranking import (
    assert_follows_the_examples,
    assert_ranks_by,
    assert_same_from_disk_in_blocks,
    distinct,
    instance,
)
from tests.planted import EASY, HARD, MISLABELLED, N, assert_twins_side_by_side, places

from prune4rel.methods.entropy import entropies


def entropy(p):
    return -math.fsum(x * math.log(x) for x in map(float, p) if x > 0)


@pytest.mark.parametrize("seed", range(12))
def test_ranks_by_the_entropy_of_the_predicted_classes(seed):
    arrays = instance(seed)
    assert_ranks_by("entropy", arrays, [entropy(p) for p in arrays["probabilities"]], keep="highest")


def test_from_certain_to_clueless():
    assert entropies(np.eye(4)).tolist() == [0.0] * 4
    assert entropies(np.full((1, 8), 1 / 8))[0] == pytest.approx(math.log(8))


def test_follows_the_examples():
    assert_follows_the_examples("entropy", distinct())


def test_blocks_on_disk(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("entropy", monkeypatch, tmp_path)


def test_hard_first_and_what_the_model_is_sure_of_last_mislabelled_or_not():
    place = places("entropy")
    assert place[HARD] == 0
    assert {place[EASY], place[MISLABELLED]} == {N - 2, N - 1}
    assert_twins_side_by_side(place)
