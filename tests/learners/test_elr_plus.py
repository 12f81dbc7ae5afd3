import math

import numpy as np
import pytest
import torch
from tests.learners.loop import train_on_digits
from tests.learners.tiny import (
    CLASSES,
    gradient_of,
    logits_by,
    some_examples,
    tiny_learner,
    train_only,
    weights_of,
)
from tests.oracles import learners as oracle

ROWS = [5, 0, 3, 6]


def ready(seed=0, **options):
    """A learner with memories, and followers that are not where their networks are."""
    learner = tiny_learner("elr+", weights_seed=seed, **options)
    rng = np.random.default_rng(seed)
    learner.targets.copy_(torch.from_numpy(0.9 * rng.dirichlet(np.ones(CLASSES), (2, learner.m))))
    for follower in learner.followers:
        with torch.no_grad():
            follower.network.head.weight.add_(0.5)
            follower.network.head.bias.copy_(torch.arange(CLASSES))
    return learner, some_examples(learner, ROWS, seed=seed)


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("network", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_loss_gradient_and_memory(seed, network, refine):
    learner, examples = ready(seed, beta=0.6, lambda_elr=2.5, ramp_steps=100, refine=refine)
    learner.steps[network] = 40
    one = learner.passes(0)[network]
    partners, shares = one.draw((4,), torch.Generator().manual_seed(seed))
    partners_list, share = partners.tolist(), float(shares[0])
    assert share >= 0.5
    old = learner.targets.double().numpy().copy()
    seen = logits_by(weights_of(learner.followers[1 - network].network), examples.views[0])
    memories = [oracle.memory(old[network, row], oracle.softmax(z), 0.6) for row, z in zip(ROWS, seen, strict=True)]
    q = oracle.mix(memories, partners_list, share)
    y = oracle.mix([oracle.one_hot(label, CLASSES) for label in examples.labels.tolist()], partners_list, share)
    if refine:
        y = y * q / (y * q).sum(axis=1, keepdims=True)
    x = oracle.mix(examples.views[0], partners_list, share)

    def expected(weights):
        logits = logits_by(weights, x)
        ramp = math.exp(-5 * (1 - 40 / 100) ** 2)
        return oracle.soft_cross_entropy(logits, y) + ramp * 2.5 * oracle.disagreement(logits, q)

    theta = weights_of(learner.networks[network])
    loss = one.loss((examples,), (partners, shares))
    loss.total.backward()
    assert loss.total.item() == pytest.approx(expected(theta), abs=1e-6)
    gradient = gradient_of(learner.networks[network])
    np.testing.assert_allclose(gradient, oracle.numeric_gradient(expected, theta), atol=1e-6)
    np.testing.assert_allclose(learner.targets[network, ROWS].numpy(), memories, atol=1e-6)
    np.testing.assert_array_equal(learner.targets[1 - network].double().numpy(), old[1 - network])
    assert all(weights.grad is None for weights in learner.networks[1 - network].parameters())
    assert all(not weights.requires_grad for weights in learner.followers.parameters())


@pytest.mark.parametrize(
    ("options", "step", "decay"),
    [
        ({}, 1, 0.997 * math.exp(-5 * (1 - 1 / 40_000) ** 2)),
        ({}, 20_000, 0.997 * math.exp(-5 / 4)),
        ({}, 40_000, 0.997),
        ({}, 90_000, 0.997),
        ({"decay_steps": 0, "decay": 0.9}, 1, 1 / 2),
        ({"decay_steps": 0, "decay": 0.9}, 4, 4 / 5),
        ({"decay_steps": 0, "decay": 0.9}, 50, 0.9),
    ],
)
def test_averages_follow_at_the_decay_of_the_step(options, step, decay):
    learner, _ = ready(**options)
    learner.steps[1] = step
    old, new = weights_of(learner.followers[1].network), weights_of(learner.networks[1])
    untouched = weights_of(learner.followers[0].network)
    learner.after_step(1)
    np.testing.assert_allclose(weights_of(learner.followers[1].network), decay * old + (1 - decay) * new, rtol=1e-5)
    np.testing.assert_array_equal(weights_of(learner.followers[0].network), untouched)
    assert learner.steps.tolist() == [1, step + 1]


def test_both_networks_are_trained_on_everyone_and_asked_together():
    learner, examples = ready()
    first, second = learner.passes(7)
    assert (first.network, second.network) == (0, 1)
    assert first.mixes
    assert first.streams[0].rows.tolist() == list(range(learner.m))
    x = examples.views[0]
    together = sum(logits_by(weights_of(network), x) for network in learner.networks) / 2
    np.testing.assert_allclose(learner.predict(x).detach().numpy(), together)


def test_a_label_that_the_memory_rules_out_teaches_nothing():
    learner, examples = ready(refine=True, beta=1.0)
    learner.targets.zero_()
    train_only(learner, 0)
    one = learner.passes(0)[0]
    loss = one.loss((examples,), one.draw((4,), torch.Generator().manual_seed(0)))
    assert loss.total.item() == 0


@pytest.mark.parametrize("option", [{"alpha": 0}, {"decay": 1.5}, {"ramp_steps": -1}, {"decay_steps": -1}])
def test_impossible_options_are_refused(option):
    with pytest.raises(ValueError, match=f"{next(iter(option))} must be"):
        tiny_learner("elr+", **option)


def test_corrects_labels_that_cross_entropy_memorises(memorised):
    loop, true = train_on_digits("elr+")  # mixing alone, with lambda_elr = 0, gets to 0.7 more
    assert loop.correction(true) > memorised + 0.76
    assert loop.learner.describe()["relabelled"] > 0.25
