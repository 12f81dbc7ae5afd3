import json
import os
from typing import ClassVar

import pytest
from tests.pipeline.tiny import Ear

from prune4rel.atomic import put_aside
from prune4rel.progress import Progress
from prune4rel.steps import Step
from prune4rel.steps.step import sweep


class Example(Step):
    """Writes a file, or fails."""

    calls = 0
    told: ClassVar = {}

    def work(self, _progress):
        (self.folder / "result.txt").write_text("done")
        Example.calls += 1
        return self.told


def step_of(folder, **depends):
    return Example("the step", folder / "step", depends)


def do(step, ear=None):
    """Do a step; return whether there was anything to do."""
    before = Example.calls
    step.do(ear or Progress())
    return Example.calls > before


def test_done_once(tmp_path):
    assert do(step_of(tmp_path, seed=0))
    assert not do(step_of(tmp_path, seed=0))
    assert step_of(tmp_path, seed=0).record()["resumed"] is False


def test_order_of_options_does_not_matter(tmp_path):
    do(step_of(tmp_path, a=1, b={"c": 2, "d": float("nan")}))
    assert step_of(tmp_path, b={"d": float("nan"), "c": 2}, a=1).done
    assert not do(step_of(tmp_path, b={"d": float("nan"), "c": 2}, a=1))


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({"seed": 0}, {"seed": 1}, "the step: seed was 0 and is 1 now; doing it again"),
        ({"plan": {"lr": 0.1, "b": 2}}, {"plan": {"lr": 0.2, "b": 2}}, "plan.lr was 0.1 and is 0.2 now"),
        ({"plan": {}}, {"plan": {"lr": 1}}, "plan.lr was null and is 1 now"),
        ({"a": 1, "after": "x"}, {"a": 1, "after": "y"}, "a step before it changed"),
        ({"a": 1, "after": "x"}, {"a": 2, "after": "y"}, "a was 1 and is 2 now"),
        ({"a": True}, {"a": 1}, "a was true and is 1 now"),
        ({"a": "x" * 99}, {"a": "y"}, "..."),
    ],
)
def test_a_changed_option_is_named(tmp_path, before, now, words):
    do(step_of(tmp_path, **before))
    (tmp_path / "step" / "stale").write_text("of other options")
    ear = Ear()
    assert not step_of(tmp_path, **now).done
    assert do(step_of(tmp_path, **now), ear)
    assert [words in said for said in ear.said] == [True]
    assert not (tmp_path / "step" / "stale").exists()


def test_an_unfinished_step_keeps_what_it_has(tmp_path):
    step = step_of(tmp_path, seed=0)
    step.prepare(Progress())
    (tmp_path / "step" / "checkpoint").write_text("half way")
    ear = Ear()
    assert do(step_of(tmp_path, seed=0), ear)
    assert (tmp_path / "step" / "checkpoint").exists()
    assert ear.said == []
    assert step.record()["resumed"] is True


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"key": 5}'])
def test_a_broken_mark_is_no_mark(tmp_path, content):
    step = step_of(tmp_path, seed=0)
    do(step)
    (tmp_path / "step" / "step.json").write_text(content)
    assert not step.done
    assert do(step)
    assert step.done


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_folder_of_unknown_options_is_thrown_away(tmp_path, content):
    step = step_of(tmp_path, seed=0)
    step.prepare(Progress())
    (tmp_path / "step" / "depends.json").write_text(content)
    (tmp_path / "step" / "stale").write_text("")
    assert do(step)
    assert not (tmp_path / "step" / "stale").exists()


def test_a_failing_step_is_not_done(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("full")

    monkeypatch.setattr(Example, "work", fail)
    step = step_of(tmp_path, seed=0)
    with pytest.raises(OSError, match="full"):
        step.do(Progress())
    assert not step.done


def test_throwing_away_leaves_all_or_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "x").write_text("")

    def killed(_path, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("prune4rel.atomic.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        put_aside(folder)
    assert not folder.exists()
    monkeypatch.undo()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
    put_aside(folder)


def test_sweeping_takes_only_what_was_left_half_written(tmp_path):
    kept = [tmp_path / "a.part", tmp_path / ".lock", tmp_path / "b" / ".hidden"]
    stale = [tmp_path / ".m.json.1.part", tmp_path / "b" / ".x.2.old"]
    (tmp_path / "b").mkdir()
    for path in (*kept, *stale):
        path.write_text("")
    (tmp_path / "b" / ".y.3.part").mkdir()
    (tmp_path / "b" / ".y.3.part" / "z").write_text("")
    sweep(tmp_path)
    left = {os.path.join(place, name) for place, _, names in os.walk(tmp_path) for name in names}  # noqa: PTH118
    assert left == set(map(str, kept))
    assert not (tmp_path / "b" / ".y.3.part").exists()


def test_the_record_holds_what_the_work_told(tmp_path, monkeypatch):
    monkeypatch.setattr(Example, "told", {"notes": ["odd"]})
    step = step_of(tmp_path, seed=0)
    step.do(Progress())
    record = json.loads((tmp_path / "step" / "step.json").read_text())
    assert record["notes"] == ["odd"]
    assert record["key"] == step.key
    assert record["seconds"] >= 0
