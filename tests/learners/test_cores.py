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
    weights_of,
)
from tests.oracles import learners as oracle

ROWS = [5, 0, 3, 6, 2]


def ready(seed=0, *, sieving=True, **options):
    learner = tiny_learner("cores", weights_seed=seed, **options)
    learner.prior.copy_(torch.tensor([0.5, 0.3, 0.2]))
    learner.current_beta.fill_(1.5)
    learner.sieving.fill_(sieving)
    return learner, some_examples(learner, ROWS, seed=seed)


@pytest.mark.parametrize(("sieving", "sieve_at"), [(True, 0.0), (True, -0.3), (False, 0.0)])
@pytest.mark.parametrize("seed", range(4))
def test_loss_gradient_and_sieve(seed, sieving, sieve_at):
    learner, examples = ready(seed, sieving=sieving, sieve_at=sieve_at)
    theta, labels = weights_of(learner.networks[0]), examples.labels.tolist()
    frozen = logits_by(theta, examples.views[0])

    def expected(weights):
        logits = logits_by(weights, examples.views[0])
        prior = learner.prior.tolist()
        return oracle.cores(logits, labels, prior, 1.5, frozen_logits=frozen, sieving=sieving, at=sieve_at)

    loss = learner.loss((examples,), ())
    loss.total.backward()
    assert loss.total.item() == pytest.approx(expected(theta), abs=1e-6)
    np.testing.assert_allclose(gradient_of(learner.networks[0]), oracle.numeric_gradient(expected, theta), atol=1e-6)
    kept = [not sieving or oracle.sieve_score(row, y) <= sieve_at for row, y in zip(frozen, labels, strict=True)]
    assert learner.kept[ROWS].tolist() == kept
    assert not sieving or sum(kept) < len(ROWS)
    assert learner.kept[[1, 4, 7]].all()


def test_a_batch_that_the_sieve_empties_teaches_nothing():
    learner, examples = ready()
    with torch.no_grad():
        learner.networks[0].head.weight.zero_()
        learner.networks[0].head.bias.copy_(torch.tensor([9.0, 0.0, 0.0]))
    examples = examples._replace(labels=torch.ones_like(examples.labels))
    loss = learner.loss((examples,), ())
    loss.total.backward()
    assert loss.total.item() == 0
    assert not gradient_of(learner.networks[0]).any()
    assert not learner.kept[ROWS].any()


def test_certainty_has_a_finite_reward():
    learner, examples = ready()
    with torch.no_grad():
        learner.networks[0].head.bias[0] = 1e4
    loss = learner.loss((examples,), ())
    loss.total.backward()
    assert torch.isfinite(loss.total)
    assert np.isfinite(gradient_of(learner.networks[0])).all()


def nobody(network):
    pytest.fail(f"nobody asks {network} yet")


@pytest.mark.parametrize(
    ("epoch", "beta", "sieving"), [(0, 0, False), (10, 0, False), (25, 1, False), (30, 4 / 3, False), (31, 1.4, True)]
)
def test_schedules_as_published_for_a_hundred_epochs(epoch, beta, sieving):
    learner = tiny_learner("cores", setting=tiny_setting(epochs=100))
    learner.begin_epoch(epoch, nobody)
    assert float(learner.current_beta) == pytest.approx(beta)
    assert bool(learner.sieving) is sieving
    assert learner.describe() == {"kept": 1.0, "beta": pytest.approx(beta)}


@pytest.mark.parametrize(("epochs", "turn"), [(100, 40), (10, 4), (7, 3), (1, 1)])
def test_the_new_network_takes_over_after_a_share_of_the_epochs(epochs, turn):
    learner = tiny_learner("cores", setting=tiny_setting(epochs=epochs))
    assert [one.network for one in learner.passes(turn - 1)] == [0]
    assert [one.network for one in learner.passes(turn)] == [1]


def test_the_prior_is_that_of_kept_labels():
    learner = tiny_learner("cores", setting=tiny_setting(labels=np.array([0, 0, 1, 1, 1, 2])))
    learner.begin_epoch(0, nobody)
    np.testing.assert_allclose(learner.prior, [2 / 6, 3 / 6, 1 / 6])
    learner.kept.copy_(torch.tensor([True, True, True, False, False, False]))
    learner.begin_epoch(1, nobody)
    np.testing.assert_allclose(learner.prior, [2 / 3, 1 / 3, 0], rtol=1e-6)
    learner.kept.fill_(value=False)
    learner.begin_epoch(2, nobody)
    np.testing.assert_allclose(learner.prior, [2 / 3, 1 / 3, 0], rtol=1e-6)


def told(learner, right):
    """Predictions that agree with some of the given labels."""
    hot = torch.nn.functional.one_hot(learner.given, CLASSES).double()
    sign = torch.where(torch.as_tensor(right), 3.0, -3.0).unsqueeze(1)
    return lambda network: hot * sign if network is learner.networks[0] else nobody(network)


