"""One training step: what it does, what is watched of it, the descent, the moving average; on a GPU recorded."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from prune4rel.errors import InputError, nearest
from prune4rel.gpu.layers import Halves
from prune4rel.gpu.streams import Recorder, SideStream, beside
from prune4rel.learners.learner import Drawn, Learner, Loss, Pass, Streams
from prune4rel.learners.memory import Memory
from prune4rel.loading.schedule import Ranks
from prune4rel.machine import has_triton
from prune4rel.training.hyperparameters import Hyperparameters

HISTORIES = ("forgetting", "aum")
"""What can be kept for every example over the epochs."""

NO_STEP = torch.iinfo(torch.int64).max
MOST_PARTS = 16


class Record(nn.Module):
    """Sums of losses and hits over an epoch, and, if wanted, each example's history over all epochs.

    Histories go by what the first network said in training, of the augmented example: a forgetting event is a hit
    followed by a miss; the area under the margin is the mean of p(given label) minus the largest other p.

    Parameters
    ----------
    m, n_classes
        Number of examples and classes.
    keep
        Which of `HISTORIES` to keep.
    memory
        Takes in what every step says before it learns; None for no memory.

    Examples
    --------
    >>> from prune4rel.learners.learner import Examples
    >>> record = Record(2, 3, ["aum"], Ranks(), torch.device("cpu"))
    >>> some = Examples(torch.tensor([1]), (), torch.tensor([2]), 1)
    >>> logits = torch.tensor([[0.0, 0.0, 0.0]])
    >>> record.add(Loss(torch.tensor(1.5), {}, logits), (some,))
    >>> record.summary(), record.histories()["aum"]
    ({'loss': 1.5, 'train_accuracy': 0.0}, tensor([0., 0.], dtype=torch.float64))
    """

    sums: Tensor
    hits: Tensor
    step: Tensor
    bad_step: Tensor
    units: Tensor
    was_right: Tensor
    learnt: Tensor
    forgotten: Tensor
    margins: Tensor
    seen: Tensor

    def __init__(
        self,
        m: int,
        n_classes: int,
        keep: Collection[str],
        ranks: Ranks,
        device: torch.device,
        memory: Memory | None = None,
    ) -> None:
        super().__init__()
        self.memory = memory
        for name in keep:
            if name not in HISTORIES:
                raise InputError(f"cannot record {name!r}; {nearest(name, HISTORIES)}")
        self.keep, self.ranks, self.n_classes = frozenset(keep), ranks, n_classes
        self.names: list[str] = []
        rows = m if self.keep else 0
        self._add_buffer("sums", (MOST_PARTS, 2), torch.float64, device)
        self._add_buffer("hits", (2,), torch.float64, device)
        self._add_buffer("step", (), torch.int64, device)
        self._add_buffer("bad_step", (), torch.int64, device)
        self.bad_step.fill_(NO_STEP)
        self.register_buffer("units", torch.arange(2, dtype=torch.float64, device=device), persistent=False)
        self._add_buffer("was_right", (rows,), torch.bool, device)
        self._add_buffer("learnt", (rows,), torch.bool, device)
        self._add_buffer("forgotten", (rows,), torch.int64, device)
        self._add_buffer("margins", (rows,), torch.float64, device)
        self._add_buffer("seen", (rows,), torch.int64, device)

    def _add_buffer(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
        self.register_buffer(name, torch.zeros(shape, dtype=dtype, device=device))

    def begin_epoch(self) -> None:
        """Start counting anew."""
        self.sums.zero_()
        self.hits.zero_()
        self.step.zero_()

    @torch.no_grad()
    def add(self, loss: Loss, streams: Streams, network: int = 0) -> None:
        """Book one step that trained a network. Nothing here waits for the device.

        Launches of many small operations cost a GPU more than the operations: there are as few as possible.
        """
        values = {"loss": loss.total.detach(), **loss.parts}
        right = None if loss.logits is None else loss.logits.argmax(1) == streams[0].labels
        hits = [] if right is None else [right.sum()]
        # summed now rather than once an epoch, so that any rank's record is that of all, also in a checkpoint
        totals = self.ranks.sum(torch.stack([*values.values(), *hits]).double())
        self._book(dict(zip(values, totals, strict=False)))
        finite = totals[0] - totals[0] == 0
        torch.minimum(self.bad_step, torch.where(finite, NO_STEP, self.step), out=self.bad_step)
        self.step.add_(1)
        if loss.logits is not None and right is not None:
            self.hits[0].add_(totals[-1])
            self.hits[1].add_(streams[0].batch)
            self._compare(loss.logits, right, streams, network)
        self._remember(loss, streams)

    def _book(self, totals: Mapping[str, Tensor]) -> None:
        self.names += [name for name in totals if name not in self.names]
        zero, one = self.units.unbind()
        sums = [totals.get(name, zero) for name in self.names]
        counts = [one if name in totals else zero for name in self.names]
        self.sums[: len(self.names)].add_(torch.stack([*sums, *counts]).view(2, -1).T)

    def _compare(self, logits: Tensor, right: Tensor, streams: Streams, network: int) -> None:
        rows, labels = streams[0].rows, streams[0].labels
        if not self.keep or network != 0:
            return
        probabilities = torch.softmax(logits.double(), dim=1)
        given = probabilities.gather(1, labels[:, None])[:, 0]
        others = probabilities.scatter(1, labels[:, None], -1.0).max(1).values
        rows, right, margin = map(self.ranks.gather, (rows, right, given - others))
        self.forgotten[rows] += (self.was_right[rows] & ~right).long()
        self.learnt[rows] |= right
        self.was_right[rows] = right
        self.margins[rows] += margin
        self.seen[rows] += 1

    def _remember(self, loss: Loss, streams: Streams) -> None:
        if self.memory is None:
            return
        if loss.said is not None:
            self.memory.add(*loss.said)
        elif loss.logits is not None:
            said = torch.softmax(loss.logits, dim=1)
            self.memory.add(self.ranks.gather(streams[0].rows), self.ranks.gather(said))

    def first_bad_step(self) -> int | None:
        """Return the step of this epoch at which the loss was no number, if any; waits for the device."""
        bad = int(self.bad_step.item())
        return None if bad == NO_STEP else bad

    def summary(self) -> dict[str, float]:
        """Return means over the epoch: the loss, its parts, and the share of examples the network agreed with."""
        totals, steps = self.sums.T.tolist()
        found = {name: totals[k] / steps[k] for k, name in enumerate(self.names) if steps[k]}
        hits, seen = self.hits.tolist()
        return found | ({"train_accuracy": hits / seen} if seen else {})

    def histories(self) -> dict[str, Tensor]:
        """Return what was kept of every example: (m,) each; forgetting is infinite where nothing was ever learnt."""
        if self.keep and not self.seen.any():
            raise InputError(
                f"{' and '.join(sorted(self.keep))} cannot be recorded with this learner, which mixes examples; choose "
                "another, such as sop+ or cross-entropy"
            )
        found: dict[str, Tensor] = {}
        if "forgetting" in self.keep:
            counted = self.forgotten.double()
            found["forgetting"] = torch.where(self.learnt, counted, torch.inf).cpu()
        if "aum" in self.keep:
            found["aum"] = (self.margins / self.seen.clamp(min=1)).cpu()
        return found


class Average(nn.Module):
    """Follows a network's weights: average ← decay · average + (1 - decay) · weight, after every step.

    What is no floating-point number, such as a count of batches, is taken over as it is.

    Examples
    --------
    >>> network = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(network.weight)
    >>> average = Average(network, decay=0.75)
    >>> _ = nn.init.ones_(network.weight)
    >>> average.update()
    >>> with average.swapped():
    ...     network.weight.item()
    0.25
    >>> network.weight.item()
    1.0
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self._live = [*network.parameters(), *network.buffers()]
        self._kept = [tensor.detach().clone() for tensor in self._live]
        for number, tensor in enumerate(self._kept):
            self.register_buffer(f"average{number}", tensor)

    @torch.no_grad()
    def update(self) -> None:
        """Move a little towards the current weights."""
        floats = [tensor.is_floating_point() for tensor in self._live]
        kept = [tensor for tensor, yes in zip(self._kept, floats, strict=True) if yes]
        live = [tensor.detach() for tensor, yes in zip(self._live, floats, strict=True) if yes]
        torch._foreach_lerp_(kept, live, 1 - self.decay)
        for old, new, yes in zip(self._kept, self._live, floats, strict=True):
            if not yes:
                old.copy_(new)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Let the network have the averaged weights for a while."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for kept, live in zip(self._kept, self._live, strict=True):
            saved: Tensor = live.detach().clone()
            live.copy_(kept)
            kept.copy_(saved)


