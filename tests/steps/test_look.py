"""A second round: the trained model looks at all examples, methods pick again, and learners are trained anew."""

from pathlib import Path

import numpy as np
import pytest
from tests.pipeline.tiny import Ear, leavings, marks, redone, tiny

import prune4rel as p4r
from prune4rel.pipeline import collect, estimate, run
from prune4rel.steps import KINDS, LookStep, Steps, TrainStep
from prune4rel.steps.look import VIEWS
from prune4rel.training import look_at

TWICE = "prune4rel, round 2"


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    home = tmp_path_factory.mktemp("rounds") / "run"
    return run(tiny(rounds=2), home)


def test_methods_that_look_get_another_round_and_others_none(twice):
    cells = {cell.label: cell for cell in collect(twice.folder).cells}
    assert set(cells) == {"uniform", "prune4rel", TWICE}
    assert not np.array_equal(cells["prune4rel"].indices, cells[TWICE].indices)
    assert (
        cells[TWICE].seconds["warmup"] > cells["prune4rel"].seconds["warmup"] + cells["prune4rel"].seconds["training"]
    )


def test_the_first_round_is_that_of_a_run_without_a_second(twice, tmp_path):
    once = leavings(run(tiny(), tmp_path / "run").folder)
    both = leavings(twice.folder)
    once.pop("results.csv", None)
    assert {name: both[name] for name in once} == once


def test_its_signals_are_means_over_views_of_the_trained_model(twice):
    (look,) = twice.steps.of(LookStep)
    signals = p4r.Signals.load(look.signals)
    dataset = p4r.load_dataset("digits")
    plan = twice.config.plan(dataset, "sop+", 0)
    same = look_at(dataset, look.training.folder, plan=plan, views=VIEWS, device="cpu")
    np.testing.assert_array_equal(same.probabilities, signals.probabilities)
    plain = look_at(dataset, look.training.folder, plan=plan, view="none", views=1, device="cpu")
    model = p4r.load_model(look.training.folder)
    np.testing.assert_allclose(plain.probabilities, model.probabilities(dataset.train.images), atol=1e-5)
    assert np.abs(np.asarray(plain.probabilities) - np.asarray(signals.probabilities)).max() > 0.01


def test_it_is_gone_on_with_and_follows_what_it_goes_by(tmp_path):
    home = run(tiny(), tmp_path / "run").folder
    before = marks(home)
    run(tiny(rounds=2), home)
    assert redone(before, home) == {name for name in marks(home) if "round_2" in name or name.startswith("looks/")} | {
        name for name in marks(home) if "round-2" in name
    }
    before, ear = marks(home), Ear()
    run(tiny(rounds=2), home, progress=ear)
    assert redone(before, home) == set()
    run(tiny(rounds=2, epochs=3), home)
    assert any(name.startswith("looks/") for name in redone(before, home))


def test_rounds_side_by_side_are_the_same(twice, tmp_path):
    beside = leavings(run(tiny(rounds=2, parallel=2), tmp_path / "run").folder)
    alone = leavings(twice.folder)
    assert beside == alone


def test_three_rounds_and_two_seeds(tmp_path):
    done = run(tiny(rounds=3, seeds=2, methods=("prune4rel",)), tmp_path / "run")
    labels = [cell.label for cell in collect(done.folder).cells]
    assert sorted(set(labels)) == ["prune4rel", TWICE, "prune4rel, round 3"]
    assert len(labels) == 6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ("forgetting",)}, "needs forgetting"),
        ({"select_only": True}, "leave select_only out"),
    ],
)
def test_what_no_second_round_can_have_is_refused(changes, words):
    with pytest.raises(p4r.InputError, match=words):
        tiny(rounds=2, **changes)


def test_rounds_share_what_everybody_gets(tmp_path):
    few = {"methods": ("uniform", "small-loss"), "epochs": None, "equal_steps": True, "steps": 201, "everything": True}
    done = run(tiny(rounds=2, **few), tmp_path / "run")
    warmup, look = 1348 // 64 - (-1348 // (3 * 64)), -(-VIEWS * 1348 // (3 * 64))
    assert {step.label: (step.paid, step.steps) for step in done.steps.of(TrainStep)} == {
        "uniform": (0, 201),
        "small-loss": (warmup, 100 - warmup),
        "small-loss, round 2": (100 + look, 101 - look),
        "everything": (0, 201),
    }
    story = collect(done.folder)
    assert [(cell.label, cell.steps) for cell in story.cells] == [("uniform", 201), ("small-loss, round 2", 201)]
    assert not any("not finished" in note for note in story.notes)
    with pytest.raises(p4r.InputError, match="there are 25 up to the end of this one of 2 rounds: nothing is left"):
        run(tiny(rounds=2, **{**few, "steps": 50}), tmp_path / "none")


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_time_budget_is_used_up_and_leaves_every_round_something(rounds, monkeypatch):
    monkeypatch.setattr(estimate, "paces_of", lambda *_: {"sop+": 0.01})
    config = tiny(rounds=rounds, methods=("uniform", "small-loss"), epochs=None, equal_steps=True)
    dataset = p4r.load_dataset("digits")

    def laid_out(count):
        return Steps(config.changed(steps=count), dataset, Path("run"), KINDS)

    found = estimate.fit_steps(config, dataset, Path("run"), 20.0, Ear()).steps
    seconds = [sum(step.seconds(lambda _: 0.01) for step in laid_out(found + more)) for more in (0, 1)]
    assert seconds[0] <= estimate.RESERVE * 20.0 < seconds[1]
    least = rounds * (1348 // 64 - (-1348 // (3 * 64)) + 1)
    assert {step.paid + step.steps for step in laid_out(least).of(TrainStep) if not step.on_the_way} == {least}
    with pytest.raises(p4r.InputError, match="the time budget is too short"):
        estimate.fit_steps(config, dataset, Path("run"), 0.01 * least, Ear())
