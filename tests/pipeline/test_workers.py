"""What happens when a worker fails or dies."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.pipeline.tiny import Ear

from prune4rel import InputError
from prune4rel.lock import only_one
from prune4rel.machine import threads
from prune4rel.pipeline.run import Crew, WorkerProgress
from prune4rel.progress import Progress
from prune4rel.steps import Step

ROOT = Path(__file__).parents[2]


class Example(Step):
    """A step that does what its options say."""

    def work(self, progress):
        return getattr(self, self.depends["what"])(progress) or {}

    @property
    def text(self):
        return (self.folder / "text").read_text()

    def write(self, _progress):
        (self.folder / "text").write_text(f"{self.name}, by {os.getpid()}")
        return {"text": self.name}

    def count(self, _progress):
        (self.folder / "text").write_text(str(threads()))

    def tell(self, progress):
        with progress.task("counting", total=2) as advance:
            for number in (1, 2):
                progress.status(f"{number} of 2")
                advance(1)
        (self.folder / "text").touch()

    def die(self, _progress):
        (self.folder / "begun").touch()
        os.kill(os.getpid(), signal.SIGKILL)

    def fail(self, _progress):
        raise InputError("the disk is full")

    def blunder(self, _progress):
        return 1 / 0

    def sleep(self, _progress):
        (self.folder / "begun").touch()
        time.sleep(60)


class Alone(Example):
    spreads = False


def do_all(home, steps, *, parallel):
    with Crew(parallel, home) as crew:
        crew.do_all("steps", steps, Progress())


def step_of(home, name, what, kind=Example):
    return kind(name, home / name, {"what": what})


@pytest.fixture(scope="module")
def crews(tmp_path_factory):
    """One that works here, and one whose two workers are kept from test to test."""
    home = tmp_path_factory.mktemp("crew")
    with Crew(1, home / "alone") as alone, Crew(2, home / "both") as both:
        yield {1: alone, 2: both}


@pytest.mark.parametrize("parallel", [1, 2])
def test_all_steps_are_done_and_only_once(crews, tmp_path, parallel):
    steps = [step_of(tmp_path, name, "write") for name in "abc"]
    crews[parallel].do_all("steps", steps, Progress())
    before = [each.folder.joinpath("text").stat().st_mtime_ns for each in steps]
    crews[parallel].do_all("steps", steps, Progress())
    assert [each.folder.joinpath("text").stat().st_mtime_ns for each in steps] == before
    assert [each.record()["text"] for each in steps] == ["a", "b", "c"]
    here = [f"by {os.getpid()}" in each.text for each in steps]
    assert here == [parallel == 1] * 3


def test_steps_that_do_not_spread_are_done_here(tmp_path):
    steps = [step_of(tmp_path, name, "write", Alone) for name in "abc"]
    do_all(tmp_path, steps, parallel=2)
    assert [each.text for each in steps] == [f"{name}, by {os.getpid()}" for name in "abc"]


@pytest.mark.parametrize("parallel", [1, 2])
def test_every_step_is_told_of_once_it_is_done(crews, tmp_path, parallel):
    steps, told = [step_of(tmp_path, name, "write") for name in "abc"], []
    crews[parallel].do_all("steps", steps, Progress(), lambda step: told.append((step.name, step.done)))
    crews[parallel].do_all("steps", steps, Progress(), told.append)
    assert sorted(told) == [("a", True), ("b", True), ("c", True)]


@pytest.mark.parametrize(("names", "share"), [("ab", 3), ("abcde", 2), ("a", 6)])
def test_workers_share_the_threads_of_the_machine(tmp_path, monkeypatch, names, share):
    monkeypatch.setenv("PRUNE4REL_THREADS", "6")
    steps = [step_of(tmp_path, name, "count") for name in names]
    do_all(tmp_path, steps, parallel=3)
    assert {each.text for each in steps} == {str(share)}


def test_how_steps_stand_is_heard(crews, tmp_path):
    ear = Ear()
    crews[2].do_all("steps", [step_of(tmp_path, name, "tell") for name in "abc"], ear)
    assert {"a: 1 of 2", "b: 1 of 2", "c: 1 of 2"} <= set(ear.stood)


def test_how_a_job_stands_is_told_now_and_then(monkeypatch):
    sent, now = [], [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    told = WorkerProgress(SimpleNamespace(send=sent.append))
    for now[0] in (100.0, 100.4, 100.9, 101.1, 101.2, 103.0):
        told.status(f"{now[0]}")
    assert sent == ["100.0", "101.1", "103.0"]


def test_workers_are_kept_for_the_next_job(crews, tmp_path):
    for names in ("abc", "defg"):
        crews[2].do_all("steps", [step_of(tmp_path, name, "write") for name in names], Progress())
    by = {(tmp_path / name / "text").read_text().partition(", by ")[2] for name in "abcdefg"}
    assert len(by) <= 2
    assert str(os.getpid()) not in by


def test_a_worker_that_died_between_two_steps_is_missed(tmp_path):
    with Crew(2, tmp_path) as crew:
        crew.do_all("steps", [step_of(tmp_path, name, "write") for name in "ab"], Progress())
        for worker in crew._workers.values():
            worker.kill()
            worker.join()
        with pytest.raises(InputError, match="ended by force"):
            crew.do_all("steps", [step_of(tmp_path, name, "write") for name in "cd"], Progress())


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        ("die", InputError, "steps: a worker process was ended by force"),
        ("fail", InputError, "disk is full"),
        ("blunder", ZeroDivisionError, "division"),
    ],
)
def test_a_failure_ends_the_rest_at_once(tmp_path, what, error, words):
    begin = time.monotonic()
    steps = [step_of(tmp_path, "slow", "sleep"), step_of(tmp_path, "bad", what)]
    with pytest.raises(error, match=words):
        do_all(tmp_path, steps, parallel=2)
    assert time.monotonic() - begin < 50
    with only_one(tmp_path):
        late = Example("late", tmp_path / "slow", {"what": "write"})
        do_all(tmp_path, [late], parallel=1)
    assert "late" in (tmp_path / "slow" / "text").read_text()


def test_a_blunder_is_told_with_where_it_happened(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        do_all(tmp_path, [step_of(tmp_path, name, "blunder") for name in "ab"], parallel=2)
    assert "in blunder" in "".join(caught.value.__notes__)


STARTER = """
import sys
from pathlib import Path
from tests.pipeline.test_workers import do_all, step_of

home = Path(sys.argv[1])
do_all(home, [step_of(home, name, "sleep") for name in "ab"], parallel=2)
"""


def test_workers_end_with_who_started_them(tmp_path):
    with subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path)], cwd=ROOT) as starter:
        until = time.monotonic() + 50
        while not (tmp_path / "a" / "begun").exists() and time.monotonic() < until:
            time.sleep(0.05)
        starter.kill()
    assert (tmp_path / "a" / "begun").exists()
    begin = time.monotonic()
    with only_one(tmp_path):
        assert time.monotonic() - begin < 20
