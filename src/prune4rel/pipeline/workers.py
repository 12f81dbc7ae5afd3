"""Doing steps here, or several at a time in processes of their own."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, Self

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


class Workers:
    """Does jobs one after another here, or several at a time in other processes.

    Parameters
    ----------
    parallel
        How many at a time; 1 for here.
    home
        The run folder, which no other run can take before the workers of this one have ended.
    """

    def __init__(self, parallel: int, home: Path) -> None:
        self._pool: ProcessPoolExecutor | None = None
        if parallel > 1:
            self._pool = ProcessPoolExecutor(parallel, get_context("spawn"), initializer=enter, initargs=(home,))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._pool is None:
            return
        if failure[0] is not None:
            # without this, Python would wait at its end for work that nobody wants any more
            for process in (self._pool._processes or {}).values():  # noqa: SLF001 - has no other way before 3.14
                process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def do(self, title: str, jobs: list[Job], progress: Progress) -> None:
        """Do all jobs; a failure ends the rest."""
        if self._pool is None or len(jobs) < 2:
            for job in jobs:
                job.do(progress)
            return
        for job in jobs:
            job.step.prepare(progress)
        with progress.task(title, total=len(jobs)) as advance:
            for future in as_completed([self._pool.submit(_do, job) for job in jobs]):
                _pass_on(future, title)
                advance(1)


def _pass_on(future: "Future[None]", title: str) -> None:
    try:
        future.result()
    except BrokenProcessPool:
        raise InputError(
            f"{title}: a worker process was ended by force, perhaps for lack of memory; run the same command again to "
            "go on, if need be with fewer at a time (--parallel 1)"
        ) from None


def _do(job: Job) -> None:
    job.do(Progress())


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
