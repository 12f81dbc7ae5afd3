"""A training of a number of steps: exactly as many, wherever it is killed, with a schedule that ends with the last."""

import pytest
from tests.training.small import BY_METHOD, LEARNERS, digits, learner_of, nothing, same_state, trainer_of

from prune4rel.errors import InputError
from prune4rel.training import make_plan, train
from prune4rel.training.hyperparameters import Hyperparameters, looks_as_steps

ONE_BATCH = ("cross-entropy", "sop", "sop+", "elr", "elr+", "trust")
"""Learners whose steps have one batch each."""


def run(trainer):
    while not trainer.training.over:
        trainer.training.run_epoch(nothing)
    return trainer.training


@pytest.mark.parametrize("learner", ONE_BATCH)
def test_as_many_steps_as_some_epochs_have_are_those_epochs(learner):
    by_epochs = trainer_of(learner=learner, epochs=3)
    while not by_epochs.training.over:
        by_epochs.training.run_epoch(nothing)
    networks = by_epochs.training.learner.n_networks
    by_steps = run(trainer_of(learner=learner, epochs=3, steps=3 * 5 * networks))
    assert by_steps.spent == by_steps.steps == 3 * 5 * networks
    assert same_state(by_epochs.training, by_steps)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("steps", [1, 7, 23])
def test_exactly_so_many(learner, steps):
    training = run(trainer_of(learner=learner, steps=steps))
    most = 2 if learner in ("dividemix", "cores") else 1  # batches of one step
    looks = looks_as_steps(80, 16) * 2 if learner in ("dividemix", "cores") else 0
    assert steps <= training.spent < steps + most + looks
    if learner in ONE_BATCH:
        assert training.spent == training.steps == steps


def test_a_learners_looks_at_all_examples_count():
    training = trainer_of(learner="cross-entropy", steps=9).training
    training.predict(training.learner.networks[0])
    assert (training.looked, training.spent) == (80, looks_as_steps(80, 16))
    assert looks_as_steps(80, 16) == 2  # 80 of 48 a step, rounded up


@pytest.mark.parametrize("steps", range(6, 14))
def test_an_epoch_whose_looks_take_what_was_left_has_one_step(steps):
    training = trainer_of(**learner_of(BY_METHOD), steps=steps).training
    while not training.over:
        assert training.run_epoch(nothing)["loss"] > 0
    assert training.spent > steps - 1


@pytest.mark.parametrize("learner", ["sop+", "trust", "dividemix", "elr+"])
@pytest.mark.parametrize("stop", [1, 4, 5, 6, 10, 11, 12])
def test_killed_after_any_step_it_ends_the_same(learner, stop):
    whole = run(trainer_of(learner=learner, steps=12))
    states = []

    def stopping(*_):
        if first.training.steps == stop:
            states.append(first.training.state())
            raise KeyboardInterrupt

    first = trainer_of(learner=learner, steps=12)
    try:
        while not first.training.over:
            first.training.run_epoch(stopping)
    except KeyboardInterrupt:
        pass
    again = trainer_of(learner=learner, steps=12)
    if states:
        again.training.restore(*states[0])
    assert same_state(run(again), whole)


def test_the_rate_falls_over_all_steps():
    """What is trained on is smaller, so there are more epochs, and the rate falls to the same end."""
    rates = {}
    for m in (80, 40, 30):
        trainer = trainer_of(subset=range(m), steps=20, lr=1.0, lr_min=0.0, epochs=300)
        found = []
        while not trainer.training.over:
            found.append(trainer.training.run_epoch(nothing)["lr"])
        rates[m] = found
    assert [len(found) for found in rates.values()] == [4, 10, 20]
    cosine = Hyperparameters(epochs=20, lr=1.0, lr_min=0.0)
    assert rates[30] == pytest.approx([cosine.rate(k) for k in range(20)])
    assert rates[80] == pytest.approx([cosine.rate(k) for k in range(0, 20, 5)])


def test_milestones_and_rise_are_in_epochs_of_the_whole_schedule():
    told = {"scheme": "multistep", "milestones": (50,), "epochs": 100, "lr": 1.0}
    trainer = trainer_of(steps=20, **told)
    rates = [trainer.training.run_epoch(nothing)["lr"] for _ in range(4)]
    assert rates == [1.0, 1.0, 0.1, 0.1]
    assert Hyperparameters(epochs=10, rise=1, lr=1.0).rate(0.5) == 1.0


def test_a_training_says_how_many(tmp_path):
    result = train(digits(), range(50), folder=tmp_path, network="mlp", steps=11, batch=16, device="cpu")
    assert (result.steps, result.epochs, result.size) == (11, 4, 50)
    assert result.history[-1]["steps"] == 11
    assert "test_accuracy" in result.history[-1]


def test_a_plan_without_a_number_says_nothing_of_it():
    plan = make_plan(digits(), epochs=3)
    assert "steps" not in plan.as_dict()["training"]
    assert make_plan(digits(), steps=3).as_dict()["training"]["steps"] == 3
    with pytest.raises(InputError, match="steps must be a whole number of at least 1"):
        make_plan(digits(), steps=0)
