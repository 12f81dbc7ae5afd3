from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import instances, many, points_of
from tests.oracles import geometry as oracle
from tests.oracles.ranking import assert_follows_the_examples, assert_same_from_disk_in_blocks, distinct
from tests.planted import DUPLICATE, EASY, HARD, ORIGINAL, N, places

import prune4rel as p4r
from prune4rel.greedy.groups import Groups
from prune4rel.methods import kcenter as module
from prune4rel.methods.method import Request
from prune4rel.neighbours.euclidean import Space
from prune4rel.neighbours.euclidean_cuda import TorchSpace


@pytest.fixture(autouse=True, scope="module")
def _one_torch_thread():
    """Products of a few rows are fastest on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def space_on(rows, kind):
    space = Space.of(points_of(rows))
    return TorchSpace.on(space, "cpu", tile_numbers=2000) if kind == "torch" else space


@given(
    instance=instances(n=st.integers(1, 12)),
    share=st.floats(0, 1),
    balanced=st.booleans(),
    pool=st.integers(1, 5),
    kind=st.sampled_from(["cpu", "torch"]),
    data=st.data(),
)
def test_picks_are_those_of_the_textbook_loop(instance, share, balanced, pool, kind, data):
    size = 1 + int(share * (len(instance) - 1))
    initial = data.draw(st.permutations(range(len(instance))))[: data.draw(st.integers(0, size))]
    labels = instance.labels if balanced else np.zeros(len(instance), dtype=int)
    first = int(np.flatnonzero(labels == labels.min())[0])
    with patch.object(module, "SMALLEST_POOL", pool), patch.object(module, "_space", lambda *_: space):
        space = space_on(instance.rows, kind)
        chosen = p4r.select(
            "kcenter",
            embeddings=instance.rows,
            labels=instance.labels,
            size=size,
            balanced=balanced,
            start="first",
            initial=initial,
        )
    picks, gains, nearest = oracle.farthest_first(instance.rows, size, first, labels.tolist(), initial)
    assert chosen.indices.tolist() == picks
    np.testing.assert_allclose(chosen.gains**2, np.array(gains, dtype=float), rtol=1e-11)
    np.testing.assert_allclose(chosen.scores**2, np.array(nearest, dtype=float), rtol=1e-11)
    assert chosen.objective == chosen.scores.max()


def plain_loop(rows, size, first, labels):
    """The usual loop in double precision: one pass over all rows a pick."""
    rows = rows.astype(np.float64)
    nearest, picks = np.full(len(rows), np.inf), [first]
    while True:
        nearest = np.minimum(nearest, ((rows - rows[picks[-1]]) ** 2).sum(axis=1))
        if len(picks) == size:
            return picks, nearest
        picks.append(max(oracle.turn(labels, picks), key=lambda x: (nearest[x], -x)))


@pytest.mark.parametrize("kind", ["cpu", "torch"])
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("pool", [1, 16, 1024])
@pytest.mark.parametrize(("dim", "half"), [(1, False), (4, False), (60, False), (60, True)])
def test_pools_and_devices_do_not_show(monkeypatch, dim, half, pool, balanced, kind):
    drawn = many(300, dim=dim, seed=dim)
    rows = drawn.rows.astype(np.float16) if half else drawn.rows
    labels = drawn.labels if balanced else np.zeros(300, dtype=int)
    monkeypatch.setattr(module, "SMALLEST_POOL", pool)
    state, rounds = module.farthest_first(
        space_on(rows, kind), Groups.make(300, labels), np.array([7]), Request(size=220)
    )
    picks, nearest = plain_loop(rows, 220, 7, labels.tolist())
    assert state.picks.tolist() == picks
    np.testing.assert_allclose(state.nearest, nearest, rtol=1e-9, atol=1e-30)
    assert (rounds == 1) == (pool == 1024)


@pytest.mark.parametrize("scale", [1e-42, 1e-20, 1e20, 1e37])
def test_tiny_and_huge_rows_are_picked_like_ordinary_ones(scale):
    rows = np.sign(many(60, dim=6).rows)
    arrays = {"labels": np.arange(60) % 3, "size": 30}
    plain = p4r.select("kcenter", embeddings=rows, **arrays)
    scaled = p4r.select("kcenter", embeddings=(rows * scale).astype(np.float32), **arrays)
    assert scaled.indices.tolist() == plain.indices.tolist()


def test_the_farthest_goes_first_and_copies_go_last():
    place = places("kcenter", start="medoid")
    assert place[HARD] <= 4
    assert place[EASY] > N / 2
    assert max(place[ORIGINAL], place[DUPLICATE]) == N - 1


def test_an_outlier_is_taken_at_once(rng):
    rows = rng.normal(size=(50, 4))
    rows[17] += 100
    chosen = p4r.select("kcenter", embeddings=rows, labels=np.zeros(50, dtype=int), size=2, start="medoid")
    assert chosen.indices[1] == 17
    assert chosen.scores[17] == 0


def test_gains_never_rise_and_end_at_the_objective(small):
    chosen = p4r.select("kcenter", **small, size=20)
    assert chosen.gains[0] == np.inf
    assert (np.diff(chosen.gains[1:]) <= 0).all()
    assert chosen.objective <= chosen.gains[-1]
    assert p4r.select("kcenter", **small, size=30).objective == 0


def test_is_within_twice_the_optimum(rng):
    rows = rng.normal(size=(9, 2))
    distance = np.linalg.norm(rows[:, None] - rows, axis=2)
    best = min(distance[:, [a, b, c]].min(axis=1).max() for a in range(9) for b in range(a) for c in range(b))
    chosen = p4r.select("kcenter", embeddings=rows, labels=np.zeros(9, dtype=int), size=3)
    assert best <= chosen.objective + 1e-6
    assert chosen.objective <= 2 * best


def test_starts(small):
    rows = small["embeddings"]
    middle = int(np.argmin(np.linalg.norm(rows - rows.mean(axis=0), axis=1)))
    assert p4r.select("kcenter", **small, size=1, start="first").indices.tolist() == [0]
    assert p4r.select("kcenter", **small, size=1, start="medoid").indices.tolist() == [middle]
    drawn = {p4r.select("kcenter", **small, size=1, seed=seed).indices[0] for seed in range(30)}
    assert len(drawn) > 10
    turned = {"labels": (small["labels"] + 1) % 3}
    for seed in range(10):
        chosen = p4r.select("kcenter", **small | turned, size=1, seed=seed, balanced=True)
        assert chosen.labels.tolist() == [0]
    with pytest.raises(p4r.InputError, match="did you mean 'medoid'"):
        p4r.select("kcenter", **small, size=1, start="mediod")


def test_follows_the_examples():
    assert_follows_the_examples("kcenter", distinct(), start="medoid")


def test_half_precision_on_disk_is_read_in_blocks(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("kcenter", monkeypatch, tmp_path)


def test_a_gpu_is_used_where_one_is_asked_for():
    seen = []
    with patch.object(TorchSpace, "on", lambda space, device: seen.append(device) or space):
        module._space(points_of(np.ones((2, 2), dtype=np.float32)), "cuda:1")
    assert seen == ["cuda:1"]
