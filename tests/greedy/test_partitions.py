import numpy as np
import pytest
from tests.instances import graph_of, many
from tests.oracles.prune4rel import objective

import prune4rel as p4r
from prune4rel.greedy import lazy_greedy
from prune4rel.greedy.partitions import EdgeList, pick_part
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.similarity import Threshold
from prune4rel.signals import Signals


def like_cifar10n(n=2000, dim=32, seed=0):
    """Ten classes of twenty styles each, four labels in ten wrong, and a model that half believes them."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(10, size=n)
    centres = 1.2 * rng.normal(size=(10, dim))
    styles = 0.8 * rng.normal(size=(10, 20, dim))
    rows = centres[classes] + styles[classes, rng.integers(20, size=n)] + 0.5 * rng.normal(size=(n, dim))
    noisy = np.where(rng.random(n) < 0.4, rng.integers(10, size=n), classes)
    logits = 4 * rows @ centres.T / dim + rng.normal(size=(n, 10))
    odds = np.exp(logits)
    return Signals(labels=noisy, embeddings=rows.astype(np.float32), probabilities=odds / odds.sum(1, keepdims=True))


@pytest.fixture
def tiled():
    """A graph in tiles, and the same in one piece."""
    instance = many(120)
    graph = graph_of(CpuBackend(instance.points), Threshold(0.95, "shifted-cosine"))
    i = np.repeat(np.arange(120), graph.degrees)
    upper = i < graph.indices
    edges = np.stack([i[upper], graph.indices[upper]])
    parts = []
    for tile in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        here = (edges // 50 == np.array(tile)[:, None]).all(axis=0)
        parts.append(Edges(*edges[:, here].astype(np.int32), graph.weights[upper][here]))
    return EdgeList(120, lambda: parts), graph, instance


def dense(graph):
    weights = np.zeros((len(graph), len(graph)))
    weights[np.repeat(np.arange(len(graph)), graph.degrees), graph.indices] = graph.weights
    return weights


def test_rows_degrees_and_support_are_those_of_the_graph(tiled, rng):
    kept, graph, instance = tiled
    whole = dense(graph)
    np.testing.assert_array_equal(kept.degrees(), graph.degrees)
    some, near = rng.random(120) < 0.4, rng.random(120) < 0.6
    np.testing.assert_array_equal(dense(kept.rows(some, near)), whole * some[:, None] * near)
    picks = np.flatnonzero(some)
    support = kept.support(picks, instance.confidence)
    wanted = objective(whole + np.eye(120), instance.confidence, picks)
    assert np.tanh(support).sum() == pytest.approx(wanted, rel=1e-12)


def test_a_part_proposes_its_own_examples_only(tiled):
    kept, graph, instance = tiled
    members = np.arange(120) % 3 == 1
    everyone = np.ones(120, dtype=bool)
    groups = np.arange(120) % 2
    proposed = pick_part(kept.rows(members, everyone), members, 40, "coverage", (instance.confidence, groups))
    assert members[proposed].all()
    assert len(set(proposed.tolist())) == len(proposed) >= 38
    alone = pick_part(graph, everyone, 30, "coverage", (instance.confidence, None))
    np.testing.assert_array_equal(alone, lazy_greedy(graph, instance.confidence, 30, gain="coverage").indices)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("ratio", [0.05, 0.2])
def test_eight_parts_are_within_three_percent_of_exact(ratio, balanced):
    signals = like_cifar10n()
    exact = p4r.select("prune4rel", signals, ratio=ratio, balanced=balanced)
    found = p4r.select("prune4rel", signals, ratio=ratio, balanced=balanced, partitions=8)
    assert found.approximate
    assert found.stats["objective_exact"] == pytest.approx(exact.objective, rel=1e-9)
    assert found.stats["objective_share"] == pytest.approx(found.objective / exact.objective, rel=1e-9)
    assert found.stats["objective_share"] > 0.97
    assert found.stats["mean_degree"] == exact.stats["mean_degree"]
    assert any("picked in 8 parts" in note for note in found.notes)
    assert len(set(found.indices.tolist())) == len(found)
    if balanced:
        assert found.stats["class_counts"] == exact.stats["class_counts"]


def test_little_memory_still_comes_close():
    """There is room for a quarter of the graph."""
    signals = like_cifar10n()
    exact = p4r.select("prune4rel", signals, ratio=0.05)
    room = exact.stats["edges"] // 2 * 40 // 4
    found = p4r.select("prune4rel", signals, ratio=0.05, partitions=8, memory=room, seed=1)
    assert "objective_exact" not in found.stats
    assert found.stats["candidates"] <= 500
    assert found.objective > 0.97 * exact.objective
    with pytest.raises(p4r.InputError, match="the rows of 100 picks have about"):
        p4r.select("prune4rel", signals, size=100, partitions=8, memory=100)


def test_initial_picks_lead():
    signals = like_cifar10n(600)
    found = p4r.select("prune4rel", signals, size=30, partitions=3, initial=[17, 5], preset="paper", tau=0.9)
    assert found.indices[:2].tolist() == [17, 5]


@pytest.mark.parametrize("parts", [1, 0, 2.5, "many"])
def test_a_number_of_parts_that_is_none(parts):
    clusters = like_cifar10n(60)
    with pytest.raises(p4r.InputError, match="partitions must be a whole number of at least 2"):
        p4r.select("prune4rel", clusters, size=5, partitions=parts)
    with pytest.raises(p4r.InputError, match="max_degree cannot be combined"):
        p4r.select("prune4rel", clusters, size=5, partitions=2, max_degree=3)
