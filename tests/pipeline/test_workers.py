"""What happens when a worker fails or dies."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prune4rel import InputError
from prune4rel.pipeline.lock import only_one
from prune4rel.pipeline.steps import Step
from prune4rel.pipeline.workers import Job, Workers
from prune4rel.progress import Progress

ROOT = Path(__file__).parents[2]


def write(folder, text, _progress):
    (Path(folder) / "text").write_text(f"{text}, by {os.getpid()}")
    return {"text": text}


def die(folder, _progress):
    (Path(folder) / "begun").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def fail(_folder, _progress):
    raise InputError("the disk is full")


def sleep(folder, _progress):
    (Path(folder) / "begun").touch()
    time.sleep(60)


def job(home, name, function, *arguments):
    folder = home / name
    return Job(Step(name, folder, {"name": name}), function, (folder, *arguments))


@pytest.mark.parametrize("parallel", [1, 2])
def test_all_jobs_are_done_and_only_once(tmp_path, parallel):
    jobs = [job(tmp_path, name, write, name) for name in "abc"]
    with Workers(parallel, tmp_path) as workers:
        workers.do("jobs", jobs, Progress())
        before = [each.step.folder.joinpath("text").stat().st_mtime_ns for each in jobs]
        workers.do("jobs", jobs, Progress())
    assert [each.step.folder.joinpath("text").stat().st_mtime_ns for each in jobs] == before
    assert [each.step.record()["text"] for each in jobs] == ["a", "b", "c"]
    here = [f"by {os.getpid()}" in each.step.folder.joinpath("text").read_text() for each in jobs]
    assert here == [parallel == 1] * 3


@pytest.mark.parametrize(
    ("function", "words"), [(die, "jobs: a worker process was ended by force"), (fail, "disk is full")]
)
def test_a_failure_ends_the_rest_at_once(tmp_path, function, words):
    begin = time.monotonic()
    with pytest.raises(InputError, match=words), Workers(2, tmp_path) as workers:
        workers.do("jobs", [job(tmp_path, "slow", sleep), job(tmp_path, "bad", function)], Progress())
    assert time.monotonic() - begin < 50
    with only_one(tmp_path), Workers(1, tmp_path) as workers:
        workers.do("jobs", [job(tmp_path, "slow", write, "late")], Progress())
    assert "late" in (tmp_path / "slow" / "text").read_text()


STARTER = """
import sys
from pathlib import Path
from prune4rel.progress import Progress
from tests.pipeline.test_workers import Workers, job, sleep

home = Path(sys.argv[1])
with Workers(2, home) as workers:
    workers.do("jobs", [job(home, name, sleep) for name in "ab"], Progress())
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
