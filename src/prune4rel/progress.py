"""How far along a long piece of work is, told to whoever listens.

Work is reported through one small interface; the command line listens with a bar or plain lines, the
Python interface stays silent unless asked.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO


class Advance(Protocol):
    """Tell that `amount` more units of the current task are done."""

    def __call__(self, amount: float, /) -> None:
        """Tell it."""


class Progress:
    """A listener that stays silent; subclasses show something.

    >>> with Progress().task("neighbours", total=10) as advance:
    ...     advance(5)
    """

    @contextmanager
    def task(self, name: str, total: float) -> Iterator[Advance]:
        """Open a task of `total` units; yields the function that advances it."""
        del name, total
        yield no_advance

    def say(self, message: str) -> None:
        """Tell one line about what is about to happen."""
        del message

    def status(self, message: str) -> None:
        """Tell how the current task stands; the next message replaces this one."""
        del message


class Tasks(Progress):
    """Passes tasks on to another listener, and keeps remarks to itself.

    >>> Tasks(PlainProgress()).say("not worth a line")
    """

    def __init__(self, listener: Progress) -> None:
        self._listener = listener

    @contextmanager
    def task(self, name: str, total: float) -> Iterator[Advance]:
        """Open the task there."""
        with self._listener.task(name, total) as advance:
            yield advance


@contextmanager
def patience(progress: Progress, message: str, after: float = 1.0) -> Iterator[None]:
    """Say why nothing seems to happen, if the block takes longer than `after` seconds."""
    timer = threading.Timer(after, progress.say, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def no_advance(_amount: float, /) -> None:
    """Advance nothing: for work nobody watches."""


class PlainProgress(Progress):
    """Lines of text for logs and pipes: at most one every few seconds."""

    def __init__(self, stream: TextIO | None = None, every: float = 5.0) -> None:
        self.stream = stream or sys.stderr
        self.every = every
        self._last_status = time.monotonic()

    @contextmanager
    def task(self, name: str, total: float) -> Iterator[Advance]:
        """Print a line every few seconds and one at the end of a task that took a while."""
        begin = last = time.monotonic()
        done = 0.0

        def advance(amount: float, /) -> None:
            nonlocal done, last
            done += amount
            now = time.monotonic()
            if now - last >= self.every and done > 0:
                last = now
                left = (now - begin) * max(0.0, total - done) / done
                self.say(f"{name}: {min(1.0, done / max(total, 1e-9)):.0%}, about {left:.0f} s left")

        yield advance
        spent = time.monotonic() - begin
        if spent >= 2.0:
            self.say(f"{name}: done in {spent:.1f} s")

    def status(self, message: str) -> None:
        """Print the line, unless there was one a moment ago."""
        if time.monotonic() - self._last_status >= self.every:
            self._last_status = time.monotonic()
            self.say(message)

    def say(self, message: str) -> None:
        """Print the line at once."""
        print(message, file=self.stream, flush=True)
