import numpy as np
import pytest
from tests.oracles.gradients import Instance, instance, start_of, taylor_greedy

import prune4rel as p4r


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("lr", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_picks_what_the_oracle_picks(seed, started, lr, balanced):
    drawn = instance(seed, copies=seed % 3)
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, len(drawn) + 1))
    validation = rng.integers(0, len(drawn), 5)
    initial = start_of(drawn, size, seed) if started else []
    asked = {"size": size, "balanced": balanced, "initial": initial}
    chosen = p4r.select("glister", drawn.signals, validation=validation, lr=lr, batch=1, **asked)
    picks, gains = taylor_greedy(drawn, validation=validation, lr=lr, **asked)
    assert chosen.indices.tolist() == picks
    later = slice(len(initial), None)
    np.testing.assert_allclose(chosen.gains[later], gains[later], rtol=1e-6, atol=1e-8 * max(map(abs, gains)))
    assert chosen.scores[picks[0]] == pytest.approx(gains[0], rel=1e-6)
    assert chosen.options["validation"] == "given"


def test_trusts_the_examples_the_warm_up_agrees_with():
    drawn = instance(7)
    agreeing = np.flatnonzero(drawn.probabilities.argmax(axis=1) == drawn.labels)
    assert 0 < len(agreeing) < len(drawn)
    by_default = p4r.select("glister", drawn.signals, ratio=0.5)
    given = p4r.select("glister", drawn.signals, ratio=0.5, validation=agreeing.tolist())
    everybody = p4r.select("glister", drawn.signals, ratio=0.5, validation="all")
    assert by_default.indices.tolist() == given.indices.tolist()
    assert by_default.stats["validation_examples"] == len(agreeing)
    assert everybody.stats["validation_examples"] == len(drawn)


def test_trusts_everybody_where_the_warm_up_agrees_with_nobody(rng):
    probabilities = np.tile([0.9, 0.1], (6, 1))
    chosen = p4r.select(
        "glister", embeddings=rng.normal(size=(6, 2)), probabilities=probabilities, labels=np.ones(6, int), size=2
    )
    assert chosen.stats["validation_examples"] == 6


def test_reports_the_validation_loss_of_the_moved_layer(rng):
    drawn = Instance(rng.normal(size=(40, 4)), rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40))
    chosen = p4r.select("glister", drawn.signals, size=10, validation="all")
    losses = -np.log(drawn.probabilities[np.arange(40), drawn.labels])
    assert chosen.stats["validation_loss_before"] == pytest.approx(losses.mean())
    assert chosen.objective == pytest.approx(losses.mean() - chosen.stats["validation_loss_after"])
    assert chosen.objective > 0
    assert chosen.notes == ()


def test_too_long_a_step_is_noticed(rng):
    drawn = Instance(rng.normal(size=(40, 4)), rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40))
    assert "overshot" in p4r.select("glister", drawn.signals, size=10, lr=1e4).notes[0]


def test_a_mislabelled_example_comes_last_and_a_hard_one_first(rng):
    labels = np.repeat([0, 1], 10)
    embeddings = np.where(labels[:, None] == 0, [4.0, 0.0], [0.0, 4.0]) + 0.1 * rng.normal(size=(20, 2))
    probabilities = np.where(labels[:, None] == 0, [0.8, 0.2], [0.2, 0.8])
    labels[3] = 1
    probabilities[13] = [0.45, 0.55]
    chosen = p4r.select("glister", embeddings=embeddings, probabilities=probabilities, labels=labels, size=20)
    assert chosen.indices[0] == chosen.scores.argmax() == 13
    assert chosen.indices[-1] == chosen.scores.argmin() == 3
    assert chosen.scores[3] < 0


def test_steps_spread_the_picks_over_the_classes():
    labels = np.repeat([0, 1], 20)
    embeddings = np.where(labels[:, None] == 0, [5.0, 0.0], [0.0, 4.0])
    probabilities = np.where(labels[:, None] == 0, [0.6, 0.4], [0.4, 0.6])
    given = {"embeddings": embeddings, "probabilities": probabilities, "labels": labels}
    still = p4r.select("glister", **given, size=10, lr=0)
    moving = p4r.select("glister", **given, size=10, lr=3, batch=1)
    assert still.stats["class_counts"] == [10, 0]
    assert min(moving.stats["class_counts"]) > 2


@pytest.mark.parametrize("batch", ["auto", 1, 7])
def test_permuting_the_examples_permutes_the_picks(rng, batch):
    drawn = instance(4, most=40)
    order = rng.permutation(len(drawn))
    first = p4r.select("glister", drawn.signals, ratio=0.5, batch=batch)
    second = p4r.select("glister", drawn[order].signals, ratio=0.5, batch=batch)
    assert order[second.indices].tolist() == first.indices.tolist()


def test_the_scale_of_large_embeddings_does_not_matter(rng):
    drawn = Instance(1e4 * rng.normal(size=(60, 4)), rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60))
    scaled = Instance(drawn.embeddings * 1024, drawn.probabilities, drawn.labels)
    first, second = (p4r.select("glister", given.signals, ratio=0.4) for given in (drawn, scaled))
    assert first.indices.tolist() == second.indices.tolist()


def test_balanced_batches_go_round_the_classes(rng):
    labels = np.repeat([0, 1, 2], [3, 20, 20])
    drawn = Instance(rng.normal(size=(43, 3)), rng.dirichlet(np.ones(3), 43), labels)
    chosen = p4r.select("glister", drawn.signals, size=15, batch=4, balanced=True)
    assert chosen.labels.tolist() == [0, 1, 2] * 3 + [1, 2] * 3


def test_threads_blocks_and_types_do_not_show(rng, monkeypatch, tmp_path):
    drawn = Instance(
        rng.normal(size=(300, 6)).astype(np.float16), rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300)
    )
    np.save(tmp_path / "rows.npy", drawn.embeddings)
    mapped = drawn.arrays | {"embeddings": np.load(tmp_path / "rows.npy", mmap_mode="r")}
    picks = []
    for threads, block, arrays in (("1", 2**23, drawn.arrays), ("3", 2**23, mapped), ("2", 2**12, drawn.arrays)):
        monkeypatch.setenv("PRUNE4REL_THREADS", threads)
        monkeypatch.setattr("prune4rel.blocks.BLOCK_BYTES", block)
        picks.append(p4r.select("glister", ratio=0.3, **arrays).indices.tolist())
    assert picks[0] == picks[1] == picks[2]


def test_a_probability_of_zero_is_no_trouble():
    given = {"embeddings": np.ones((3, 2)), "probabilities": np.eye(2)[[0, 0, 1]], "labels": [0, 1, 1]}
    assert sorted(p4r.select("glister", **given, size=3, batch=1).indices.tolist()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"lr": -1}, "lr must be a number of at least 0"),
        ({"lr": float("nan")}, "lr must be a number of at least 0"),
        ({"batch": 0}, "batch must be a whole number"),
        ({"validation": "some"}, "validation must be 'agreeing', 'all' or a list"),
        ({"validation": []}, "a list of at least one index"),
        ({"validation": [0.5]}, "a list of at least one index"),
        ({"validation": [30]}, "outside 0 to 29"),
    ],
)
def test_refuses_options_that_make_no_sense(small, option, message):
    with pytest.raises(p4r.InputError, match=message):
        p4r.select("glister", **small, size=3, **option)
