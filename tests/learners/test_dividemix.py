import numpy as np
import pytest
import torch
from tests.learners.loop import train_on_digits
from tests.learners.tiny import (
    CLASSES,
    M,
    gradient_of,
    logits_by,
    some_examples,
    tiny_learner,
    tiny_setting,
    train_only,
    weights_of,
)
from tests.oracles import learners as oracle

LABELLED, OTHERS = [5, 0, 3], [6, 1]


def ready(seed=0, **options):
    """A learner past its warm-up that is unsure of everybody, to a different degree."""
    learner = tiny_learner("dividemix", weights_seed=seed, **{"warmup_epochs": 0, "lambda_u": 1.7} | options)
    learner.clean.copy_(torch.rand(2, learner.m, generator=torch.Generator().manual_seed(seed)))
    learner.weight_u.fill_(learner.lambda_u)
    return learner


def probabilities_of(learner, network, x):
    return np.array([oracle.softmax(row) for row in logits_by(weights_of(learner.networks[network]), x)])


def targets_of(learner, network, streams, temperature):
    labelled, *others = streams
    said = [probabilities_of(learner, network, view) for view in labelled.views]
    w = learner.clean[1 - network][labelled.rows].double().numpy()
    first = [
        oracle.labelled_target(int(labelled.labels[i]), w[i], [said[0][i], said[1][i]], temperature)
        for i in range(labelled.batch)
    ]
    rest = []
    for examples in others:
        four = [probabilities_of(learner, which, view) for which in (0, 1) for view in examples.views]
        guesses = np.mean(four, axis=0)
        rest = [oracle.sharpen(guess, temperature) for guess in guesses]
    return np.array([*first, *first, *rest, *rest])


