"""Doing steps here, or several at a time in processes of their own."""

import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from prune4rel.errors import InputError
from prune4rel.pipeline.lock import join_workers
from prune4rel.pipeline.steps import Step, perform
from prune4rel.progress import Progress


@dataclass(frozen=True)
class Job:
    """A step, and what does it: ``function(*arguments, progress)``. All of it can be sent to another process."""

    step: Step
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def do(self, progress: Progress) -> None:
        """Do it, unless it is done."""
        perform(self.step, lambda _: self.function(*self.arguments, progress), progress)


def do_all(title: str, jobs: list[Job], *, parallel: int, home: Path, progress: Progress) -> None:
    """Do jobs one after another here, or several at a time, each in a process of its own; a failure ends the rest.

    Parameters
    ----------
    title
        What they are, for people.
    jobs
        In the order in which they are begun.
    parallel
        How many at a time; 1 for here.
    home
        The run folder, which no other run can take before the workers of this one have ended.
    progress
        Is told how many are done; of jobs done here also what they tell.
    """
    jobs = [job for job in jobs if not job.step.done]
    if min(parallel, len(jobs)) < 2:
        for job in jobs:
            job.do(progress)
        return
    for job in jobs:
        job.step.prepare(progress)
    waiting, at_work = deque(jobs), dict[Connection, SpawnProcess]()
    try:
        with progress.task(title, total=len(jobs)) as advance:
            while waiting or at_work:
                while waiting and len(at_work) < parallel:
                    ear, worker = _start(waiting.popleft(), home)
                    at_work[ear] = worker
                heard = wait(list(at_work))
                for ear in [each for each in at_work if each in heard]:
                    _hear(ear, title)
                    at_work.pop(ear).join()
                    advance(1)
    finally:
        for worker in at_work.values():
            worker.kill()
        for worker in at_work.values():
            worker.join()


def _start(job: Job, home: Path) -> tuple[Connection, SpawnProcess]:
    """Begin a job; its end is heard, however it ends, because only the worker holds the other end."""
    spawn = get_context("spawn")
    ear, mouth = spawn.Pipe(duplex=False)
    worker = spawn.Process(target=_work, args=(job, home, mouth))
    worker.start()
    mouth.close()
    return ear, worker


def _hear(ear: Connection, title: str) -> None:
    with ear:
        try:
            failure = ear.recv()
        except EOFError:
            raise InputError(
                f"{title}: a worker process was ended by force, perhaps for lack of memory; run the same command again "
                "to go on, if need be with fewer at a time (--parallel 1)"
            ) from None
    if failure is not None:
        raise failure


def _work(job: Job, home: Path, mouth: Connection) -> None:
    enter(home)
    failure: Exception | None = None
    try:
        job.do(Progress())
    except InputError as error:
        failure = error
    except Exception as error:  # noqa: BLE001 - raised again by the one who hears of it
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        failure = error
    mouth.send(failure)


def enter(home: Path) -> None:
    """Begin a worker process: it ends when the process that started it does, even by kill -9."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started it is told, too, and ends it
    parent = parent_process()
    if parent is None:
        raise AssertionError("only a worker has to follow another process")

    def follow() -> None:
        parent.join()
        os._exit(1)

    join_workers(home)
    if not parent.is_alive():
        os._exit(1)
    threading.Thread(target=follow, daemon=True).start()
