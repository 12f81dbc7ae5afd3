"""One training step, and on a GPU the same step as one recorded graph."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from prune4rel.learners.learner import Drawn, Examples, Learner, Loss, Pass, Streams
from prune4rel.networks.aside import Aside, beside
from prune4rel.training.average import Average
from prune4rel.training.halves import Halves
from prune4rel.training.hyperparameters import Hyperparameters
from prune4rel.training.record import Record
from prune4rel.training.sgd import SGD

WARM = 3
"""Steps of a kind that run as they are before the next one is recorded."""

MOST_GRAPHS = 8
"""Kinds of steps that are recorded; further ones run as they are."""


class Stepper:
    """Runs steps: loss, bookkeeping, gradients, descent, the learner's own business.

    On a GPU a kind of step (network, loss, shapes) is run a few times on a side stream, where libraries get their
    workspaces, then recorded there and replayed from then on. Nothing in a step may wait for the device.
    """

    def __init__(
        self, learner: Learner, hyperparameters: Hyperparameters, record: Record, device: torch.device
    ) -> None:
        self.learner, self.hyperparameters, self.record, self.device = learner, hyperparameters, record, device
        self.descents = [
            SGD(
                network.parameters(),
                momentum=hyperparameters.momentum,
                nesterov=hyperparameters.nesterov,
                weight_decay=hyperparameters.weight_decay,
            )
            for network in learner.networks
        ]
        self.averages = (
            [Average(network, hyperparameters.ema) for network in learner.networks] if hyperparameters.ema else []
        )
        self.half = hyperparameters.mixed(device.type)
        # in full precision there is nothing to round: no layers
        self.halves = [Halves(network if self.half else nn.Identity()) for network in learner.networks]
        self._recorded: dict[Any, Recorded] = {}
        self._seen: dict[Any, int] = {}
        self._side: Any = None
        self._pool: Any = None
        if device.type == "cuda" and learner.ranks.world == 1:
            self._side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._aside = Aside(device)

    def __call__(self, one: Pass, streams: Streams, drawn: Drawn) -> None:
        """Run one step of a pass."""
        if self._side is None:
            self._run(one, streams, drawn)
            return
        kind = (one.network, getattr(one.loss, "__func__", one.loss), _shapes(streams, drawn))
        if kind not in self._recorded:
            self._seen[kind] = self._seen.get(kind, 0) + 1
            if self._seen[kind] <= WARM or len(self._recorded) == MOST_GRAPHS:
                self._rehearse(one, streams, drawn)
                return
            self._recorded[kind] = self._record(one, streams, drawn)
        self._recorded[kind].replay(streams, drawn)

    def begin_epoch(self, rate: float) -> None:
        """Set the learning rate, and take the weights as they are now: they may have been restored."""
        for descent in self.descents:
            descent.set_rate(rate)
        for halves in self.halves:
            halves.round()

    def forget(self) -> None:
        """Drop what was recorded, and gradients, to free their memory."""
        self._recorded.clear()
        self._seen.clear()
        self._pool = None
        self.learner.zero_grad(set_to_none=True)

    def _rehearse(self, one: Pass, streams: Streams, drawn: Drawn) -> None:
        here = torch.cuda.current_stream(self.device)
        self._side.wait_stream(here)
        with torch.cuda.stream(self._side):
            self._run(one, streams, drawn)
        here.wait_stream(self._side)

    def _record(self, one: Pass, streams: Streams, drawn: Drawn) -> "Recorded":
        # one pool for all: graphs run one after another, and nothing of one is read by the next
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        with torch.cuda.device(self.device):
            return Recorded(lambda s, d: self._run(one, s, d), streams, drawn, self._side, self._pool)

    def _run(self, one: Pass, streams: Streams, drawn: Drawn) -> None:
        network = self.learner.networks[one.network]
        for other in self.learner.networks:
            other.train(other is network)
        for parameter in network.parameters():
            parameter.grad = None
        with self._aside.offered():
            loss = self._ask(one, streams, drawn)
            beside(lambda: self.record.add(loss, streams, network=one.network))
            torch.autograd.backward(loss.total)
        self._descend(one.network)
        if self.averages:
            self.averages[one.network].update()
        self.learner.settle(one.network)

    def _descend(self, number: int) -> None:
        network, descent = self.learner.networks[number], self.descents[number]
        halves = self.halves[number]
        as_they_are = self.hyperparameters.clip is None and self.learner.ranks.world == 1
        if as_they_are and descent.step_from(halves):
            return
        halves.collect()
        gradients: list[Tensor] = [p.grad for p in network.parameters() if p.grad is not None]
        self.learner.ranks.reduce_(gradients)
        if self.hyperparameters.clip is not None:
            nn.utils.clip_grad_norm_(network.parameters(), self.hyperparameters.clip)
        descent.step()
        halves.round()

    def _ask(self, one: Pass, streams: Streams, drawn: Drawn) -> Loss:
        with ExitStack() as stack:
            # casts are not kept: one recording must not lean on what another, or a look without gradients, cast
            stack.enter_context(
                torch.autocast(self.device.type, torch.bfloat16, enabled=self.half, cache_enabled=False)
            )
            for halves in self.halves:
                stack.enter_context(halves.lent())
            return one.loss(streams, drawn)


class Recorded:
    """A step as one CUDA graph: new inputs are copied to where the old ones lay, and everything runs again."""

    def __init__(
        self, run: Callable[[Streams, Drawn], None], streams: Streams, drawn: Drawn, side: Any, pool: Any
    ) -> None:
        self.streams = tuple(
            Examples(e.rows.clone(), tuple(_copy(view) for view in e.views), e.labels.clone(), e.batch) for e in streams
        )
        self.drawn = tuple(values.clone() for values in drawn)
        self.graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # other threads may pin memory for batches to come meanwhile
        with torch.cuda.graph(self.graph, pool=pool, stream=side, capture_error_mode="thread_local"):
            run(self.streams, self.drawn)
        torch.cuda.synchronize()

    def replay(self, streams: Streams, drawn: Drawn) -> None:
        """Run the step on other examples of the same shapes."""
        old, new = _by_type(self.streams, self.drawn), _by_type(streams, drawn)
        for kind, targets in old.items():
            torch._foreach_copy_(targets, new[kind], non_blocking=True)
        self.graph.replay()


def _by_type(streams: Streams, drawn: Drawn) -> dict[torch.dtype, list[Tensor]]:
    """All that a step gets, in order; tensors of one type are copied in one go."""
    found: dict[torch.dtype, list[Tensor]] = {}
    for tensor in (*(tensor for e in streams for tensor in (e.rows, *e.views, e.labels)), *drawn):
        found.setdefault(tensor.dtype, []).append(tensor)
    return found


def _copy(view: Tensor) -> Tensor:
    """Copy inputs, images with channels last: convolutions want them so, and the copy has to be made anyway."""
    return view.clone(memory_format=torch.channels_last if view.ndim == 4 else torch.contiguous_format)


def _shapes(streams: Streams, drawn: Drawn) -> tuple[Any, ...]:
    views = tuple((tuple(view.shape), view.dtype) for e in streams for view in e.views)
    return (tuple(e.batch for e in streams), views, tuple(tuple(values.shape) for values in drawn))
