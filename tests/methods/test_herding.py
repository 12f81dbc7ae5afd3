import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import instances, many
from tests.oracles import geometry as oracle
from tests.oracles.ranking import assert_follows_the_examples, assert_same_from_disk_in_blocks, distinct

import prune4rel as p4r
from prune4rel.methods import herding as module
from prune4rel.methods.herding import _as_target, _bounds, _encode
from prune4rel.neighbours.euclidean import column_sums


@given(instance=instances(n=st.integers(1, 12)), share=st.floats(0, 1), balanced=st.booleans(), data=st.data())
def test_picks_are_those_of_the_textbook_loop(instance, share, balanced, data):
    n = len(instance)
    size = 1 + int(share * (n - 1))
    initial = data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, size))]
    arrays = {"embeddings": instance.rows, "labels": instance.labels}
    chosen = p4r.select("herding", **arrays, size=size, balanced=balanced, initial=initial)
    labels = instance.labels if balanced else np.zeros(n, dtype=int)
    final = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        mine = np.flatnonzero(labels[chosen.indices] == label)
        first = [members.tolist().index(x) for x in initial if x in members]
        picks, lengths = oracle.herd(instance.rows[members], len(mine), first)
        assert members[picks].tolist() == chosen.indices[mine].tolist()
        np.testing.assert_allclose(-chosen.gains[mine], np.sqrt(np.array(lengths, dtype=float)), rtol=1e-9, atol=1e-7)
        final += [-chosen.gains[mine][-1] / len(mine)] if len(mine) else []
    assert chosen.objective == pytest.approx(np.mean(final))
    if balanced:
        turns = [*initial]
        while len(turns) < size:
            turns.append(oracle.turn(instance.labels.tolist(), turns)[0])
        assert instance.labels[turns].tolist() == chosen.labels.tolist()


def plain_loop(rows, size):
    """The usual loop in double precision: one pass over all rows a pick."""
    rows = rows.astype(np.float64)
    picks, left = [], np.zeros(rows.shape[1])
    for _ in range(size):
        left = left + rows.mean(axis=0)
        lengths = np.linalg.norm(left - rows, axis=1)
        lengths[picks] = np.inf
        picks.append(int(np.flatnonzero(lengths <= lengths.min() * (1 + 1e-10))[0]))
        left -= rows[picks[-1]]
    return picks


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("dim", [2, 40, 600])
@pytest.mark.parametrize("offset", [0.0, 50.0])
def test_integers_and_threads_do_not_show(monkeypatch, dim, offset, threads):
    monkeypatch.setattr(module, "WORTH_THREADS", 1)
    monkeypatch.setenv("PRUNE4REL_THREADS", threads)
    rows = (many(300, dim=dim, seed=dim).rows + np.float32(offset)).astype(np.float32)
    chosen = p4r.select("herding", embeddings=rows, labels=np.zeros(300, dtype=int), size=150)
    assert chosen.indices.tolist() == plain_loop(rows, 150)


@pytest.mark.parametrize("dim", [1, 30, 700, 40_000])
def test_bounds_hold(rng, dim):
    rows = (rng.normal(size=(40, dim)) * rng.choice([1e-3, 1, 30], size=(40, 1)) + 5).astype(np.float32)
    signals = p4r.Signals(labels=np.zeros(40, dtype=int), embeddings=rows)
    points = module.Points(signals.embeddings, signals.squared_norms["embeddings"])
    everyone = np.arange(40)
    mean = column_sums(points, everyone) / 40
    codes = _encode(points, everyone, mean)
    free = rng.random(40) < 0.8
    lows = np.empty(40)
    for length in (0.0, 1e-3, 1.0, 1e3):
        target = length * rng.normal(size=dim)
        high = _bounds(codes, free, lows, _as_target(target))
        shifted = rows - mean
        true = (shifted**2).sum(axis=1) - 2 * shifted @ target
        assert (lows[free] <= true[free] + 1e-12 * np.abs(true[free])).all()
        assert true[free].min() <= high + 1e-12 * abs(high)
        assert np.isinf(lows[~free]).all()


def test_the_prototype_goes_first_and_the_outlier_waits(rng):
    rows = rng.normal(size=(60, 5))
    rows[7] = rows.mean(axis=0)
    rows[23] += 30
    chosen = p4r.select("herding", embeddings=rows, labels=np.zeros(60, dtype=int), size=30)
    assert chosen.indices[0] == chosen.scores.argmax()
    assert chosen.scores.argmin() == 23
    assert 23 not in chosen.indices[:10]


def test_scores_are_distances_from_the_mean_of_all_or_of_the_class(small):
    rows, labels = small["embeddings"].astype(np.float64), small["labels"]
    whole = p4r.select("herding", **small, size=3)
    np.testing.assert_allclose(whole.scores, -np.linalg.norm(rows - rows.mean(axis=0), axis=1))
    means = np.array([rows[labels == label].mean(axis=0) for label in range(3)])
    by_class = p4r.select("herding", **small, size=3, balanced=True)
    np.testing.assert_allclose(by_class.scores, -np.linalg.norm(rows - means[labels], axis=1))


def test_the_mean_of_the_picks_is_closer_than_that_of_random_ones(rng):
    rows = rng.normal(size=(500, 20))
    mean = rows.mean(axis=0)
    chosen = p4r.select("herding", embeddings=rows, labels=np.zeros(500, dtype=int), size=50)
    off = np.linalg.norm(rows[chosen.indices].mean(axis=0) - mean)
    assert chosen.objective == pytest.approx(off, rel=1e-5)
    random = [np.linalg.norm(rows[rng.choice(500, 50)].mean(axis=0) - mean) for _ in range(20)]
    assert off < min(random) / 3


@pytest.mark.parametrize("scale", [1e-42, 1e-20, 1e20, 1e36])
def test_tiny_and_huge_rows_are_picked_like_ordinary_ones(scale):
    rows = np.sign(many(60, dim=6).rows)
    arrays = {"labels": np.arange(60) % 3, "size": 30}
    plain = p4r.select("herding", embeddings=rows, **arrays)
    scaled = p4r.select("herding", embeddings=(rows * scale).astype(np.float32), **arrays)
    assert scaled.indices.tolist() == plain.indices.tolist()


def test_follows_the_examples():
    assert_follows_the_examples("herding", distinct())


def test_half_precision_on_disk_is_read_in_blocks(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("herding", monkeypatch, tmp_path)
