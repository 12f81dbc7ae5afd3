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

from prune4rel import select
from prune4rel.methods.small_loss import cross_entropy
from prune4rel.signals import Signals

PROBABILITIES = [[0.9, 0.1], [0.4, 0.6], [1.0, 0.0], [0.5, 0.5]]


def test_loss_is_the_cross_entropy_of_the_given_label():
    signals = Signals(labels=[0, 0, 1, 1], probabilities=PROBABILITIES)
    np.testing.assert_allclose(cross_entropy(signals), [-np.log(0.9), -np.log(0.4), np.inf, -np.log(0.5)])


def test_smallest_losses_come_first_and_impossible_labels_last():
    chosen = select("small-loss", labels=[0, 0, 1, 1], probabilities=PROBABILITIES, size=4)
    assert chosen.indices.tolist() == [0, 3, 1, 2]
    assert chosen.gains[-1] == -np.inf


def test_given_losses_go_before_the_probabilities():
    chosen = select("small-loss", labels=[0, 0, 1, 1], probabilities=PROBABILITIES, losses=[4, 3, 2, 1], size=2)
    assert chosen.indices.tolist() == [3, 2]
    assert set(chosen.provenance["sha256"]) == {"labels", "losses", "probabilities"}


def test_losses_alone_suffice():
    assert select("small-loss", labels=[0, 1], losses=[2.0, 1.0], size=1).indices.tolist() == [1]


def loss(p, y):
    return -math.log(p[y]) if p[y] > 0 else math.inf


@pytest.mark.parametrize("seed", range(12))
def test_ranks_by_the_loss_of_the_given_label(seed):
    arrays = instance(seed)
    expected = [loss(p, y) for p, y in zip(arrays["probabilities"], arrays["labels"], strict=True)]
    assert_ranks_by("small-loss", arrays, expected, keep="lowest")


def test_follows_the_examples():
    assert_follows_the_examples("small-loss", distinct())


def test_blocks_on_disk(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("small-loss", monkeypatch, tmp_path)


def test_easy_first_then_hard_and_mislabelled_last():
    place = places("small-loss")
    assert [place[x] for x in (EASY, HARD, MISLABELLED)] == [0, N - 2, N - 1]
    assert_twins_side_by_side(place)
