import numpy as np
import pytest
from tests.oracles.gradients import Instance, instance, matching_pursuit, start_of

import prune4rel as p4r
from prune4rel.methods.gradmatch import _solve, _solve_surely


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("ridge", [0.01, 0.5])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_matches_every_class_as_the_oracle_does(seed, started, batch, ridge, balanced):
    drawn = instance(seed, copies=seed % 3)
    size = int(np.random.default_rng(seed).integers(1, len(drawn) + 1))
    initial = start_of(drawn, size, seed) if started else []
    asked = {"balanced": balanced, "ridge": ridge, "batch": batch}
    chosen = p4r.select("gradmatch", drawn.signals, size=size, initial=initial, **asked)
    assert chosen.indices[: len(initial)].tolist() == initial
    weights = chosen.weights
    objective = 0.0
    for label in np.unique(drawn.labels):
        members, places = np.flatnonzero(drawn.labels == label), np.flatnonzero(chosen.labels == label)
        rows = drawn.rows[members]
        first = [members.tolist().index(x) for x in initial if x in members]
        picks, expected, falls = matching_pursuit(rows, len(places), ridge, batch, first)
        begins = [0] * bool(first) + [*range(len(first), len(places), batch)]
        assert members[picks].tolist() == chosen.indices[places].tolist()
        np.testing.assert_allclose(weights[places], expected, atol=1e-4)
        shared = np.add.reduceat(chosen.gains[places], begins) if len(places) else []
        np.testing.assert_allclose(shared, falls, atol=1e-6 * max(1.0, abs(falls).sum()))
        np.testing.assert_allclose(chosen.scores[members], rows @ rows.sum(axis=0), rtol=1e-6, atol=1e-7)
        objective += falls.sum()
    assert chosen.objective == pytest.approx(objective, rel=1e-6)
    assert (chosen.gains >= 0).all()


def test_the_scale_of_large_embeddings_does_not_matter(rng):
    drawn = Instance(1e4 * rng.normal(size=(40, 4)), rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40))
    scaled = Instance(drawn.embeddings * 1024, drawn.probabilities, drawn.labels)
    first, second = (p4r.select("gradmatch", given.signals, ratio=0.4) for given in (drawn, scaled))
    assert first.indices.tolist() == second.indices.tolist()


@pytest.mark.parametrize("rank", [4, 9])
@pytest.mark.parametrize("solve", [lambda *given: _solve(*given, np.ones(9)), _solve_surely])
def test_solvers_find_the_constrained_minimum(rng, solve, rank):
    factor = rng.normal(size=(rank, 9))
    hessian = factor.T @ factor
    pulls = factor.T @ rng.normal(size=rank)
    weights = solve(hessian, pulls)
    slope = hessian @ weights - pulls
    assert (weights >= 0).all()
    assert (weights == 0).any()
    assert slope[weights > 0] == pytest.approx(0, abs=1e-5)
    assert (slope[weights == 0] > -1e-5).all()


def test_all_picks_together_match_the_whole_gradient(rng):
    drawn = Instance(rng.normal(size=(30, 3)), rng.dirichlet(np.ones(3), 30), rng.integers(0, 3, 30))
    chosen = p4r.select("gradmatch", drawn.signals, size=30, ridge=1e-9)
    assert chosen.stats["unmatched"] < 1e-6


def test_batches_come_close_to_classic_pursuit(rng):
    drawn = Instance(rng.normal(size=(400, 6)) + 1, rng.dirichlet(np.ones(3), 400), np.zeros(400, dtype=int))
    classic = p4r.select("gradmatch", drawn.signals, size=150, batch=1)
    batched = p4r.select("gradmatch", drawn.signals, size=150)
    assert not classic.approximate
    assert batched.approximate
    assert "up to 3 picks were made between two solves" in batched.notes[0]
    assert batched.options["batch"] == "auto"
    assert batched.objective > 0.999 * classic.objective


