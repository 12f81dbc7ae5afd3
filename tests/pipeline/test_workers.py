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
from prune4rel.machine import threads
from prune4rel.pipeline import workers
from prune4rel.pipeline.lock import only_one
from prune4rel.pipeline.steps import Step
from prune4rel.pipeline.workers import Crew, Job
from prune4rel.progress import Progress

ROOT = Path(__file__).parents[2]


def write(folder, text, _progress):
    (Path(folder) / "text").write_text(f"{text}, by {os.getpid()}")
    return {"text": text}


def count(folder, _progress):
    (Path(folder) / "text").write_text(str(threads()))


def tell(folder, progress):
    with progress.task("counting", total=2) as advance:
        for number in (1, 2):
            progress.status(f"{number} of 2")
            advance(1)
    (Path(folder) / "text").touch()


def die(folder, _progress):
    (Path(folder) / "begun").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def fail(_folder, _progress):
    raise InputError("the disk is full")


def blunder(_folder, _progress):
    return 1 / 0


def sleep(folder, _progress):
    (Path(folder) / "begun").touch()
    time.sleep(60)


def do_all(home, jobs, *, parallel):
    with Crew(parallel, home) as crew:
        crew.do_all("jobs", jobs, Progress())


def job(home, name, function, *arguments):
    folder = home / name
    return Job(Step(name, folder, {"name": name}), function, (folder, *arguments))


@pytest.mark.parametrize("parallel", [1, 2])
def test_all_jobs_are_done_and_only_once(tmp_path, parallel):
    jobs = [job(tmp_path, name, write, name) for name in "abc"]
    do_all(tmp_path, jobs, parallel=parallel)
    before = [each.step.folder.joinpath("text").stat().st_mtime_ns for each in jobs]
    do_all(tmp_path, jobs, parallel=parallel)
    assert [each.step.folder.joinpath("text").stat().st_mtime_ns for each in jobs] == before
    assert [each.step.record()["text"] for each in jobs] == ["a", "b", "c"]
    here = [f"by {os.getpid()}" in each.step.folder.joinpath("text").read_text() for each in jobs]
    assert here == [parallel == 1] * 3


@pytest.mark.parametrize("parallel", [1, 2])
def test_every_step_is_told_of_once_it_is_done(tmp_path, parallel):
    jobs, told = [job(tmp_path, name, write, name) for name in "abc"], []
    with Crew(parallel, tmp_path) as crew:
        crew.do_all("jobs", jobs, Progress(), lambda step: told.append((step.name, step.done)))
        crew.do_all("jobs", jobs, Progress(), told.append)
    assert sorted(told) == [("a", True), ("b", True), ("c", True)]


@pytest.mark.parametrize(("names", "share"), [("ab", 3), ("abcde", 2), ("a", 6)])
def test_workers_share_the_threads_of_the_machine(tmp_path, monkeypatch, names, share):
    monkeypatch.setenv("PRUNE4REL_THREADS", "6")
    jobs = [job(tmp_path, name, count) for name in names]
    do_all(tmp_path, jobs, parallel=3)
    assert {each.step.folder.joinpath("text").read_text() for each in jobs} == {str(share)}


def test_how_jobs_stand_is_heard(tmp_path):
    ear = Ear()
    with Crew(2, tmp_path) as crew:
        crew.do_all("jobs", [job(tmp_path, name, tell) for name in "abc"], ear)
    assert {"a: 1 of 2", "b: 1 of 2", "c: 1 of 2"} <= set(ear.stood)


def test_how_a_job_stands_is_told_now_and_then(monkeypatch):
    sent, now = [], [100.0]
    monkeypatch.setattr(workers.time, "monotonic", lambda: now[0])
    afar = workers.Afar(SimpleNamespace(send=sent.append))
    for now[0] in (100.0, 100.4, 100.9, 101.1, 101.2, 103.0):
        afar.status(f"{now[0]}")
    assert sent == ["100.0", "101.1", "103.0"]


def test_workers_are_kept_for_the_next_job(tmp_path):
    with Crew(2, tmp_path) as crew:
        for names in ("abc", "defg"):
            crew.do_all("jobs", [job(tmp_path, name, write, name) for name in names], Progress())
    by = {(tmp_path / name / "text").read_text().partition(", by ")[2] for name in "abcdefg"}
    assert len(by) <= 2
    assert str(os.getpid()) not in by


def test_a_worker_that_died_between_two_jobs_is_missed(tmp_path):
    with Crew(2, tmp_path) as crew:
        crew.do_all("jobs", [job(tmp_path, name, write, name) for name in "ab"], Progress())
        for worker in crew._workers.values():
            worker.kill()
            worker.join()
        with pytest.raises(InputError, match="ended by force"):
            crew.do_all("jobs", [job(tmp_path, name, write, name) for name in "cd"], Progress())


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (die, InputError, "jobs: a worker process was ended by force"),
        (fail, InputError, "disk is full"),
        (blunder, ZeroDivisionError, "division"),
    ],
)
def test_a_failure_ends_the_rest_at_once(tmp_path, function, error, words):
    begin = time.monotonic()
    jobs = [job(tmp_path, "slow", sleep), job(tmp_path, "bad", function)]
    with pytest.raises(error, match=words):
        do_all(tmp_path, jobs, parallel=2)
    assert time.monotonic() - begin < 50
    with only_one(tmp_path):
        late = job(tmp_path, "slow", write, "late")
        do_all(tmp_path, [late], parallel=1)
    assert "late" in (tmp_path / "slow" / "text").read_text()


def test_a_blunder_is_told_with_where_it_happened(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        do_all(tmp_path, [job(tmp_path, name, blunder) for name in "ab"], parallel=2)
    assert "in blunder" in "".join(caught.value.__notes__)


STARTER = """
import sys
from pathlib import Path
from tests.pipeline.test_workers import do_all, job, sleep

home = Path(sys.argv[1])
do_all(home, [job(home, name, sleep) for name in "ab"], parallel=2)
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
