import time

import numpy as np
import pytest
from tests.pipeline.tiny import Ear, marks, tiny

from prune4rel import InputError
from prune4rel.data import Dataset, Split, load_dataset
from prune4rel.learners import list_learners
from prune4rel.pipeline import Config, estimate, run
from prune4rel.pipeline.estimate import fit_budget, seconds_a_step
from prune4rel.steps import KINDS, Steps
from prune4rel.training.step import Stepper

N, BATCH = 1348, 64
PACE = 0.01


@pytest.fixture
def digits():
    return load_dataset("digits")


@pytest.fixture(autouse=True)
def paced(monkeypatch):
    monkeypatch.setattr(estimate, "seconds_a_step", lambda *_: PACE)


def seconds(*, warm_ups, trainings, epochs, ratio=0.2, warmup_epochs=1, parallel=1):
    warming = warm_ups * warmup_epochs * N / BATCH / min(parallel, warm_ups)
    return (warming + trainings * epochs * ratio * N / BATCH / min(parallel, trainings)) * PACE


def test_what_is_short_is_not_worth_an_estimate(digits, tmp_path):
    config = tiny()
    assert estimate.estimate(config, digits, Steps(config, digits, tmp_path, KINDS).left()) is None


@pytest.mark.parametrize("parallel", [1, 2])
def test_steps_times_pace(digits, tmp_path, parallel):
    config = tiny(epochs=500, seeds=2, parallel=parallel)
    found = estimate.estimate(config, digits, Steps(config, digits, tmp_path, KINDS).left())
    assert found == pytest.approx(seconds(warm_ups=2, trainings=4, epochs=500, parallel=parallel))


def fit(config, digits, home, budget):
    ear = Ear()
    return fit_budget(config, digits, home, budget, ear), ear.said


def test_enough_time_changes_nothing(digits, tmp_path):
    config = tiny(epochs=100, seeds=3)
    enough = seconds(warm_ups=3, trainings=6, epochs=100) / 0.9 + 1e-6
    assert fit(config, digits, tmp_path, enough) == (config, [])


def test_fewer_repeats_come_first(digits, tmp_path):
    config = tiny(epochs=100, seeds=3)
    two = seconds(warm_ups=2, trainings=4, epochs=100) / 0.9 + 1e-6
    found, said = fit(config, digits, tmp_path, two)
    assert found == config.changed(seeds=2)
    assert said[0].endswith("; 2 repeats instead")


def test_then_fewer_epochs(digits, tmp_path):
    config = tiny(epochs=100, seeds=3)
    half = seconds(warm_ups=1, trainings=2, epochs=50) / 0.9 + 1e-6
    found, said = fit(config, digits, tmp_path, half)
    assert found == config.changed(seeds=1, epochs=50)
    assert said[0].endswith("; 1 repeat instead; 50 epochs instead of 100")


def test_then_it_is_refused(digits, tmp_path):
    config = tiny(epochs=100, seeds=2)
    quarter = seconds(warm_ups=1, trainings=2, epochs=25) / 0.9
    assert fit(config, digits, tmp_path, quarter + 1e-6)[0].epochs == 25
    with pytest.raises(InputError, match=r"time budget is too short.*even 25 epochs instead of 100 need about"):
        fit(config, digits, tmp_path, quarter - 0.01)


def test_what_is_done_takes_no_time(digits, home):
    config = tiny(everything=True)
    assert fit(config, digits, home, 1e-9) == (config, [])
    with pytest.raises(InputError, match="too short"):
        fit(config.changed(seed=1), digits, home, 1e-9)


def test_the_decision_stands_when_the_command_is_run_again(tmp_path, monkeypatch):
    config = tiny(epochs=8, seeds=2)
    budget = seconds(warm_ups=1, trainings=2, epochs=4) / 0.9 + 1e-6
    ear = Ear()
    first = run(config, tmp_path / "run", time_budget=budget, progress=ear)
    assert (first.config.seeds, first.config.epochs) == (1, 4)
    assert "there are" in ear.said[0]
    before = marks(tmp_path / "run")
    monkeypatch.setattr(estimate, "seconds_a_step", lambda *_: 100 * PACE)
    again = run(config, tmp_path / "run", time_budget=budget)
    assert again.config == first.config
    assert marks(tmp_path / "run") == before
    with pytest.raises(InputError, match="too short"):
        run(config.changed(seeds=3), tmp_path / "run", time_budget=budget)


@pytest.mark.parametrize("learner", [name for name in list_learners() if name != "logistic"])
def test_every_learner_can_be_timed(digits, learner):
    assert 0 < seconds_a_step(tiny(learners=learner, epochs=20), digits, learner) < 10


def test_what_takes_no_steps_is_reckoned_by_its_multiplications():
    rng = np.random.default_rng(0)
    few, many = (
        Dataset("mine", Split(labels=np.arange(60) % 3, features=rng.random((60, dim))), class_names=tuple("abc"))
        for dim in (10, 1000)
    )
    paces = [seconds_a_step(Config(learners="logistic"), data, "logistic") for data in (few, many)]
    assert paces[1] == pytest.approx(100 * paces[0])
    assert 0 < paces[1] < 1


def test_compiling_in_the_first_step_does_not_count(digits, monkeypatch):
    real, calls = Stepper.__call__, []

    def slow_at_first(self, *given):
        if not calls:
            time.sleep(3)
        calls.append(given)
        real(self, *given)

    monkeypatch.setattr(Stepper, "__call__", slow_at_first)
    assert seconds_a_step(tiny(epochs=20), digits, "sop+") < 0.3
    assert calls
