"""What the report is given. Every recipe in full shape on stand-ins; going on; sharing."""

import csv
from pathlib import Path

import numpy as np
import pytest

from prune4rel.data import load_dataset
from prune4rel.errors import InputError
from prune4rel.progress import Progress
from prune4rel.recipes import RECIPES, Settings, Wanted, estimate, make_plan, make_smoke_plan, reproduce
from prune4rel.recipes.cells import ACCURACY, NOISE, SOURCES, STEPS
from prune4rel.recipes.harvest import harvest
from prune4rel.recipes.reproduce import TEST, N, pictures, stand_in, stories_of
from prune4rel.steps import TrainStep


@pytest.mark.parametrize("classes", [10, 100, 1000])
def test_stand_ins_can_be_read(classes, tmp_path):
    np.savez(tmp_path / "a.npz", **pictures(classes))
    data = load_dataset("arrays", tmp_path / "a.npz")
    assert (data.n_classes, len(data.train), len(data.test)) == (classes, N, TEST)
    assert data.train.noise_rate == pytest.approx(0.3)


def test_label_sets_differ():
    assert (pictures(10, 0)["labels"] != pictures(10, 1)["labels"]).any()


def test_every_data_set_of_every_recipe_has_one(tmp_path):
    cells = [cell for recipe in RECIPES.values() for cell in recipe.cells]
    settings = stand_in(cells, tmp_path, Settings(seeds=1))
    assert len(settings.stand_in) == sum(len(labels) for one in SOURCES.values() for labels in one.labels.values())
    assert all(path.is_file() for path in settings.stand_in.values())
    assert (settings.options["device"], settings.options["network"], settings.seeds) == ("cpu", "mlp", 1)


def test_stand_ins_are_not_written_twice(tmp_path):
    cells = RECIPES["fig4"].cells
    (path,) = stand_in(cells, tmp_path, Settings()).stand_in.values()
    before = path.stat().st_mtime_ns
    stand_in(cells, tmp_path, Settings())
    assert path.stat().st_mtime_ns == before


def test_folders_of_one_label_set_make_one_story(tmp_path):
    wanted = Wanted(noise=("worst",), learner=("sop+",), method=("Uniform", "GraNd"), ratio=(0.2,))
    plan = make_smoke_plan("table1", tmp_path, wanted)
    assert len(plan.jobs) == 2
    reproduce(plan, tmp_path)
    (story,) = stories_of(plan.jobs, tmp_path / "smoke")
    assert [cell.label for cell in story.cells] == ["Uniform", "GraNd"]
    assert story.title == "SMOKE CIFAR-10N worst"


def test_selections_alone_are_told_of(tmp_path):
    plan = make_smoke_plan("table4", tmp_path, Wanted(noise=("worst",), method=("SSP", "Margin"), ratio=(0.2, 0.8)))
    reproduce(plan, tmp_path)
    found = harvest(plan.jobs, tmp_path / "smoke")
    (story,) = stories_of(plan.jobs, tmp_path / "smoke")
    assert {cell.label for cell in story.cells} == {"SSP", "Margin"}
    by_cell = {(cell.label, cell.ratio): cell.subset_noise for cell in story.cells}
    for finding in found:
        assert finding.numbers[NOISE] == pytest.approx(100 * by_cell[finding.cell.method, finding.cell.ratio])


class Said(Progress):
    def __init__(self):
        self.lines = []

    def say(self, message):
        self.lines.append(message)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduced")


def done_steps(folder):
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("step.json")}