class SGD(nn.Module):
    """Gradient descent with momentum, as `torch.optim.SGD` does it, up to the last bit of a product.

    A step that was recorded once can be replayed at any rate, because the rate is a tensor; momenta are there from
    the start, as buffers, so that they are saved and restored like everything else.

    Parameters
    ----------
    parameters
        The tensors to change.
    momentum, nesterov, weight_decay
        As for `torch.optim.SGD`.

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> descent = SGD([weight], momentum=0.9, nesterov=True, weight_decay=0.0)
    >>> descent.set_rate(0.1)
    >>> weight.grad = torch.tensor([1.0])
    >>> descent.step()
    >>> weight.data
    tensor([0.8100])
    """

    rate: Tensor

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, momentum: float, nesterov: bool, weight_decay: float
    ) -> None:
        super().__init__()
        self.targets = [parameter for parameter in parameters if parameter.requires_grad]
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        device = self.targets[0].device
        self.register_buffer("rate", torch.zeros((), device=device), persistent=False)
        self.momenta = [torch.zeros_like(parameter, requires_grad=False) for parameter in self.targets]
        for number, momentum_of_one in enumerate(self.momenta):
            self.register_buffer(f"momentum{number}", momentum_of_one)
        self._tables: Any = None

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the steps to come."""
        self.rate.fill_(rate)

    @torch.no_grad()
    def step(self) -> None:
        """Change every tensor along its gradient."""
        present = [k for k, target in enumerate(self.targets) if target.grad is not None]
        if not present:
            return
        gradients: list[Tensor] = [self.targets[k].grad for k in present]  # type: ignore[misc]
        torch._fused_sgd_(  # one launch that reads and writes everything once, at a rate on the device
            [self.targets[k].data for k in present],
            gradients,
            [self.momenta[k] for k in present] if self.momentum else [],
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            lr=self.rate,
            dampening=0.0,
            nesterov=self.nesterov and self.momentum > 0,
            maximize=False,
            is_first_step=False,  # momenta of zero make the first step like all others
        )

    @torch.no_grad()
    def step_from(self, halves: Halves) -> bool:
        """Change every tensor, those with a rounded copy along the copy's gradient, and round them again, in one go.

        Returns
        -------
        bool
            Whether that was possible. If not, nothing has changed: have the gradients collected, make a `step` and
            have the weights rounded.
        """
        pairs = halves.pairs()
        if not (pairs and self.rate.is_cuda and has_triton()):
            return False
        from prune4rel.gpu.descent_kernels import Tables, fits  # noqa: PLC0415 - imports Triton

        momentum_of = {id(target): momentum for target, momentum in zip(self.targets, self.momenta, strict=True)}
        rows = [(whole, momentum_of[id(whole)], half, half.grad) for whole, half in pairs]
        if not all(row[-1] is not None and fits(*row) for row in rows):  # type: ignore[arg-type]
            return False
        weights, momenta, rounded, gradients = zip(*rows, strict=True)
        if self._tables is None:
            self._tables = Tables(weights, momenta, rounded)
        self._tables.descend(
            gradients, self.rate, momentum=self.momentum, nesterov=self.nesterov, weight_decay=self.weight_decay
        )
        self.step()  # of all others: these have no gradient of their own
        return True


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