@pytest.mark.parametrize("with_others", [True, False])
@pytest.mark.parametrize("network", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient(seed, network, with_others):
    learner = ready(seed, temperature=0.4, penalty=0.8)
    streams = (some_examples(learner, LABELLED, 2, seed), some_examples(learner, OTHERS, 2, seed + 1))
    streams = streams if with_others else streams[:1]
    one = learner.passes(0)[network]
    counts = tuple(examples.batch for examples in streams)
    drawn = one.draw(counts, torch.Generator().manual_seed(seed))
    partners, share = drawn[0].tolist(), float(drawn[1][0])
    assert len(partners) == 2 * sum(counts)
    assert share >= 0.5
    x = oracle.mix(torch.cat([view for examples in streams for view in examples.views]), partners, share)
    targets = oracle.mix(targets_of(learner, network, streams, 0.4), partners, share)

    def expected(weights):
        return oracle.mix_match(logits_by(weights, x), targets, len(LABELLED), 1.7, 0.8)

    theta = weights_of(learner.networks[network])
    loss = one.loss(streams, drawn)
    loss.total.backward()
    assert loss.total.item() == pytest.approx(expected(theta), abs=1e-6)
    gradient = gradient_of(learner.networks[network])
    np.testing.assert_allclose(gradient, oracle.numeric_gradient(expected, theta), atol=1e-6)
    assert all(weights.grad is None for weights in learner.networks[1 - network].parameters())
    assert loss.logits is None


def test_warm_up_is_cross_entropy_of_each_network_on_everyone():
    learner = tiny_learner("dividemix", warmup_epochs=3)
    passes = learner.passes(2)
    assert [one.network for one in passes] == [0, 1]
    assert all(one.streams[0].rows.tolist() == list(range(M)) and not one.mixes for one in passes)
    examples = some_examples(learner, [1, 2, 3])
    logits = logits_by(weights_of(learner.networks[1]), examples.views[0])
    total = passes[1].loss((examples,), ()).total
    assert total.item() == pytest.approx(oracle.cross_entropy(logits, examples.labels.tolist()))
    learner.begin_epoch(2, lambda network: pytest.fail(f"nobody asks {network} during the warm-up"))


def test_warm_up_penalises_sureness():
    learner = tiny_learner("dividemix", warmup_penalty=0.5)
    examples = some_examples(learner, [1, 2, 3])
    logits = logits_by(weights_of(learner.networks[0]), examples.views[0])
    sureness = np.mean([sum(p * np.log(p) for p in oracle.softmax(row)) for row in logits])
    expected = oracle.cross_entropy(logits, examples.labels.tolist()) + 0.5 * sureness
    assert learner.passes(0)[0].loss((examples,), ()).total.item() == pytest.approx(expected)


def predict_with(learner, beliefs):
    """Predictions that give the given label a probability, by network and example."""
    networks = list(learner.networks)

    def predict(network):
        p = torch.as_tensor(beliefs[networks.index(network)]).unsqueeze(1)
        hot = torch.nn.functional.one_hot(learner.given, CLASSES)
        return (hot * p + (1 - hot) * (1 - p) / (CLASSES - 1)).log()

    return predict


def test_each_network_is_trained_on_what_the_other_divided():
    learner = ready(kappa=0.5)
    beliefs = np.array([[0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.05, 0.05], [0.05, 0.05, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]])
    learner.begin_epoch(0, predict_with(learner, beliefs))
    first, second = learner.passes(0)
    assert [stream.rows.tolist() for stream in first.streams] == [[2, 3, 4, 5, 6, 7], [0, 1]]
    assert [stream.rows.tolist() for stream in second.streams] == [[0, 1, 2, 3, 4, 5], [6, 7]]
    assert {stream.views for one in (first, second) for stream in one.streams} == {("weak", "weak")}
    assert learner.describe() == {"labelled_by_first": 0.75, "labelled_by_second": 0.75}
    again = tiny_learner("dividemix", weights_seed=5, warmup_epochs=0)
    again.load_state_dict(learner.state_dict())
    assert [stream.rows.tolist() for stream in again.passes(0)[0].streams] == [[2, 3, 4, 5, 6, 7], [0, 1]]


def test_equal_losses_leave_nothing_unlabelled():
    learner = ready()
    learner.begin_epoch(0, predict_with(learner, np.full((2, M), 0.5)))
    first, _ = learner.passes(0)
    assert [stream.rows.tolist() for stream in first.streams] == [list(range(M))]


def test_where_nobody_is_believed_half_are():
    learner = ready(kappa=1.0)
    learner.begin_epoch(0, predict_with(learner, np.tile(np.linspace(0.1, 0.9, M), (2, 1))))
    first, _ = learner.passes(0)
    assert [len(stream.rows) for stream in first.streams] == [M // 2, M // 2]
    assert first.streams[0].rows.tolist() == [4, 5, 6, 7]


def test_examples_that_cannot_be_read_are_never_believed():
    learner = ready()
    beliefs = np.full((2, M), 0.5)
    beliefs[:, 3] = np.nan
    learner.begin_epoch(0, predict_with(learner, beliefs))
    assert learner.passes(0)[0].streams[1].rows.tolist() == [3]


@pytest.mark.parametrize(("rows", "others"), [([2], [4]), ([2], None)])
def test_batches_of_one(rows, others):
    learner = ready()
    one = learner.passes(0)[0]
    streams = (some_examples(learner, rows, 2),) + ((some_examples(learner, others, 2),) if others else ())
    train_only(learner, 0)
    drawn = one.draw(tuple(examples.batch for examples in streams), torch.Generator().manual_seed(0))
    assert torch.isfinite(one.loss(streams, drawn).total)


def test_a_network_that_is_certain_gives_a_finite_loss():
    learner = ready()
    with torch.no_grad():
        learner.networks[0].head.bias[0] = 1e4
    streams = (some_examples(learner, LABELLED, 2), some_examples(learner, OTHERS, 2))
    one = learner.passes(0)[0]
    loss = one.loss(streams, one.draw((3, 2), torch.Generator().manual_seed(0)))
    loss.total.backward()
    assert torch.isfinite(loss.total)
    assert np.isfinite(gradient_of(learner.networks[0])).all()


@pytest.mark.parametrize(("epoch", "expected"), [(2, 0.0), (4, 1.0), (6, 2.0), (9, 2.0)])
def test_the_unlabelled_weight_rises(epoch, expected):
    learner = ready(warmup_epochs=2, lambda_u=2.0, ramp_epochs=4)
    learner.begin_epoch(epoch, predict_with(learner, np.full((2, M), 0.5)))
    assert float(learner.weight_u) == expected


@pytest.mark.parametrize(("epochs", "warmup"), [(300, 10), (20, 10), (15, 7), (1, 0)])
def test_the_warm_up_leaves_at_least_half(epochs, warmup):
    learner = tiny_learner("dividemix", setting=tiny_setting(epochs=epochs))
    assert learner.warmup_epochs == warmup
    noted = [f"warms up for {warmup} instead of 10 epochs" in note for note in learner.notes]
    assert noted == ([] if warmup == 10 else [True])


def test_division_depends_on_seed_and_epoch_only():
    divisions = []
    for _ in range(2):
        learner = ready(seed=2)
        learner.begin_epoch(4, predict_with(learner, np.random.default_rng(0).random((2, M))))
        divisions.append(learner.clean)
    assert torch.equal(*divisions)


@pytest.mark.parametrize(
    "option", [{"kappa": 1.1}, {"temperature": 0}, {"alpha": 0}, {"lambda_u": -1}, {"warmup_epochs": -1}]
)
def test_impossible_options_are_refused(option):
    with pytest.raises(ValueError, match=f"{next(iter(option))} must be"):
        tiny_learner("dividemix", **option)


def test_corrects_labels_that_cross_entropy_memorises(memorised):
    loop, true = train_on_digits("dividemix")
    assert loop.correction(true) > memorised + 0.75
    right = loop.learner.setting.labels == true
    believed = loop.learner.labelled.numpy()
    assert (believed == right).mean() > 0.9
