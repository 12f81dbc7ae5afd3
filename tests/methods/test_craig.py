import numpy as np
import pytest
from tests.oracles.gradients import Instance, facility_location, instance, start_of

import prune4rel as p4r
from prune4rel.gradients import gradients_of
from prune4rel.methods.craig import _distances


def by_class(chosen, drawn):
    """The class's examples, and positions in the selection of the picks from it, class by class."""
    for label in np.unique(drawn.labels):
        yield np.flatnonzero(drawn.labels == label), np.flatnonzero(chosen.labels == label)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("copies", [0, 5])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_covers_every_class_as_the_oracle_does(seed, started, copies, balanced):
    drawn = instance(seed, copies=copies)
    size = int(np.random.default_rng(seed).integers(1, len(drawn) + 1))
    initial = start_of(drawn, size, seed) if started else []
    chosen = p4r.select("craig", drawn.signals, size=size, balanced=balanced, initial=initial)
    assert chosen.indices[: len(initial)].tolist() == initial
    objective = 0.0
    for members, places in by_class(chosen, drawn):
        rows = drawn.rows[members]
        first = [members.tolist().index(x) for x in initial if x in members]
        picks, gains, weights = facility_location(rows, len(places), first)
        assert members[picks].tolist() == chosen.indices[places].tolist()
        np.testing.assert_allclose(chosen.gains[places], gains, rtol=1e-5, atol=1e-5)
        assert weights == chosen.weights[places].tolist()
        objective += sum(gains)
        distance = np.linalg.norm(rows[:, None] - rows[None, :], axis=2)
        np.testing.assert_allclose(chosen.scores[members], (distance.max() - distance).sum(axis=1), atol=1e-5)
    assert chosen.objective == pytest.approx(objective, rel=1e-5, abs=1e-5)
    assert not chosen.approximate
    if not balanced and not started:
        assert (np.diff(chosen.gains) <= 1e-9).all()


def test_classes_get_picks_in_proportion_to_their_size(rng):
    labels = np.repeat([0, 1, 2], [20, 10, 10])
    drawn = Instance(rng.normal(size=(40, 3)), rng.dirichlet(np.ones(3), 40), labels)
    assert p4r.select("craig", drawn.signals, size=20).stats["class_counts"] == [10, 5, 5]
    assert p4r.select("craig", drawn.signals, size=18, balanced=True).stats["class_counts"] == [6, 6, 6]


def test_permuting_the_examples_permutes_the_picks(rng):
    drawn = instance(4, most=40)
    order = rng.permutation(len(drawn))
    first = p4r.select("craig", drawn.signals, ratio=0.5)
    second = p4r.select("craig", drawn[order].signals, ratio=0.5)
    assert order[second.indices].tolist() == first.indices.tolist()
    np.testing.assert_allclose(second.scores, first.scores[order], rtol=1e-6)


def test_a_copy_waits_until_everything_else_is_covered(rng):
    drawn = Instance(rng.normal(size=(12, 3)), rng.dirichlet(np.ones(2), 12), np.zeros(12, dtype=int))
    copied = drawn[np.r_[np.arange(12), [3, 3]]]
    chosen = p4r.select("craig", copied.signals, size=14)
    assert chosen.indices[-2:].tolist() == [12, 13]
    assert chosen.gains[-2:].tolist() == [0.0, 0.0]
    assert chosen.weights[chosen.indices.tolist().index(3)] == 3


def test_a_mislabelled_example_is_no_medoid_and_represents_itself(rng):
    embeddings = np.r_[rng.normal(size=(9, 3)) + 5, rng.normal(size=(1, 3)) + 5]
    probabilities = np.tile([0.95, 0.05], (10, 1))
    probabilities[9] = [0.01, 0.99]
    chosen = p4r.select(
        "craig", embeddings=embeddings, probabilities=probabilities, labels=np.zeros(10, dtype=int), size=2
    )
    assert chosen.scores.argmin() == 9
    assert chosen.indices[0] != 9
    assert chosen.indices[1] == 9
    assert chosen.weights.tolist() == [9, 1]


def test_cutting_a_class_is_approximate_and_says_so(rng):
    drawn = Instance(
        rng.normal(size=(50, 3)), rng.dirichlet(np.ones(2), 50), np.r_[np.zeros(40, int), np.ones(10, int)]
    )
    chosen = p4r.select("craig", drawn.signals, size=20, chunk=15, seed=1)
    assert chosen.approximate
    assert "cut at random, into 4 pieces" in chosen.notes[0]
    assert chosen.stats["class_counts"] == [16, 4]
    assert chosen.weights.sum() == 50
    exact = p4r.select("craig", drawn.signals, size=20)
    assert exact.notes == ()


def test_threads_and_types_do_not_show(rng, monkeypatch, tmp_path):
    drawn = Instance(
        rng.normal(size=(300, 6)).astype(np.float16), rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300)
    )
    np.save(tmp_path / "rows.npy", drawn.embeddings)
    mapped = drawn.arrays | {"embeddings": np.load(tmp_path / "rows.npy", mmap_mode="r")}
    picks = []
    for threads, arrays in (
        ("1", drawn.arrays),
        ("3", mapped),
        ("2", drawn.arrays | {"embeddings": drawn.embeddings * 1.0}),
    ):
        monkeypatch.setenv("PRUNE4REL_THREADS", threads)
        picks.append(p4r.select("craig", ratio=0.3, **arrays).indices.tolist())
    assert picks[0] == picks[1] == picks[2]


def test_every_pick_has_a_weight_however_many(rng):
    n = 1500
    drawn = Instance(rng.normal(size=(n, 2)), np.full((n, 2), 0.5), np.arange(n) % 8 // 4)
    chosen = p4r.select("craig", drawn.signals, size=n)
    assert chosen.weights.tolist() == [1.0] * n
    assert chosen.stats["largest_weight"] == 1


@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
def test_distances_are_symmetric_and_equal_rows_are_at_none(rng, scale):
    drawn = Instance(scale * rng.normal(size=(30, 4)), rng.dirichlet(np.ones(3), 30), rng.integers(0, 3, 30))
    copied = drawn[np.r_[np.arange(30), [7]]]
    steps, step = _distances(gradients_of(copied.signals, slice(None)))
    rows = copied.rows
    assert (steps == steps.T).all()
    assert steps[7, 30] == 0
    distance = np.linalg.norm(rows[:, None] - rows[None, :], axis=2)
    np.testing.assert_allclose(steps * step, distance, atol=1e-6 * distance.max())


def test_refuses_what_it_cannot_do(small, monkeypatch):
    with pytest.raises(p4r.InputError, match="chunk must be a whole number"):
        p4r.select("craig", **small, size=3, chunk=0)
    monkeypatch.setattr("prune4rel.machine.available_memory", lambda: 100)
    with pytest.raises(p4r.InputError, match="pass a smaller chunk"):
        p4r.select("craig", **small, size=3)
