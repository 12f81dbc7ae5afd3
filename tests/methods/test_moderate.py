import math
import statistics

import numpy as np
import pytest
from tests.oracles.ranking import (
    assert_follows_the_examples,
    assert_same_from_disk_in_blocks,
    distinct,
    instance,
    sizes,
)
from tests.planted import DUPLICATE, EASY, HARD, MISLABELLED, ORIGINAL, planted

import prune4rel as p4r
from prune4rel.engines.local import LocalEngine
from prune4rel.methods.moderate import median_distances, middle_scores


def distances(embeddings, labels):
    rows = np.asarray(embeddings, dtype=np.float32).tolist()
    result = []
    for row, label in zip(rows, labels, strict=True):
        others = [other for other, theirs in zip(rows, labels, strict=True) if theirs == label]
        result.append(math.dist(row, [statistics.median(column) for column in zip(*others, strict=True)]))
    return result


def outwards(members, distance):
    """Return the members from the middle of their ranking outwards, the lower of two equals first."""
    ranking = sorted(members, key=lambda x: (distance[x], x))
    start = (len(ranking) - 1) // 2
    order, below, above = [ranking[start]], start - 1, start + 1
    while len(order) < len(ranking):
        nearer_below = start_gap(ranking, below) <= start_gap(ranking, above)
        if below >= 0 and (nearer_below or above >= len(ranking)):
            order.append(ranking[below])
            below -= 1
        else:
            order.append(ranking[above])
            above += 1
    return order


def start_gap(ranking, rank):
    return abs(rank - (len(ranking) - 1) / 2)


def go_round(queues, size):
    picks = []
    while len(picks) < size:
        for queue in queues:
            if queue and len(picks) < size:
                picks.append(queue.pop(0))
    return picks


@pytest.mark.parametrize("seed", range(20))
def test_picks_the_middle_outwards(seed):
    arrays = instance(seed)
    labels = arrays["labels"].tolist()
    found = median_distances(LocalEngine(p4r.Signals(labels=arrays["labels"], embeddings=arrays["embeddings"])))
    np.testing.assert_allclose(found, distances(arrays["embeddings"], labels), rtol=1e-12)
    classes = [[x for x in range(len(labels)) if labels[x] == c] for c in sorted(set(labels))]
    for size in sizes(len(labels)):
        chosen = p4r.select("moderate", **arrays, size=size)
        assert chosen.indices.tolist() == outwards(range(len(labels)), found)[:size]
        balanced = p4r.select("moderate", **arrays, size=size, balanced=True)
        assert balanced.indices.tolist() == go_round([outwards(members, found) for members in classes], size)


@pytest.mark.parametrize("n", range(1, 12))
def test_the_band_is_unbroken_and_central(n):
    for size in range(1, n + 1):
        band = np.sort(np.argsort(-middle_scores(np.arange(n, dtype=float), np.zeros(n, int)))[:size])
        assert band.tolist() == list(range((n - size) // 2, (n - size) // 2 + size))


def test_no_two_ranks_tie():
    assert len(set(middle_scores(np.ones(50), np.zeros(50, int)).tolist())) == 50


def test_the_median_not_the_mean():
    rows = np.array([[0.0], [1.0], [100.0]], dtype=np.float32)
    assert median_distances(LocalEngine(p4r.Signals(labels=np.zeros(3, int), embeddings=rows))).tolist() == [
        1.0,
        0.0,
        99.0,
    ]


def test_follows_the_examples():
    assert_follows_the_examples("moderate", distinct())


def test_blocks_on_disk(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("moderate", monkeypatch, tmp_path)


@pytest.mark.parametrize("balanced", [False, True])
def test_easy_hard_and_mislabelled_stay_out_of_the_middle_half_and_duplicates_lie_in_it(balanced):
    kept = set(p4r.select("moderate", planted(), ratio=0.5, balanced=balanced).indices.tolist())
    assert not kept & {EASY, HARD, MISLABELLED}
    assert kept >= {ORIGINAL, DUPLICATE}
