"""Progress as a bar on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from prune4rel.progress import Advance, PlainProgress, Progress

BAR = 24


class BarProgress(Progress):
    """A bar with the share done and the time left; it vanishes when the task is over.

    A task within a task has a bar below the other's.
    """

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        words = TextColumn("{task.description}", markup=False, table_column=Column())  # broken where there is no room
        columns = (words, BarColumn(bar_width=BAR), TaskProgressColumn(), TimeRemainingColumn())
        self._bars = RichProgress(*columns, console=self.console, transient=True)
        self._open: list[TaskID] = []

    @contextmanager
    def task(self, name: str, total: float) -> Iterator[Advance]:
        """Show one bar for one task."""
        self._bars.start()  # where it is not yet
        mine = self._bars.add_task(name, total=total)
        self._open.append(mine)
        try:
            yield lambda amount: self._bars.advance(mine, amount)
        finally:
            self._open.remove(mine)
            self._bars.remove_task(mine)
            if not self._open:
                self._bars.stop()

    def status(self, message: str) -> None:
        """Put the message in front of the innermost bar."""
        if self._open:
            self._bars.update(self._open[-1], description=message)

    def say(self, message: str) -> None:
        """Print a line above the bar."""
        self.console.print(message, style="dim", highlight=False, markup=False)


def best_progress() -> Progress:
    """Return a bar on a terminal, plain lines elsewhere."""
    return BarProgress() if sys.stderr.isatty() else PlainProgress()
