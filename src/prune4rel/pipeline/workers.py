"""Doing steps here, or several at a time in processes of their own."""

import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Self

from prune4rel.errors import InputError
from prune4rel.lock import join_workers
from prune4rel.machine import sharing
from prune4rel.progress import Progress
from prune4rel.steps import Step

AfterStep = Callable[[Step], object]

STATUS_EVERY = 1.0
"""Seconds between two messages of a worker on how its step stands."""


class Crew:
    """Does steps one after another here, or several at a time in processes that are kept for the next step.

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

    def do_all(self, title: str, steps: Iterable[Step], progress: Progress, after: AfterStep = lambda _: None) -> None:
        """Do all of the steps that are not done; a failure ends the rest.

        Parameters
        ----------
        title
            What they are, for people.
        steps
            In the order in which they are begun; they are sent to other processes as they are.
        progress
            Is told how many are done, and how those at work stand; of steps done here all that they tell.
        after
            Called here with every step as soon as it is done.
        """
        waiting = deque(step for step in steps if not step.done)
        at_a_time = min(self.size, len(waiting))
        if at_a_time < 2 or not all(step.spreads for step in waiting):
            for step in waiting:
                step.do(progress)
                after(step)
            return
        for step in waiting:
            step.mend_used(progress)
            step.prepare(progress)
        at_work = dict[Connection, Step]()
        with progress.task(title, total=len(waiting)) as advance:
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
                        progress.status(f"{at_work[line].name}: {status}")
                        continue
                    advance(1)
                    after(at_work.pop(line))

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


class WorkerProgress(Progress):
    """Tells the process that started this worker how its step stands, now and then."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._next = 0.0

    def status(self, message: str) -> None:
        """Send the message, unless there was one a moment ago."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + STATUS_EVERY
            self._line.send(message)


def _hear(line: Connection, title: str) -> str | None:
    """Return how the step of a worker stands, or None once it is done; raise what it failed by."""
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
            step, at_a_time = line.recv()
        except EOFError:
            return
        with sharing(at_a_time):
            failure = _failure_of(step, WorkerProgress(line))
        line.send(failure)
        _let_go()


def _failure_of(step: Step, progress: Progress) -> Exception | None:
    try:
        step.do(progress)
    except InputError as error:
        return error
    except Exception as error:  # noqa: BLE001 - raised again by the one who hears of it
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return error
    return None


def _let_go() -> None:
    """Give back what a step took of a GPU: the next step of this worker may need less, and others more."""
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
