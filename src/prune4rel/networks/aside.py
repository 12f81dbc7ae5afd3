"""Work on a GPU that runs beside the main line of work."""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import Tensor

Done = TypeVar("Done")

MOST_UNFINISHED = 4
"""Pieces of work that may be under way before the main line waits for the oldest: each keeps its inputs in memory."""

_offered: ContextVar["Aside | None"] = ContextVar("offered", default=None)


class Aside:
    """A stream of its own for work nobody waits for yet. Where there is no GPU, work is done at once.

    While one kernel comes to its end it leaves parts of a GPU idle, and one that moves bytes leaves its arithmetic
    idle; another line of work makes use of that.

    Parameters
    ----------
    device
        Where the work is.

    Examples
    --------
    >>> aside = Aside(torch.device("cpu"))
    >>> with aside.offered():
    ...     twice = beside(lambda: 2 * torch.ones(2))  # meanwhile, something else
    ...     join()
    >>> twice
    tensor([2., 2.])
    """

    def __init__(self, device: torch.device) -> None:
        self._stream: Any = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._unfinished: deque[tuple[Any, tuple[Tensor, ...]]] = deque()
        self.uses: Counter[int] = Counter()

    @contextmanager
    def offered(self) -> Iterator[None]:
        """Let others do work aside, until the end of the block; there it is waited for."""
        token = _offered.set(self)
        self.uses.clear()
        try:
            yield
            self.join()
        finally:
            _offered.reset(token)
            self._unfinished.clear()

    def begin(self, work: Callable[[], Done], *needed: Tensor) -> Done:
        """Begin some work, after all that the main line was told to do before.

        Parameters
        ----------
        work
            What to do. Nobody may touch what it returns before `join`.
        needed
            What it reads and the main line may let go of: kept until the work is done.
        """
        if self._stream is None:
            return work()
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        with torch.cuda.stream(self._stream):
            done = work()
            self._unfinished.append((self._stream.record_event(), needed))
        return done

    def make_room(self) -> None:
        """Let the main line wait for the oldest work, where there is too much of it."""
        while len(self._unfinished) >= MOST_UNFINISHED:
            event, _ = self._unfinished.popleft()
            torch.cuda.current_stream(self._stream.device).wait_event(event)

    def join(self) -> None:
        """Let the main line wait for all work."""
        if self._unfinished:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
            self._unfinished.clear()


def offered() -> Aside | None:
    """Return where work can be done aside now, if anywhere."""
    return _offered.get()


def beside(work: Callable[[], Done], *needed: Tensor) -> Done:
    """Begin some work aside, see `Aside.begin`; where that is not offered, do it at once."""
    aside = offered()
    return work() if aside is None else aside.begin(work, *needed)


def join() -> None:
    """Wait for all work that was begun aside."""
    aside = offered()
    if aside is not None:
        aside.join()