def test_permuting_the_examples_permutes_the_picks(rng):
    drawn = instance(4, most=40)
    order = rng.permutation(len(drawn))
    first = p4r.select("gradmatch", drawn.signals, ratio=0.5)
    second = p4r.select("gradmatch", drawn[order].signals, ratio=0.5)
    assert order[second.indices].tolist() == first.indices.tolist()


def test_a_mislabelled_example_dominates_the_gradient_and_comes_first(rng):
    embeddings = rng.normal(size=(10, 3)) + 5
    probabilities = np.tile([0.95, 0.05], (10, 1))
    probabilities[6] = [0.01, 0.99]
    chosen = p4r.select(
        "gradmatch", embeddings=embeddings, probabilities=probabilities, labels=np.zeros(10, dtype=int), size=3
    )
    assert chosen.scores.argmax() == chosen.indices[0] == 6


def test_a_copy_of_a_pick_gives_way_to_another_direction():
    embeddings = np.array([[8.0, 0.0], [8.0, 0.0], [0.0, 4.0]])
    given = {"embeddings": embeddings, "probabilities": np.full((3, 2), 0.5), "labels": [0, 0, 0]}
    chosen = p4r.select("gradmatch", **given, size=3, ridge=0.01)
    assert chosen.indices.tolist() == [0, 2, 1]
    assert p4r.select("gradmatch", **given, size=2, ridge=0.01, batch=2).indices.tolist() == [0, 1]


def test_cutting_a_class_is_approximate_and_says_so(rng):
    drawn = Instance(rng.normal(size=(40, 3)), rng.dirichlet(np.ones(2), 40), np.zeros(40, dtype=int))
    chosen = p4r.select("gradmatch", drawn.signals, size=20, chunk=15)
    assert chosen.approximate
    assert "into 3 pieces" in chosen.notes[0]


def test_threads_and_types_do_not_show(rng, monkeypatch, tmp_path):
    drawn = Instance(
        rng.normal(size=(300, 6)).astype(np.float16), rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300)
    )
    np.save(tmp_path / "rows.npy", drawn.embeddings)
    mapped = drawn.arrays | {"embeddings": np.load(tmp_path / "rows.npy", mmap_mode="r")}
    picks = []
    for threads, arrays in (("1", drawn.arrays), ("3", mapped)):
        monkeypatch.setenv("PRUNE4REL_THREADS", threads)
        picks.append(p4r.select("gradmatch", ratio=0.3, **arrays).indices.tolist())
    assert picks[0] == picks[1]


def test_nothing_to_match_is_no_trouble():
    given = {"embeddings": np.ones((3, 2)), "probabilities": np.eye(2)[[0, 0, 1]], "labels": [0, 0, 1]}
    for ridge in (0.0, 0.5):
        chosen = p4r.select("gradmatch", **given, size=3, ridge=ridge)
        assert sorted(chosen.indices.tolist()) == [0, 1, 2]
        assert chosen.stats["unmatched"] == 0.0


def test_weights_are_saved_with_the_picks(small, tmp_path):
    chosen = p4r.select("gradmatch", **small, size=5)
    assert chosen.weights.shape == (5,)
    assert (chosen.weights >= 0).all()
    assert chosen.stats["zero_weights"] == (chosen.weights == 0).mean()
    chosen.save(tmp_path / "subset.parquet")
    assert p4r.Selection.load(tmp_path / "subset.parquet").weights.tolist() == chosen.weights.tolist()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"ridge": -1}, "ridge must be a number of at least 0"),
        ({"ridge": "much"}, "ridge must be a number of at least 0"),
        ({"batch": 0}, "batch must be a whole number"),
        ({"batch": "all"}, "batch must be a whole number"),
        ({"chunk": "auto"}, "chunk must be a whole number"),
    ],
)
def test_refuses_options_that_make_no_sense(small, option, message):
    with pytest.raises(p4r.InputError, match=message):
        p4r.select("gradmatch", **small, size=3, **option)
