"""Streams of a GPU: work beside the main line of it, and steps recorded once and replayed."""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import Tensor

Done = TypeVar("Done")
Tensors = tuple[Tensor, ...]
Streams = tuple[Any, ...]
"""Examples of a step: named tuples of rows, views and labels on the device, and how many they are."""

Run = Callable[[Streams, Tensors], None]

WARM = 3
"""Steps of a kind that run as they are before the next one is recorded."""

MOST_GRAPHS = 8
"""Kinds of steps that are recorded; further ones run as they are."""

MOST_UNFINISHED = 4
"""Pieces of work that may be under way before the main line waits for the oldest: each keeps its inputs in memory."""

_current: ContextVar["SideStream | None"] = ContextVar("current", default=None)


class SideStream:
    """A stream of its own for work nobody waits for yet. Where there is no GPU, work is done at once.

    While one kernel comes to its end it leaves parts of a GPU idle, and one that moves bytes leaves its arithmetic
    idle; another line of work makes use of that.

    Parameters
    ----------
    device
        Where the work is.

    Examples
    --------
    >>> side = SideStream(torch.device("cpu"))
    >>> with side.active():
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
    def active(self) -> Iterator[None]:
        """Let others do work here, until the end of the block; there it is waited for."""
        token = _current.set(self)
        self.uses.clear()
        try:
            yield
            self.join()
        finally:
            _current.reset(token)
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


def current() -> SideStream | None:
    """Return the side stream that takes work now, if any."""
    return _current.get()


def beside(work: Callable[[], Done], *needed: Tensor) -> Done:
    """Begin some work beside the main line, see `SideStream.begin`; where there is no side stream, do it at once."""
    side = current()
    return work() if side is None else side.begin(work, *needed)


def join() -> None:
    """Wait for all work that was begun beside the main line."""
    side = current()
    if side is not None:
        side.join()


class Recorder:
    """Runs steps, each kind of them as one recorded graph.

    A kind of step (network, loss, shapes) is run a few times on a side stream, where libraries get their workspaces,
    then recorded there and replayed from then on. Nothing in a step may wait for the device.

    Parameters
    ----------
    device
        A GPU.
    side
        The side stream; one of its own unless told.
    """

    def __init__(self, device: torch.device, side: Any = None) -> None:
        self.device = device
        self.recorded: dict[Any, Recorded] = {}
        self._seen: dict[Any, int] = {}
        self._side: Any = side or torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._pool: Any = None

    def __call__(self, name: Any, run: Run, streams: Streams, drawn: Tensors) -> None:
        """Run a step; `name` tells steps apart that differ in more than the shapes of what they get."""
        kind = (name, _shapes(streams, drawn))
        if kind not in self.recorded:
            self._seen[kind] = self._seen.get(kind, 0) + 1
            if self._seen[kind] <= WARM or len(self.recorded) == MOST_GRAPHS:
                self._rehearse(run, streams, drawn)
                return
            self.recorded[kind] = self._record(run, streams, drawn)
        self.recorded[kind].replay(streams, drawn)

    def forget(self) -> None:
        """Drop what was recorded, to free its memory."""
        self.recorded.clear()
        self._seen.clear()
        self._pool = None

    def _rehearse(self, run: Run, streams: Streams, drawn: Tensors) -> None:
        here = torch.cuda.current_stream(self.device)
        self._side.wait_stream(here)
        with torch.cuda.stream(self._side):
            run(streams, drawn)
        here.wait_stream(self._side)

    def _record(self, run: Run, streams: Streams, drawn: Tensors) -> "Recorded":
        # one pool for all: graphs run one after another, and nothing of one is read by the next
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        with torch.cuda.device(self.device):
            return Recorded(run, streams, drawn, self._side, self._pool)


class Recorded:
    """A step as one CUDA graph: new inputs are copied to where the old ones lay, and everything runs again."""

    def __init__(self, run: Run, streams: Streams, drawn: Tensors, side: Any, pool: Any) -> None:
        self.streams = tuple(
            e._replace(rows=e.rows.clone(), views=tuple(_copy(view) for view in e.views), labels=e.labels.clone())
            for e in streams
        )
        self.drawn = tuple(values.clone() for values in drawn)
        self.graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # other threads may pin memory for batches to come meanwhile
        with torch.cuda.graph(self.graph, pool=pool, stream=side, capture_error_mode="thread_local"):
            run(self.streams, self.drawn)
        torch.cuda.synchronize()

    def replay(self, streams: Streams, drawn: Tensors) -> None:
        """Run the step on other examples of the same shapes."""
        old, new = _by_type(self.streams, self.drawn), _by_type(streams, drawn)
        for kind, targets in old.items():
            torch._foreach_copy_(targets, new[kind], non_blocking=True)
        self.graph.replay()


def _by_type(streams: Streams, drawn: Tensors) -> dict[torch.dtype, list[Tensor]]:
    """All that a step gets, in order; tensors of one type are copied in one go."""
    found: dict[torch.dtype, list[Tensor]] = {}
    for tensor in (*(tensor for e in streams for tensor in (e.rows, *e.views, e.labels)), *drawn):
        found.setdefault(tensor.dtype, []).append(tensor)
    return found


def _copy(view: Tensor) -> Tensor:
    """Copy inputs, images with channels last: convolutions want them so, and the copy has to be made anyway."""
    return view.clone(memory_format=torch.channels_last if view.ndim == 4 else torch.contiguous_format)


def _shapes(streams: Streams, drawn: Tensors) -> tuple[Any, ...]:
    views = tuple((tuple(view.shape), view.dtype) for e in streams for view in e.views)
    return (tuple(e.batch for e in streams), views, tuple(tuple(values.shape) for values in drawn))
