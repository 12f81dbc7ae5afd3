import numpy as np
import pytest
import torch
from tests.learners.loop import train_on_digits
from tests.learners.tiny import gradient_of, logits_by, some_examples, tiny_learner, weights_of
from tests.oracles import learners as oracle

ROWS = [5, 0, 3, 6]


def explained(name, seed=0, **options):
    """A learner some of whose labels are already explained away, and a batch."""
    learner = tiny_learner(name, weights_seed=seed, **options)
    generator = torch.Generator().manual_seed(seed)
    learner.u.values.copy_(torch.rand(learner.u.values.shape, generator=generator))
    learner.v.values.copy_(1.3 * torch.rand(learner.v.values.shape, generator=generator))
    return learner, some_examples(learner, ROWS, len(learner.views), seed=seed)


def tables_of(learner):
    return learner.u.values[ROWS, 0].double().numpy(), learner.v.values[ROWS].double().numpy()


def sop_oracle(weights, learner, examples, u, v, frozen_v):
    logits = logits_by(weights, examples.views[0])
    frozen = logits_by(weights_of(learner.networks[0]), examples.views[0])
    return oracle.sop(logits, examples.labels.tolist(), u, v, frozen_logits=frozen, frozen_v=frozen_v)


@pytest.mark.parametrize("seed", range(4))
def test_loss_and_all_its_gradients(seed):
    learner, examples = explained("sop", seed, rate_u=2.0, rate_v=3.0)
    (u, v), network = tables_of(learner), learner.networks[0]
    theta = weights_of(network)
    loss = learner.loss((examples,), ())
    expected, _ = sop_oracle(theta, learner, examples, u, v, v)
    assert loss.total.item() == pytest.approx(expected, abs=1e-6)
    loss.total.backward()

    by_weights = oracle.numeric_gradient(lambda w: sop_oracle(w, learner, examples, u, v, v)[0], theta)
    np.testing.assert_allclose(gradient_of(network), by_weights, atol=1e-5)
    by_u = oracle.numeric_gradient(lambda w: sop_oracle(theta, learner, examples, w, v, v)[0], u)
    by_v = oracle.numeric_gradient(lambda w: sop_oracle(theta, learner, examples, u, w, v)[0], v)
    learner.after_step(0)
    new_u, new_v = tables_of(learner)
    np.testing.assert_allclose(new_u, u - 2.0 * by_u, atol=1e-4)
    np.testing.assert_allclose(new_v, v - 3.0 * by_v, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_plus_adds_agreement_and_balance(seed):
    learner, examples = explained("sop+", seed, consistency=0.7, balance=0.3)
    (u, v), network = tables_of(learner), learner.networks[0]
    theta = weights_of(network)

    def expected(weights):
        total, q = sop_oracle(weights, learner, examples, u, v, v)
        frozen_weak = logits_by(theta, examples.views[0])
        strong = logits_by(weights, examples.views[1])
        return total + 0.3 * oracle.balance(q) + 0.7 * oracle.kl(frozen_weak, strong)

    loss = learner.loss((examples,), ())
    assert loss.total.item() == pytest.approx(expected(theta), abs=1e-6)
    loss.total.backward()
    np.testing.assert_allclose(gradient_of(network), oracle.numeric_gradient(expected, theta), atol=1e-5)


def test_settle_touches_only_the_batch():
    learner, examples = explained("sop")
    before = learner.v.values.clone()
    learner.loss((examples,), ()).total.backward()
    learner.after_step(0)
    others = [row for row in range(learner.m) if row not in ROWS]
    assert torch.equal(learner.v.values[others], before[others])
    assert not torch.equal(learner.v.values[ROWS], before[ROWS])


def test_tables_start_next_to_nothing_but_not_at_it():
    learner = tiny_learner("sop")
    for values in (learner.u.values, learner.v.values):
        assert (values != 0).all()
        assert values.abs().max() < 1e-6
    assert torch.equal(tiny_learner("sop", weights_seed=9).u.values, learner.u.values)


def test_a_settled_contradiction_is_what_it_says():
    learner, _ = explained("sop")
    learner.u.values.fill_(0.5)
    assert learner.describe() == {"explained_away": pytest.approx(0.25)}


def test_weights_of_no_use_are_refused():
    with pytest.raises(ValueError, match="rate_u must be at least 0, not -1"):
        tiny_learner("sop", rate_u=-1)
    with pytest.raises(ValueError, match="balance must be at least 0"):
        tiny_learner("sop+", balance=-0.1)


@pytest.mark.parametrize(("name", "margin"), [("sop", 0.5), ("sop+", 0.7)])
def test_corrects_labels_that_cross_entropy_memorises(name, margin, memorised):
    loop, true = train_on_digits(name)
    assert loop.correction(true) > memorised + margin