def test_the_sieve_freezes_when_the_new_network_takes_over():
    learner = tiny_learner("cores")
    right = np.arange(M) % 3 != 0
    learner.begin_epoch(4, told(learner, right))
    (one,) = learner.passes(4)
    kept, rejected = one.streams
    assert kept.rows.tolist() == np.flatnonzero(right).tolist()
    assert kept.views == ("strong",)
    assert rejected.rows.tolist() == np.flatnonzero(~right).tolist()
    assert rejected.views == ("weak", "strong")
    learner.begin_epoch(5, nobody)
    assert [stream.rows.tolist() for stream in learner.passes(5)[0].streams] == [
        kept.rows.tolist(),
        rejected.rows.tolist(),
    ]


def test_the_sieve_may_be_finer():
    learner = tiny_learner("cores", sieve_at=-3.0)
    logits = told(learner, np.ones(M, dtype=bool))(learner.networks[0])
    logits[:4] *= 2
    learner.begin_epoch(4, lambda network: logits if network is learner.networks[0] else None)
    assert learner.passes(4)[0].streams[0].rows.tolist() == [0, 1, 2, 3]


def test_where_everyone_is_kept_there_is_one_stream():
    learner = tiny_learner("cores")
    learner.begin_epoch(4, told(learner, np.ones(M, dtype=bool)))
    assert [stream.rows.tolist() for stream in learner.passes(4)[0].streams] == [list(range(M))]


def test_where_nobody_would_be_kept_half_are():
    learner = tiny_learner("cores")
    predict = told(learner, np.zeros(M, dtype=bool))
    scale = torch.linspace(1, 2, M, dtype=torch.float64).unsqueeze(1)
    learner.begin_epoch(4, lambda network: predict(network) * scale)
    kept, rejected = learner.passes(4)[0].streams
    assert kept.rows.tolist() == [0, 1, 2, 3]
    assert rejected.rows.tolist() == [4, 5, 6, 7]


def test_examples_that_cannot_be_read_are_rejected():
    learner = tiny_learner("cores")
    logits = told(learner, np.ones(M, dtype=bool))(learner.networks[0])
    logits[2] = torch.nan
    learner.begin_epoch(4, lambda network: logits if network is learner.networks[0] else None)
    assert learner.passes(4)[0].streams[1].rows.tolist() == [2]


@pytest.mark.parametrize("rejected_rows", [[1, 4], []])
def test_loss_and_gradient_of_the_new_network(rejected_rows):
    learner = tiny_learner("cores", consistency=0.6)
    kept = some_examples(learner, ROWS, 1)
    streams = (kept, some_examples(learner, rejected_rows, 2, seed=1)) if rejected_rows else (kept,)
    theta = weights_of(learner.networks[1])

    def expected(weights):
        total = oracle.cross_entropy(logits_by(weights, kept.views[0]), kept.labels.tolist())
        for examples in streams[1:]:
            weak, strong = logits_by(theta, examples.views[0]), logits_by(weights, examples.views[1])
            total += 0.6 * oracle.kl(weak, strong)
        return total

    loss = learner.second_loss(streams, ())
    loss.total.backward()
    assert loss.total.item() == pytest.approx(expected(theta))
    np.testing.assert_allclose(gradient_of(learner.networks[1]), oracle.numeric_gradient(expected, theta), atol=1e-7)
    np.testing.assert_allclose(loss.logits.numpy(), logits_by(theta, kept.views[0]))


def test_the_network_in_training_is_asked():
    learner = tiny_learner("cores")
    x = some_examples(learner, ROWS).views[0]
    assert torch.equal(learner.predict(x), learner.networks[0](x))
    learner.begin_epoch(4, told(learner, np.ones(M, dtype=bool)))
    assert torch.equal(learner.predict(x), learner.networks[1](x))
    assert torch.equal(learner.embed(x), learner.networks[1].embed(x))


@pytest.mark.parametrize("option", [{"beta": -1}, {"beta_from": 0.5}, {"sieve_from": 2}, {"second_from": -0.1}])
def test_impossible_options_are_refused(option):
    name = "beta_until" if "beta_from" in option else next(iter(option))
    with pytest.raises(ValueError, match=f"{name} must be"):
        tiny_learner("cores", **option)


def test_beta_may_jump():
    learner = tiny_learner("cores", beta_from=0.3, beta_until=0.3)
    betas = []
    for epoch in (0, 2, 3):
        learner.begin_epoch(epoch, nobody)
        betas.append(float(learner.current_beta))
    assert betas == [0, 0, 2]


def test_corrects_labels_that_cross_entropy_memorises(memorised):
    loop, true = train_on_digits("cores")
    assert loop.correction(true) > memorised + 0.7
    right = loop.learner.setting.labels == true
    assert (loop.learner.kept.numpy() == right).mean() > 0.85


def test_without_its_second_network_it_corrects_too(memorised):
    loop, true = train_on_digits("cores", second_from=1)
    assert loop.correction(true) > memorised + 0.3
