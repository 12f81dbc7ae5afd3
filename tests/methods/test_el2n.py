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

import prune4rel as p4r


def error_norm(p, y):
    return math.sqrt(math.fsum((float(p[c]) - (c == y)) ** 2 for c in range(len(p))))


@pytest.mark.parametrize("seed", range(12))
def test_ranks_by_the_distance_from_the_given_label(seed):
    arrays = instance(seed)
    expected = [error_norm(p, y) for p, y in zip(arrays["probabilities"], arrays["labels"], strict=True)]
    assert_ranks_by("el2n", arrays, expected, keep="highest")


def test_given_averages_go_first(small):
    given = np.arange(30.0)
    chosen = p4r.select("el2n", **small, el2n=given, size=3)
    assert chosen.indices.tolist() == [29, 28, 27]
    np.testing.assert_array_equal(chosen.scores, given)


def test_follows_the_examples():
    assert_follows_the_examples("el2n", distinct())


def test_blocks_on_disk(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("el2n", monkeypatch, tmp_path)


def test_mislabelled_first_then_hard_and_easy_last():
    place = places("el2n")
    assert place[MISLABELLED] == 0
    assert place[HARD] == 1
    assert place[EASY] == N - 1
    assert_twins_side_by_side(place)
