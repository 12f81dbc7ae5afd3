"""Progress as a bar on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from prune4rel.progress import Advance, PlainProgress, Progress


def _nobody(_message: str) -> None:
    """Show nothing: no task is open."""


class BarProgress(Progress):
    """A bar with the share done and the time left; it vanishes when the task is over."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self._describe: Callable[[str], None] = _nobody

    @contextmanager
    def task(self, name: str, total: float) -> Iterator[Advance]:
        """Show one bar for one task."""
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with RichProgress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(name, total=total)
            self._describe = lambda message: bar.update(task, description=message)
            try:
                yield lambda amount: bar.advance(task, amount)
            finally:
                self._describe = _nobody

    def status(self, message: str) -> None:
        """Put the message in front of the bar."""
        self._describe(message)

    def say(self, message: str) -> None:
        """Print a line above the bar."""
        self.console.print(message, style="dim", highlight=False, markup=False)


def best_progress() -> Progress:
    """Return a bar on a terminal, plain lines elsewhere."""
    return BarProgress() if sys.stderr.isatty() else PlainProgress()
