"""A time budget is converted to steps once; what changes redoes what depends on it; and what the table says then."""

import csv
import json
import re

import pytest
from tests.pipeline.tiny import Ear, leavings, marks, redone, tiny

from prune4rel.decisions import Decision, write_csv
from prune4rel.errors import InputError
from prune4rel.pipeline import Config, estimate, run
from prune4rel.pipeline.collect import gather, write_results
from prune4rel.report import render
from prune4rel.steps import TrainStep

EQUAL = {"equal_steps": True, "epochs": None, "methods": ["uniform", "small-loss", "everything:1:trust"]}
HOUR = 3600.0


@pytest.fixture
def paced(monkeypatch):
    """A step of any learner takes a hundredth of a second."""
    monkeypatch.setattr(estimate, "seconds_a_step", lambda *_: 0.01)


def steps_of(home):
    return Config.load(home / "config.yaml").steps


def test_everybody_had_as_many(tmp_path):
    run(tiny(**EQUAL, steps=60), tmp_path / "run")
    found = gather(tmp_path / "run")
    assert [(cell.label, cell.learner, cell.paid, cell.steps) for cell in found.cells] == [
        ("uniform", "sop+", 0, 60),
        ("small-loss", "sop+", 29, 60),
        ("everything", "sop+", 0, 60),
        ("everything", "trust", 0, 60),
    ]
    for cell in found.cells:
        assert cell.paid + cell.curve[-1]["steps"] == 60
        assert "test_accuracy" in cell.curve[-1]
        assert 0 < cell.wrong_label_ap <= 1
    page = re.sub(r"<[^>]+>|\s+", " ", render([found.story]))
    for words in (
        "Accuracy against steps",
        "Everybody had 60 steps in all",
        "With 60 steps each",
        "Wrong labels found",
    ):
        assert words in page
    write_results(found.cells, tmp_path / "results.csv")
    rows = list(csv.DictReader((tmp_path / "results.csv").read_text().splitlines()))
    assert [row["steps"] for row in rows] == ["60"] * 4
    assert all(0 < float(row["wrong_label_ap"]) <= 1 for row in rows)


def test_other_steps_and_other_contenders_redo_what_depends_on_them(tmp_path):
    home = tmp_path / "run"
    run(tiny(**EQUAL, steps=40), home)
    before = marks(home)
    run(tiny(**EQUAL, steps=40).changed(methods=("uniform", "prune4rel:0.4")), home)
    assert redone(before, home) == {"selections/prune4rel-0.4-sop+-seed0", "trainings/prune4rel-0.4-sop+-seed0"}
    before, ear = marks(home), Ear()
    run(tiny(**EQUAL, steps=41), home, progress=ear)
    assert redone(before, home) == {name for name in before if name.startswith("trainings")} - {
        "trainings/prune4rel-0.4-sop+-seed0"
    }
    assert any("plan.training.steps was 40 and is 41 now" in line for line in ear.said)


def test_several_at_a_time_end_the_same(tmp_path):
    run(tiny(**EQUAL, steps=40), tmp_path / "one")
    run(tiny(**EQUAL, steps=40, parallel=2), tmp_path / "two")
    assert leavings(tmp_path / "one") == leavings(tmp_path / "two")


@pytest.mark.usefixtures("paced")
def test_a_time_budget_becomes_steps(tmp_path):
    home, ear = tmp_path / "run", Ear()
    # .9 x 2 s = 180 steps: 21 of warm-up, and 4 trainings, of which one pays 29
    run(tiny(**EQUAL), home, time_budget=2.0, progress=ear)
    assert steps_of(home) == int((180 - 1348 / 64 + 29) / 4) == 46
    assert ear.said[0] == "2.00 s make 46 steps for each of 4 contenders"
    known = json.loads((home / "manifest.json").read_text())
    assert (known["time_budget"], known["resolved"]["steps"], known["asked"]["steps"]) == (2.0, 46, None)


@pytest.mark.usefixtures("paced")
def test_and_stays_so(tmp_path, monkeypatch):
    home = tmp_path / "run"
    run(tiny(**EQUAL), home, time_budget=2.0)
    before = marks(home)
    monkeypatch.setattr(estimate, "seconds_a_step", lambda *_: 1 / 0)
    run(tiny(**EQUAL), home, time_budget=2.0)
    assert marks(home) == before
    run(tiny(**EQUAL).changed(methods=("uniform", "prune4rel")), home, time_budget=2.0)
    assert not {name for name in redone(before, home) if "prune4rel" not in name}
    assert steps_of(home) == 46
    monkeypatch.setattr(estimate, "seconds_a_step", lambda *_: 0.01)
    run(tiny(**EQUAL), home, time_budget=1.8)
    assert steps_of(home) == int((162 - 1348 / 64 + 29) / 4)


@pytest.mark.usefixtures("paced")
def test_a_budget_that_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match=r"too short: warm-ups .* take up to 29 steps.* at least") as error:
        run(tiny(**EQUAL), tmp_path / "run", time_budget=0.5)
    assert not (tmp_path / "run" / "trainings").exists()
    least = re.search(r"at least ([\d.]+) s", str(error.value))
    run(tiny(**EQUAL), tmp_path / "run", time_budget=float(least[1]) + 0.05)
    assert 30 <= steps_of(tmp_path / "run") <= 32


@pytest.mark.parametrize(("steps", "budget"), [(None, None), (50, HOUR)])
def test_one_of_the_two_says_how_many(tmp_path, steps, budget):
    with pytest.raises(InputError, match="say how many: steps, or a time budget"):
        run(tiny(**EQUAL, steps=steps), tmp_path / "run", time_budget=budget)
    assert not (tmp_path / "run").exists()


def test_a_training_that_pays_all_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="nothing is left to train"):
        run(tiny(**EQUAL, steps=29), tmp_path / "run")
    assert not list(tmp_path.glob("run/*s"))


def test_what_people_settled(tmp_path):
    """Nobody pays for training on examples that were thrown out; they are looked at with all others."""
    path = tmp_path / "decisions.csv"
    write_csv([Decision(index, "remove") for index in range(1000)], path)
    done = run(tiny(**EQUAL, steps=60, decisions=str(path)), tmp_path / "run")
    paid = {step.label: step.paid for step in done.steps.of(TrainStep) if step.ratio < 1}
    assert paid["small-loss"] == 348 // 64 + -(-1348 // 192)