@pytest.mark.parametrize("name", ["table1", *(name for name in RECIPES if name != "table1")])
def test_every_recipe_runs_in_full_shape(name, out):
    plan = make_smoke_plan(name, out)
    done = reproduce(plan, out)
    assert done.smoke
    folder = out / "smoke" / name
    assert sorted(path.name for path in folder.iterdir()) == ["comparison.csv", "comparison.md", "report.html"]
    assert "SMOKE" in (folder / "comparison.md").read_text(encoding="utf-8")
    assert "SMOKE" in (folder / "report.html").read_text(encoding="utf-8")
    rows = list(csv.DictReader((folder / "comparison.csv").read_text(encoding="utf-8").splitlines()))
    assert all(row["smoke"] == "True" for row in rows)
    if name == "fig2":
        assert [runs for runs, _ in done.bins.values()] == [3, 1]
        assert all(sum(each.examples for each in bins) == runs * 60 for runs, bins in done.bins.values())
        return
    if name == "budgets":
        entries = [entry for table in done.budgets for entry in table.entries]
        assert sorted(entry.cell for entry in entries) == sorted(plan.cells)
        assert len(rows) == sum(len(entry.numbers) + (entry.lead is not None) for entry in entries)
        assert all(entry.numbers[metric].seeds == 1 for entry in entries for metric in (ACCURACY, STEPS))
        return
    numbers = [row for block in done.blocks for row in block.rows]
    assert len(numbers) == len(rows) == len(plan.cells) * len(plan.recipe.metrics)
    without_wrong_labels = [row.cell for row in numbers if row.ours is None]
    assert not [cell for cell in without_wrong_labels if plan.recipe.name != "table5"]


@pytest.fixture
def small():
    return Wanted(noise=("worst",), learner=("sop+",), method=("Uniform", "Prune4ReL_B"), ratio=(0.2,))


def test_killed_and_run_again_it_goes_on(tmp_path, small, monkeypatch):
    plan = make_smoke_plan("table1", tmp_path, small)
    work, calls = TrainStep.work, []

    def killed(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return work(*arguments)

    monkeypatch.setattr(TrainStep, "work", killed)
    with pytest.raises(KeyboardInterrupt):
        reproduce(plan, tmp_path)
    before = done_steps(tmp_path)
    assert len(before) == 1 + 2 + 1
    partly = reproduce(plan, tmp_path, run=False)
    assert sorted(row.ours is None for row in partly.blocks[0].rows) == [False, True]
    assert not (partly.folder / "report.html").exists()
    monkeypatch.setattr(TrainStep, "work", work)
    whole = reproduce(plan, tmp_path)
    assert all(row.ours is not None for row in whole.blocks[0].rows)
    after = done_steps(tmp_path)
    assert before.items() <= after.items()
    assert len(after) == 5
    reproduce(plan, tmp_path)
    assert done_steps(tmp_path) == after


def test_recipes_share_what_they_have_in_common(tmp_path):
    one = Wanted(noise=("worst",), ratio=(0.2,), learner=("sop+",))
    table3 = make_smoke_plan("table3", tmp_path, Wanted(noise=("worst",), ratio=(0.2,)))
    reproduce(table3, tmp_path)
    before = done_steps(tmp_path)
    other = Wanted(**{**one.__dict__, "method": ("Prune4ReL", "Forgetting")})
    said = Said()
    reproduce(make_smoke_plan("table1", tmp_path, other), tmp_path, progress=said)
    after = done_steps(tmp_path)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 2
    reproduce(
        make_smoke_plan("table4", tmp_path, Wanted(noise=("worst",), ratio=(0.2,), method=("Prune4ReL",))), tmp_path
    )
    assert done_steps(tmp_path) == after
    assert not any("doing it again" in line for line in said.lines)


def test_several_at_a_time_give_the_same(tmp_path, small):
    both = [
        reproduce(
            make_smoke_plan("table1", tmp_path / str(at_once), small, Settings(seeds=1, options={"parallel": at_once})),
            tmp_path / str(at_once),
        )
        for at_once in (1, 2)
    ]
    assert both[0].blocks == both[1].blocks


def test_an_estimate_is_told_before_anything_starts(tmp_path):
    plan = make_plan("table5", settings=Settings(data=tmp_path))
    assert estimate(plan, None) == "18 warm-ups, 27 selections, 27 trainings, 90.0 million images"
    assert estimate(plan, None, 1000).endswith("about 25 h 0 min")
    said = Said()
    with pytest.raises(InputError, match="prune4rel datasets cifar10n"):
        reproduce(plan, tmp_path / "out", progress=said)
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot be made"):
        make_smoke_plan("fig4", tmp_path / "file")
