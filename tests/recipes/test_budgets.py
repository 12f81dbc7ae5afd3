"""The same number of steps for all: what is run, what is kept, and the table made of it."""

import csv
import json

import pytest

from prune4rel.errors import InputError
from prune4rel.recipes import Settings, Wanted, make_plan, make_smoke_plan, reproduce
from prune4rel.recipes.budgets import HEADER, tables_of
from prune4rel.recipes.cells import ACCURACY, STEPS
from prune4rel.recipes.harvest import entries, kept
from prune4rel.steps import TrainStep

SOME = Wanted(noise=("worst",), method=("label-aware", "everything"), ratio=(0.2, 1.0))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Two seeds on stand-ins, kept as if they were the real thing."""
    from dataclasses import replace

    out = tmp_path_factory.mktemp("budgets")
    plan = replace(make_smoke_plan("budgets", out, SOME, Settings(seeds=2)), smoke=False)
    return plan, reproduce(plan, out / "run", archive=out / "archive"), out


def test_everybody_has_as_many_steps(done):
    plan, found, _ = done
    (job,) = plan.jobs
    assert (job.config.steps, job.config.equal_steps, job.folder) == (9, True, "cifar10n-worst-budget-9")
    (table,) = found.budgets
    assert [row[:2] for row in table.rows] == [
        ("20 % by label-aware", "sop+"),
        ("everything", "sop+"),
        ("everything", "trust"),
        ("everything", "dividemix"),
    ]
    steps = {entry.cell.learner: entry.numbers[STEPS].mean for entry in table.entries}
    assert steps["sop+"] == steps["trust"] == 9
    assert 9 <= steps["dividemix"] <= 12  # two batches a step, and looks at all examples
    assert [row[-1] for row in table.rows] == ["2"] * 4


def test_the_lead_is_over_the_same_seeds(done):
    _, found, _ = done
    (table,) = found.budgets
    usual, trust = (
        next(one for one in table.entries if one.cell.learner == name and one.cell.method == "everything")
        for name in ("sop+", "trust")
    )
    assert usual.lead is None
    assert trust.lead.mean == pytest.approx(trust.numbers[ACCURACY].mean - usual.numbers[ACCURACY].mean)
    assert trust.lead.seeds == 2


def test_what_is_kept_is_counted_in_elsewhere(done, tmp_path):
    plan, found, out = done
    place = out / "archive" / "budgets" / "cifar10n-worst-9"
    assert len(list(place.glob("*.json"))) == 8
    assert not kept(out / "archive")  # other tables do not count it in
    for entry in entries(out / "archive", "budgets/*"):
        assert ("picks" in entry) == (entry["method"] != "everything")
        assert "commit" in entry["training"]
        assert entry["training"]["plan"]["training"]["steps"] <= 9
        assert entry["numbers"]["seconds"] > 0
    again = reproduce(plan, tmp_path / "elsewhere", run=False, archive=out / "archive")
    assert [one.row for one in again.budgets[0].entries] == [one.row for one in found.budgets[0].entries]


def test_the_files_it_writes(done):
    _, found, _ = done
    rows = list(csv.DictReader((found.folder / "comparison.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["metric"] for row in rows} >= {ACCURACY, STEPS, "seconds", "lead"}
    page = (found.folder / "comparison.md").read_text(encoding="utf-8")
    assert f"| {' | '.join(HEADER)} |" in page
    assert "## CIFAR-10N worst" in page
    assert (found.folder / "report.html").stat().st_size > 10_000


def test_a_commit_that_was_told_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("PRUNE4REL_COMMIT", "abc")
    only = Wanted(noise=("worst",), method=("everything",), learner=("sop+",))
    plan = make_smoke_plan("budgets", tmp_path, only, Settings(seeds=1))
    reproduce(plan, tmp_path)
    (path,) = (tmp_path / "smoke").glob("*/trainings/*/step.json")
    assert json.loads(path.read_text())["commit"] == "abc"


def test_another_number_of_steps_lies_beside():
    plans = [make_plan("budgets", SOME, Settings(options=options)) for options in ({}, {"steps": 117_000})]
    folders = [[(job.folder, job.kept_in) for job in plan.jobs] for plan in plans]
    assert folders == [
        [("cifar10n-worst-budget-23400", "budgets/cifar10n-worst-23400")],
        [("cifar10n-worst-budget-117000", "budgets/cifar10n-worst-117000")],
    ]
    assert plans[1].cost.all_images == pytest.approx(5 * plans[0].cost.all_images)
    with pytest.raises(InputError, match="steps: is for --equal-steps"):
        make_plan("table2", settings=Settings(options={"steps": 5}))


def test_nothing_was_run():
    tables = tables_of(make_plan("budgets").cells, [])
    assert [table.title for table in tables] == ["CIFAR-10N worst", "CIFAR-100N noisy"]
    assert all(row[2] == "not run" and len(row) == len(HEADER) for table in tables for row in table.rows)


def test_every_cell_of_the_recipe_is_a_training(tmp_path):
    plan = make_smoke_plan("budgets", tmp_path)
    from prune4rel.steps import KINDS, Steps
    from prune4rel.steps.data import open_dataset

    for job in plan.jobs:
        steps = Steps(job.config, open_dataset(job.config), tmp_path / job.folder, KINDS)
        assert {(one.label, one.learner, one.ratio) for one in steps.of(TrainStep)} == set(job.cell_of())
