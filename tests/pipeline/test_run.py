"""A changed option redoes what depends on it, and nothing else."""

import json
import os
import shutil

import pytest
from tests.pipeline.tiny import Ear, leavings, marks, redone, tiny
from tests.training.small import write_images

from prune4rel import InputError
from prune4rel.pipeline import Config, run
from prune4rel.steps import TrainStep

WARM = "warmups/sop+-seed0"
UNIFORM, PRUNED, WHOLE = "uniform-0.2-sop+-seed0", "prune4rel-0.2-sop+-seed0", "everything-sop+-seed0"
ALL = {WARM, *(f"selections/{name}" for name in (UNIFORM, PRUNED))}
ALL |= {f"trainings/{name}" for name in (UNIFORM, PRUNED, WHOLE)}


def again(home, **changes):
    """Run with other options; return which steps were redone or added, and what was said."""
    before, ear = marks(home), Ear()
    run(tiny(**{"everything": True, **changes}), home, progress=ear)
    return redone(before, home), [said for said in ear.said if "doing it again" in said]


def test_the_folder_holds_everything(finished):
    assert set(marks(finished)) == ALL
    manifest = json.loads((finished / "manifest.json").read_text())
    assert manifest["state"] == "finished"
    assert manifest["device"] == "cpu"
    assert manifest["format"] == 1
    assert set(manifest["inputs"]) == {"name", "labels", "images"}
    assert {"prune4rel", "python", "numpy", "torch"} <= set(manifest["versions"])
    assert manifest["asked"]["seed"] == 0
    assert manifest["steps"][0]["name"] == "warm-up of sop+, seed 0"
    assert all(step["seconds"] >= 0 for step in manifest["steps"])
    assert manifest["begun"] <= manifest["finished"]
    assert Config.load(finished / "config.yaml") == tiny(everything=True)
    assert not list(finished.rglob("checkpoints"))
    assert not (finished / WARM / "work").exists()


def test_again_does_nothing(home):
    ear = Ear()
    before, inside = marks(home), leavings(home)
    run(tiny(everything=True), home, progress=ear)
    assert ear.said == []
    assert marks(home) == before
    assert leavings(home) == inside


def test_the_saved_configuration_is_one(home):
    before = marks(home)
    run(Config.load(home / "config.yaml"), home)
    assert marks(home) == before


def test_other_words_for_the_same_change_nothing(home):
    assert again(home, title="Another heading", parallel=2, skip_broken=False) == (set(), [])


def test_more_ratios_add_selections_and_trainings(home):
    more = {
        f"{part}/{name}-0.1-sop+-seed0" for part in ("selections", "trainings") for name in ("uniform", "prune4rel")
    }
    assert again(home, ratios=(0.2, 0.1)) == (more, [])


def test_another_seed_adds_all_of_its_own(home):
    done, said = again(home, seeds=2)
    assert done == {name.replace("seed0", "seed1") for name in ALL}
    assert said == []


def test_fewer_methods_redo_nothing(home):
    assert again(home, methods="uniform") == (set(), [])
    assert set(marks(home)) == ALL


def test_epochs_redo_everything(home):
    done, said = again(home, epochs=3)
    assert done == ALL - {f"selections/{UNIFORM}"}
    assert said[0] == "warm-up of sop+, seed 0: plan.training.epochs was 2 and is 3 now; doing it again"
    assert "selection by prune4rel, ratio 0.2, seed 0: a step before it changed; doing it again" in said
    assert len(said) == len(done)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"view": "weak"}, 'view was "strong" and is "weak" now'),
        ({"warmup_epochs": 2}, "plan.warmup_epochs was 1 and is 2 now"),
        ({"extras": "aum"}, 'extras was [] and is ["aum"] now'),
    ],
    ids=str,
)
def test_options_of_the_warm_up_spare_what_does_not_go_by_it(home, changes, words):
    done, said = again(home, **changes)
    assert done == {WARM, f"selections/{PRUNED}", f"trainings/{PRUNED}"}
    assert words in said[0]


