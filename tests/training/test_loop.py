import numpy as np
import pytest
import torch
from tests.training.small import BY_METHOD, LEARNERS, digits, features, learner_of, nothing, same_state, trainer_of

from prune4rel import InputError
from prune4rel.training import loop


class Stopped(Exception):  # noqa: N818 - no error, but a way out
    """Raised after a step."""


def run(training, epochs, stop_at=None):
    """Run epochs, or leave after a step."""

    def after_step(_count, _share):
        if training.steps == stop_at:
            raise Stopped

    return [training.run_epoch(after_step) for _ in range(epochs - training.epoch)]


def snapshot(training):
    tensors, facts = training.state()
    return {name: tensor.clone() for name, tensor in tensors.items()}, facts


@pytest.mark.parametrize("name", [*LEARNERS, BY_METHOD])
def test_left_at_any_step_and_entered_again_it_is_as_if_nothing_had_happened(name):
    options = {"epochs": 4, "ema": 0.9, **learner_of(name)}
    if name == "dividemix":
        options["learner_options"] = {"warmup_epochs": 1}
    whole = trainer_of(features(), **options).training
    expected = run(whole, 4)
    stops = np.random.default_rng(len(name)).choice(np.arange(1, whole.steps), 5, replace=False)
    for stop in [*stops.tolist(), whole.steps]:
        first = trainer_of(features(), **options).training
        with pytest.raises(Stopped):
            run(first, 4, stop)
        state = snapshot(first)
        second = trainer_of(features(), **options).training
        run(second, 1)  # what it was before does not matter
        second.restore(*state)
        assert same_state(first, second)
        found = run(second, 4)
        assert found == expected[-len(found) :]
        assert same_state(whole, second), stop


def test_dropout_draws_the_same_wherever_it_is_entered(dropping):
    options = {"network": dropping, "network_options": {}, "epochs": 3}
    whole = trainer_of(digits(), **options).training
    expected = run(whole, 3)
    assert expected[1]["loss"] != expected[2]["loss"]
    for stop in (1, 7, 12):
        first = trainer_of(digits(), **options).training
        with pytest.raises(Stopped):
            run(first, 3, stop)
        torch.manual_seed(stop)
        second = trainer_of(digits(), **options).training
        second.restore(*snapshot(first))
        run(second, 3)
        assert same_state(whole, second)


def test_the_global_random_numbers_of_others_are_left_alone(dropping):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    trainer_of(digits(), network=dropping, network_options={}).training.run_epoch(nothing)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_epoch_tells_its_means_and_shares():
    told = []
    trainer = trainer_of(features(), "dividemix", learner_options={"warmup_epochs": 1}, epochs=3)
    numbers = trainer.training.run_epoch(lambda count, share: told.append((count, share)))
    assert len(told) == 2 * (60 // 16)
    assert {count for count, _ in told} == {16}
    assert sum(share for _, share in told) == pytest.approx(1)
    assert {"epoch", "lr", "loss", "labelled", "train_accuracy"} <= numbers.keys()
    assert "labelled_by_first" in trainer.training.run_epoch(nothing)


def test_seeds_decide_everything():
    losses = [trainer_of(features(), seed=seed).training.run_epoch(nothing)["loss"] for seed in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("learner", ["cross-entropy", "sop+"])
def test_an_absurd_rate_is_stopped_and_the_step_named(learner, monkeypatch):
    monkeypatch.setattr(loop, "STEPS_BETWEEN_CHECKS", 2)
    training = trainer_of(features(), learner, lr=1e30, weight_decay=0.1, epochs=3).training
    with pytest.raises(InputError, match=r"NaN or infinite in step \d+ of epoch 1.*smaller learning rate than 1e\+30"):
        run(training, 3)
    assert not training.is_sound()


def test_weights_that_are_no_numbers_are_noticed_even_where_the_loss_was_fine():
    training = trainer_of(features()).training
    training.run_epoch(nothing)
    assert training.is_sound()
    training.check_finite()
    with torch.no_grad():
        training.learner.networks[0].head.bias[0] = torch.nan
    assert not training.is_sound()
    with pytest.raises(InputError, match="weights became NaN or infinite by step 3"):
        training.check_finite()


def test_averages_are_lent_for_a_while():
    training = trainer_of(features(), "elr+", ema=0.9).training
    training.run_epoch(nothing)
    own = [tensor.clone() for tensor in training.learner.networks.parameters()]
    with training.averaged():
        assert not any(map(torch.equal, own, training.learner.networks.parameters()))
    assert all(map(torch.equal, own, training.learner.networks.parameters()))


def test_predictions_are_of_the_examples_trained_on_in_their_order():
    subset = [7, 3, 50, 12]
    training = trainer_of(features(), subset=subset).training
    network = training.learner.networks[0]
    x = torch.from_numpy(features().train.features[subset])
    expected = network(training.feed.views["plain"](x, torch.Generator()))
    torch.testing.assert_close(training.predict(network), expected.detach())


def test_a_state_that_does_not_fit_is_refused_with_advice():
    tensors, facts = trainer_of(features()).training.state()
    other = trainer_of(features(), network_options={"width": 4}).training
    with pytest.raises(InputError, match="does not fit this version of the learner"):
        other.restore(tensors, facts)


def test_a_batch_of_one_is_refused_where_a_network_normalises_over_it():
    trainer = trainer_of(digits(), network="preact-resnet18", network_options={}, batch=1, subset=[3])
    with pytest.raises(InputError, match="a batch of one example leaves nothing to normalise"):
        trainer.training.run_epoch(nothing)
