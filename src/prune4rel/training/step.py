"""One training step, and on a GPU the same step as one recorded graph."""

from contextlib import ExitStack

import torch
from torch import Tensor, nn

from prune4rel.gpu.halves import Halves
from prune4rel.gpu.streams import Recorder, SideStream, beside
from prune4rel.learners.learner import Drawn, Learner, Loss, Pass, Streams
from prune4rel.training.average import Average
from prune4rel.training.hyperparameters import Hyperparameters
from prune4rel.training.record import Record
from prune4rel.training.sgd import SGD


class Stepper:
    """Runs steps: loss, bookkeeping, gradients, descent, the learner's own business.

    On a GPU every kind of step is recorded once and replayed from then on, see `Recorder`.
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
        recordable = device.type == "cuda" and learner.ranks.world == 1
        self.recorder = Recorder(device) if recordable else None
        self._side = SideStream(device)

    def __call__(self, one: Pass, streams: Streams, drawn: Drawn) -> None:
        """Run one step of a pass."""
        if self.recorder is None:
            self._run(one, streams, drawn)
            return
        name = (one.network, getattr(one.loss, "__func__", one.loss))
        self.recorder(name, lambda s, d: self._run(one, s, d), streams, drawn)

    def begin_epoch(self, rate: float) -> None:
        """Set the learning rate, and take the weights as they are now: they may have been restored."""
        for descent in self.descents:
            descent.set_rate(rate)
        for halves in self.halves:
            halves.round()

    def forget(self) -> None:
        """Drop what was recorded, and gradients, to free their memory."""
        if self.recorder is not None:
            self.recorder.forget()
        self.learner.zero_grad(set_to_none=True)

    def _run(self, one: Pass, streams: Streams, drawn: Drawn) -> None:
        network = self.learner.networks[one.network]
        for other in self.learner.networks:
            other.train(other is network)
        for parameter in network.parameters():
            parameter.grad = None
        with self._side.active():
            loss = self._loss_of(one, streams, drawn)
            beside(lambda: self.record.add(loss, streams, network=one.network))
            torch.autograd.backward(loss.total)
        self._descend(one.network)
        if self.averages:
            self.averages[one.network].update()
        self.learner.after_step(one.network)

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

    def _loss_of(self, one: Pass, streams: Streams, drawn: Drawn) -> Loss:
        with ExitStack() as stack:
            # casts are not kept: one recording must not lean on what another, or a look without gradients, cast
            stack.enter_context(
                torch.autocast(self.device.type, torch.bfloat16, enabled=self.half, cache_enabled=False)
            )
            for halves in self.halves:
                stack.enter_context(halves.swapped())
            return one.loss(streams, drawn)
