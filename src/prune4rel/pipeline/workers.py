"""Doing steps here, or several at a time in processes of their own."""

import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Self

from prune4rel.errors import InputError
from prune4rel.machine import sharing
from prune4rel.pipeline.lock import join_workers
from prune4rel.pipeline.steps import Step, perform
from prune4rel.progress import Progress

AfterStep = Callable[[Step], object]

STATUS_EVERY = 1.0
"""Seconds between two messages of a worker on how its job stands."""


@dataclass(frozen=True)
class Job:
    """A step, and what does it: ``function(*arguments, progress)``. All of it can be sent to another process."""

    step: Step
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def do(self, progress: Progress) -> None:
        """Do it, unless it is done."""
        perform(self.step, lambda _: self.function(*self.arguments, progress), progress)


class Crew:
    """Does jobs one after another here, or several at a time in processes that are kept for the next job.

    Parameters
    ----------
    size
        How many at a time; 1 for here.
    home
        The run folder, which no other run can take before the workers of this one have ended.
    """

    def __init__(self, size: int, home: Path) -> None:
        self.size, self.home = size, home
        self._workers: dict[Connection, SpawnProcess] = {}

    def do_all(self, title: str, jobs: list[Job], progress: Progress, after: AfterStep = lambda _: None) -> None:
        """Do all of the jobs that are not done; a failure ends the rest.

        Parameters
        ----------
        title
            What they are, for people.
        jobs
            In the order in which they are begun.
        progress
            Is told how many are done, and how those at work stand; of jobs done here all that they tell.
        after
            Called here with every step as soon as it is done.
        """
        jobs = [job for job in jobs if not job.step.done]
        if min(self.size, len(jobs)) < 2:
            for job in jobs:
                job.do(progress)
                after(job.step)
            return
        for job in jobs:
            job.step.prepare(progress)
        waiting, at_work = deque(jobs), dict[Connection, Job]()
        at_a_time = min(self.size, len(jobs))
        with progress.task(title, total=len(jobs)) as advance:
            while waiting or at_work:
                while waiting and len(at_work) < self.size:
                    line = next((each for each in self._workers if each not in at_work), None) or self._start()
                    at_work[line] = waiting.popleft()
                    with suppress(ConnectionError):  # it has died, which is heard below
                        line.send((at_work[line], at_a_time))
                heard = wait(list(at_work))
                for line in [each for each in at_work if each in heard]:
                    status = _hear(line, title)
                    if status is not None:
                        progress.status(f"{at_work[line].step.name}: {status}")
                        continue
                    advance(1)
                    after(at_work.pop(line).step)

    def _start(self) -> Connection:
        """Start a worker; its end is heard, however it ends, because only the worker holds the other end."""
        spawn = get_context("spawn")
        line, theirs = spawn.Pipe()
        worker = spawn.Process(target=_work, args=(self.home, theirs))
        worker.start()
        theirs.close()
        self._workers[line] = worker
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let the workers go; after a failure at once, whatever they are at."""
        for line, worker in self._workers.items():
            line.close()
            if kind is not None:
                worker.kill()
        for worker in self._workers.values():
            worker.join()


class Afar(Progress):
    """Tells the one who started this worker how its job stands, now and then."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._next = 0.0

    def status(self, message: str) -> None:
        """Send the message, unless there was one a moment ago."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + STATUS_EVERY
            self._line.send(message)


def _hear(line: Connection, title: str) -> str | None:
    """Return how the job of a worker stands, or None once it is done; raise what it failed by."""
    try:
        told: str | Exception | None = line.recv()
    except (EOFError, ConnectionError):
        raise InputError(
            f"{title}: a worker process was ended by force, perhaps for lack of memory; run the same command again "
            "to go on, if need be with fewer at a time (--parallel 1)"
        ) from None
    if isinstance(told, Exception):
        raise told
    return told


def _work(home: Path, line: Connection) -> None:
    enter(home)
    while True:
        try:
            job, at_a_time = line.recv()
        except EOFError:
            return
        with sharing(at_a_time):
            failure = _failure_of(job, Afar(line))
        line.send(failure)
        _let_go()


def _failure_of(job: Job, progress: Progress) -> Exception | None:
    try:
        job.do(progress)
    except InputError as error:
        return error
    except Exception as error:  # noqa: BLE001 - raised again by the one who hears of it
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return error
    return None


def _let_go() -> None:
    """Give back what a job took of a GPU: the next job of this worker may need less, and others more."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


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
