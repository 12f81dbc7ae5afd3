"""What is kept as small files is what was finished, and comes together with what was finished elsewhere."""

import json
from dataclasses import replace

import numpy as np
import pytest

from prune4rel.errors import InputError
from prune4rel.recipes import Settings, Wanted, make_smoke_plan, reproduce
from prune4rel.recipes.cells import ACCURACY, NOISE, SECONDS
from prune4rel.recipes.harvest import entries, harvest, keep, kept, picks_of, together
from prune4rel.selection import Selection
from prune4rel.steps import TrainStep

SMALL = Wanted(noise=("worst",), learner=("sop+",), method=("Uniform", "Prune4ReL_B"), ratio=(0.2,))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished table1 on stand-ins, taken for the real thing."""
    out = tmp_path_factory.mktemp("run")
    plan = make_smoke_plan("table1", out, SMALL, Settings(seeds=2))
    reproduce(plan, out)
    return plan, out / "smoke"


def test_findings_come_back_as_they_were(run, tmp_path):
    plan, home = run
    written = keep(plan.jobs, home, tmp_path / "archive")
    assert written == harvest(plan.jobs, home)
    assert sorted(kept(tmp_path / "archive"), key=str) == sorted(written, key=str)


def test_what_is_finished_is_kept_at_once(tmp_path, monkeypatch):
    plan = replace(make_smoke_plan("table1", tmp_path, SMALL), smoke=False)
    work = TrainStep.work

    def fit_until_the_machine_is_gone(*arguments):
        if list((tmp_path / "archive").glob("*/*.json")):
            raise InputError("the machine is gone")
        return work(*arguments)

    monkeypatch.setattr(TrainStep, "work", fit_until_the_machine_is_gone)
    with pytest.raises(InputError, match="the machine is gone"):
        reproduce(plan, tmp_path / "out", archive=tmp_path / "archive")
    (one,) = kept(tmp_path / "archive")
    assert ACCURACY in one.numbers


def test_picks_and_curves_are_kept(run, tmp_path):
    plan, home = run
    keep(plan.jobs, home, tmp_path)
    for path in tmp_path.glob("*/*.json"):
        name = path.stem.replace("-sop+", "-*sop+")
        (place,) = (home / plan.jobs[0].folder / "selections").glob(f"{name}/selection.parquet")
        assert picks_of(path).tolist() == np.sort(Selection.load(place).indices).tolist()
        assert path.stat().st_size < 20_000
    for entry in entries(tmp_path):
        told = entry["training"]
        assert {len(curve) for curve in told["curves"].values()} == {told["epochs"]}
        last = [value for value in told["curves"]["test_accuracy"] if value is not None][-1]
        assert 100 * last == pytest.approx(entry["numbers"][ACCURACY], abs=0.01)


def test_selections_alone_are_kept_beside_trainings(run, tmp_path):
    plan, home = run
    keep(plan.jobs, home, tmp_path)
    chosen = [replace(job, config=job.config.changed(select_only=True)) for job in plan.jobs]
    keep(chosen, home, tmp_path)
    assert len(list(tmp_path.glob("*/*.json"))) == 8
    found = kept(tmp_path)
    assert len(found) == 4
    assert all({ACCURACY, NOISE, SECONDS} <= finding.numbers.keys() for finding in found)


def test_what_was_run_elsewhere_is_counted_in(run, tmp_path):
    plan, home = run
    plan = replace(plan, smoke=False)
    keep(plan.jobs, home, tmp_path / "archive")
    done = reproduce(plan, tmp_path / "empty", run=False, archive=tmp_path / "archive")
    assert [row.ours.seeds for row in done.blocks[0].rows] == [2, 2]
    assert "±" in (tmp_path / "empty" / "table1" / "comparison.md").read_text(encoding="utf-8")


def test_own_numbers_go_first_and_others_are_added(finding):
    here, there = finding("Uniform", 80.0), finding("Uniform", 7.0)
    there.numbers[SECONDS] = 3.0
    (both,) = together([here], [there])
    assert both.numbers == {ACCURACY: 80.0, SECONDS: 3.0}
    assert len(together([here], [finding("Uniform", 7.0, seed=1)])) == 2


def test_smoke_is_not_kept(tmp_path):
    plan = make_smoke_plan("table1", tmp_path, SMALL)
    with pytest.raises(InputError, match="smoke means nothing"):
        reproduce(plan, tmp_path, run=False, archive=tmp_path / "archive")


def test_rubbish_is_named(run, tmp_path):
    plan, home = run
    with pytest.raises(InputError, match="no such folder"):
        kept(tmp_path / "nowhere")
    keep(plan.jobs, home, tmp_path)
    path = next(tmp_path.glob("*/*.json"))
    entry = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**entry, "format": 99}), encoding="utf-8")
    with pytest.raises(InputError, match="has format 99"):
        kept(tmp_path)
    for rubbish in ("[1]", "{}", "no", '{"dataset": 1}'):
        path.write_text(rubbish, encoding="utf-8")
        with pytest.raises(InputError, match=path.stem[:9]):
            kept(tmp_path)


def test_second_rounds_are_kept_by_names_of_their_own(tmp_path):
    wanted = Wanted(noise=("worst",), learner=("sop+",), method=("Ours (label-aware)",), ratio=(0.2,))
    plan = make_smoke_plan("table1", tmp_path, wanted, Settings(seeds=1, options={"rounds": 2}))
    reproduce(plan, tmp_path)
    written = keep(plan.jobs, tmp_path / "smoke", tmp_path / "archive")
    assert {one.cell.method for one in written} == {"Ours (label-aware)", "Ours (label-aware), round 2"}
    assert sorted(kept(tmp_path / "archive"), key=str) == sorted(written, key=str)
    assert len(list((tmp_path / "archive").glob("*/*.json"))) == 2