def test_an_option_of_a_method_redoes_that_method(home):
    methods = ["uniform", {"method": "prune4rel", "options": {"tau": 0.9}, "label": "prune4rel"}]
    done, said = again(home, methods=methods)
    assert done == {f"selections/{PRUNED}", f"trainings/{PRUNED}"}
    assert said == [
        "selection by prune4rel, ratio 0.2, seed 0: options.tau was null and is 0.9 now; doing it again",
        "training sop+ on prune4rel, ratio 0.2, seed 0: a step before it changed; doing it again",
    ]


def test_other_wrong_labels_redo_everything(home):
    done, said = again(home, options={"noise": 0.2})
    assert done == ALL
    assert "data.labels was" in said[0]


def test_a_damaged_step_is_done_again_and_comes_out_the_same(home):
    inside = leavings(home)
    for name in (f"trainings/{PRUNED}", f"selections/{UNIFORM}"):
        (home / name / "step.json").unlink()
    shutil.rmtree(home / WARM)
    done, said = again(home)
    assert done == {WARM, f"trainings/{PRUNED}", f"selections/{UNIFORM}"}
    assert said == []
    assert leavings(home) == inside


def test_restart_does_everything_anew(home):
    before = marks(home)
    run(tiny(everything=True), home, restart=True)
    assert redone(before, home) == ALL


def test_two_at_a_time_come_out_the_same(home, tmp_path):
    run(tiny(everything=True, parallel=2), tmp_path / "two")
    assert leavings(tmp_path / "two") == leavings(home)


def test_paths_are_saved_whole(tmp_path, monkeypatch):
    import numpy as np

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("data.npz", features=rng.normal(size=(60, 4)).astype(np.float32), labels=np.arange(60) % 3)
    done = run(tiny(dataset="arrays", data="data.npz", select_only=True), "run")
    assert Config.load("run/config.yaml").data == str(tmp_path / "data.npz")
    assert not done.steps.of(TrainStep)
    assert len(list((tmp_path / "run" / "selections").iterdir())) == 2


def test_places_that_are_no_place(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for place, words in (
        (tmp_path / "file", "is a file; a run needs a folder"),
        (tmp_path / "missing" / "run", "does not exist; make it first"),
        (tmp_path / "full", "holds 'thesis.tex' but no run"),
    ):
        with pytest.raises(InputError, match=words):
            run(tiny(), place)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind here")
def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(InputError, match="cannot be made"):
        run(tiny(), tmp_path / "closed" / "run")
    with pytest.raises(InputError, match="cannot write there"):
        run(tiny(), tmp_path / "closed")


def test_mistakes_leave_no_folder_behind(tmp_path):
    for changes in (
        {"dataset": "digitz"},
        {"options": {"noize": 1}},
        {"options": {"labels": "y.npy"}},
        {"training": {"lrr": 1}},
        {"training": {"seed": 1}},
        {"device": "gpu"},
    ):
        with pytest.raises(InputError):
            run(tiny(**changes), tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_what_a_killed_process_left_half_written_is_swept_away(home):
    (home / ".manifest.json.1.part").write_text("{")
    (home / "trainings" / ".x.1.old").mkdir()
    again(home)
    assert not list(home.rglob(".*.part")) + list(home.rglob(".*.old"))


def test_a_failing_step_is_told_and_the_rest_goes_on_later(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise InputError("the disk is full")

    monkeypatch.setattr("prune4rel.training.train", full)
    with pytest.raises(InputError, match="the disk is full"):
        run(tiny(), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["state"] == "running"
    monkeypatch.undo()
    before = marks(tmp_path / "run")
    run(tiny(), tmp_path / "run")
    assert {name.split("/")[0] for name in redone(before, tmp_path / "run")} == {"trainings"}


def test_a_run_under_torchrun_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=r"a run starts its own processes \(--parallel\)"):
        run(Config(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_that_nothing_can_be_tested_is_told_beforehand(tmp_path):
    write_images(tmp_path / "images")
    own = {"dataset": "folder", "data": str(tmp_path / "images"), "methods": ["uniform"]}
    for options, told in (({"image_size": 8}, True), ({"image_size": 8, "test_share": 0.5}, False)):
        ear = Ear()
        run(tiny(**own, options=options), tmp_path / f"run-{told}", progress=ear)
        said = [words for words in ear.said if words.startswith("folder has no test split")]
        assert [words.endswith("--option test_share=0.2 would hold a fifth out") for words in said] == [True] * told
