"""What every learner is: networks, numbers it keeps for every example, and losses."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softmax

from prune4rel.augment.draws import ViewName
from prune4rel.errors import InputError
from prune4rel.judging import Judgement
from prune4rel.learners.losses import widened
from prune4rel.learners.memory import Memory
from prune4rel.loading.schedule import Ranks
from prune4rel.networks import Network


class Examples(NamedTuple):
    """Some examples of a batch, on the device.

    Attributes
    ----------
    rows
        (B,) int64, positions among the m examples that are trained on.
    views
        Inputs (B, ...), one tensor a view.
    labels
        (B,) int64 given labels.
    batch
        How many examples the batch holds over all ranks; B where there is but one.
    """

    rows: Tensor
    views: tuple[Tensor, ...]
    labels: Tensor
    batch: int


class Said(NamedTuple):
    """What was predicted of examples as they are, or of weak views of them, before anything was learnt from them.

    Attributes
    ----------
    rows
        (N,) int64, each once, of the batches of all ranks.
    probabilities
        (N, C).
    """

    rows: Tensor
    probabilities: Tensor


class Loss(NamedTuple):
    """What a step gives: the number to minimise, its parts for people, and what the network said.

    Attributes
    ----------
    total
        () this rank's share of the loss.
    parts
        Named shares of it, detached, to be watched.
    logits
        (B, C) of the first stream's examples, detached; None where inputs were mixed.
    said
        What a memory of predictions takes in; from `logits` unless told.
    """

    total: Tensor
    parts: dict[str, Tensor]
    logits: Tensor | None = None
    said: Said | None = None


Streams = tuple[Examples, ...]
Drawn = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Stream:
    """Which examples come along in batches, as which views."""

    rows: NDArray[np.int64]
    views: tuple[ViewName, ...]


@dataclass(frozen=True, eq=False)
class Pass:
    """One going-over of examples that trains one network.

    Parameters
    ----------
    network
        Number of the network whose weights are trained; the others are in evaluation mode meanwhile.
    streams
        Batches come from all of them at a time. The first decides the number of steps, others begin anew when they
        end.
    loss
        ``loss(streams, drawn)`` on the device. It may be recorded once and replayed for every step of every epoch,
        so whatever changes meanwhile has to live in a buffer that is changed in place.
    draw
        ``draw(counts, generator)`` gives what the loss needs at random, on the CPU, from the sizes of the batches.
    mixes
        Whether the loss mixes examples with each other; then every rank gets the whole batch.
    """

    network: int
    streams: tuple[Stream, ...]
    loss: Callable[[Streams, Drawn], Loss]
    draw: Callable[[tuple[int, ...], torch.Generator], Drawn] | None = None
    mixes: bool = False


@dataclass(frozen=True, eq=False)
class Setting:
    """What a learner is told of the task.

    Parameters
    ----------
    make_network
        Makes a network with fresh weights.
    labels
        (m,) given labels of the examples that are trained on.
    n_classes
        Number of classes C.
    epochs
        Epochs of the whole training.
    seed
        Of random numbers the learner starts from.
    ranks
        The processes batches are spread over.
    rows
        (m,) which of all n examples these are; None where nobody asks.
    judged
        What the labels of all n examples are judged to be, out of sample; None for learners that do not ask
        (`Learner.judges`).
    """

    make_network: Callable[[], Network]
    labels: NDArray[np.int64]
    n_classes: int
    epochs: int = 1
    seed: int = 0
    ranks: Ranks = field(default_factory=Ranks)
    rows: NDArray[np.int64] | None = None
    judged: Judgement | None = None


class Predict(Protocol):
    """Looks at all examples that are trained on, not augmented, on the CPU. Looking counts as steps."""

    def __call__(self, network: nn.Module) -> Tensor:
        """Return logits (m, C) that a network gives them."""

    def embed(self, network: Network) -> Tensor:
        """Return their embeddings (m, d)."""


class Learner(nn.Module):
    """Networks, per-example state, and the passes of an epoch.

    Everything that changes during training is a parameter or a buffer, so that ``state_dict`` is all there is to
    know. A learner of your own says what the `loss` of a step is, and what its `passes` are where one over all examples
    is not enough.

    Parameters
    ----------
    setting
        The task.

    Examples
    --------
    >>> from prune4rel.learners import make_learner
    >>> from prune4rel.networks import make
    >>> setting = Setting(lambda: make("mlp", 3, shape=(4,)), labels=np.array([0, 1, 2, 0]), n_classes=3)
    >>> learner = make_learner("cross-entropy", setting)
    >>> [len(stream.rows) for each in learner.passes(epoch=0) for stream in each.streams]
    [4]
    >>> learner.predict(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    n_networks: ClassVar[int] = 1
    at_once: ClassVar[bool] = False
    """Whether it learns all there is when its only epoch begins, and has no passes."""
    network: ClassVar[str | None] = None
    """The one network it is made for; None where any will do."""
    judges: ClassVar[bool] = False
    """Whether labels are to be judged beforehand (`Setting.judged`), which takes features."""
    steady: ClassVar[bool] = False
    """Whether the passes are the same in every epoch: then the next epoch's first batches are made ahead."""
    views: tuple[ViewName, ...] = ("weak",)
    """What the usual pass sees of every example."""
    notes: list[str]
    """What a user should know of how the options were understood."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.notes = []
        self.setting = setting
        self.ranks = setting.ranks
        self.n_classes = setting.n_classes
        self.m = len(setting.labels)
        self.networks = nn.ModuleList(setting.make_network() for _ in range(self.n_networks))

    def begin_epoch(self, epoch: int, predict: Predict) -> None:
        """Do what is done before an epoch: set schedules, divide examples.

        Called once an epoch. Training that goes on in the middle of one does not call it again, so what it decides
        has to be in buffers.
        """

    def passes(self, epoch: int) -> list[Pass]:
        """Return the passes of an epoch, the same ones whenever it is asked again: one over everything unless told."""
        del epoch
        return [Pass(0, (Stream(self.everyone, self.views),), self.loss)]

    def loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return the loss of a step of that pass."""
        raise NotImplementedError(f"{type(self).__name__} needs a loss, or passes of its own")

    def after_step(self, network: int) -> None:
        """Do what follows a step of the optimiser: tables, moving averages."""

    def describe(self) -> dict[str, float]:
        """Return numbers about the current epoch that are worth watching."""
        return {}

    def own_memory(self) -> Memory | None:
        """Return the memory of predictions that the learner keeps by itself; None where it keeps none."""
        return None

    def model_networks(self) -> list[Network]:
        """Return the networks whose mean is the model: all of them unless a learner says otherwise."""
        return list(self.networks)  # type: ignore[arg-type]

    def predict(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into logits (B, C): the mean over the networks that speak."""
        return torch.stack([network(x) for network in self.model_networks()]).mean(0)

    def embed(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into embeddings (B, d) of the first network that speaks."""
        return self.model_networks()[0].embed(x)

    def probabilities_of(self, network: nn.Module, x: Tensor) -> Tensor:
        """Return predictions (B, C) of a network for all inputs (B, ...); every rank asks it about its own."""
        return self.ranks.gather(softmax(widened(network(self.ranks.mine(x))), dim=1))

    @property
    def given(self) -> Tensor:
        """All given labels (m,), int64 on the CPU."""
        return torch.from_numpy(np.asarray(self.setting.labels, dtype=np.int64))

    @property
    def everyone(self) -> NDArray[np.int64]:
        """All rows."""
        return np.arange(self.m, dtype=np.int64)


class Table(nn.Module):
    """Numbers (m, k), a row an example, trained by plain gradient descent at a rate of their own.

    Only rows of the current batch are touched: without momentum and decay that is the same as descending on all.

    Examples
    --------
    >>> table = Table(torch.ones(4, 2), rate=0.5, ranks=Ranks())
    >>> (table.take(torch.tensor([3, 1])) ** 2).sum().backward()
    >>> table.step()
    >>> table.values
    tensor([[1., 1.],
            [0., 0.],
            [1., 1.],
            [0., 0.]])
    """

    values: Tensor

    def __init__(self, values: Tensor, rate: float, ranks: Ranks) -> None:
        super().__init__()
        self.register_buffer("values", values)
        self.rate = rate
        self.ranks = ranks
        self._taken: tuple[Tensor, Tensor] | None = None

    def take(self, rows: Tensor) -> Tensor:
        """Return rows (B, k) that gradients flow to, until `step`."""
        taken = self.values[rows].detach().requires_grad_()
        self._taken = (rows, taken)
        return taken

    def step(self) -> None:
        """Descend along the gradients of the rows that were taken."""
        if self._taken is None:
            return
        rows, taken = self._taken
        if taken.grad is not None:
            moved = torch.sub(taken.detach(), taken.grad, alpha=self.rate)
            self.values[self.ranks.gather(rows)] = self.ranks.gather(moved)
        self._taken = None


class Follower(nn.Module):
    """The moving average of a network's weights, as a network of its own that is never trained.

    It is always in evaluation mode; running statistics are averaged like weights, counts are taken over.

    Parameters
    ----------
    network
        What to copy and, later, to follow.

    Examples
    --------
    >>> network = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.ones_(network.weight)
    >>> follower = Follower(network)
    >>> _ = nn.init.zeros_(network.weight)
    >>> follower.follow(network, torch.tensor(0.75))
    >>> follower(torch.ones(1, 1))
    tensor([[0.7500]])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = deepcopy(network).requires_grad_(requires_grad=False)
        self.network.eval()

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode, whatever is asked."""
        return super().train(mode and False)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into logits (B, C), without gradients."""
        logits: Tensor = self.network(x)
        return logits

    @torch.no_grad()
    def follow(self, network: nn.Module, decay: Tensor) -> None:
        """Set every weight to decay · weight + (1 - decay) · the network's; `decay` is () on the device."""
        mine = [*self.network.parameters(), *self.network.buffers()]
        theirs = [*network.parameters(), *network.buffers()]
        pairs = list(zip(mine, theirs, strict=True))
        kept = [old.data for old, _ in pairs if old.is_floating_point()]
        fresh = [new.data for old, new in pairs if old.is_floating_point()]
        torch._foreach_mul_(kept, decay)
        torch._foreach_add_(kept, list(torch._foreach_mul(fresh, 1 - decay)))  # noqa: SLF001 - one launch for all
        for old, new in pairs:
            if not old.is_floating_point():
                old.copy_(new)


def within(name: str, value: float, low: float = 0.0, high: float = math.inf) -> float:
    """Return a number if it lies between `low` and `high`, both included, and refuse it otherwise.

    >>> within("beta", 0.7, 0, 1)
    0.7
    >>> within("beta", 7, 0, 1)
    Traceback (most recent call last):
    prune4rel.errors.InputError: beta must be between 0 and 1, not 7
    """
    if not _is_number(value) or not low <= value <= high:
        bounds = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
        raise InputError(f"{name} must be {bounds}, not {value!r}", name)
    return value


def above(name: str, value: float, low: float = 0.0) -> float:
    """Return a finite number if it lies above `low`, and refuse it otherwise.

    >>> above("temperature", 0.0)
    Traceback (most recent call last):
    prune4rel.errors.InputError: temperature must be above 0, not 0.0
    """
    if not _is_number(value) or not low < value < math.inf:
        raise InputError(f"{name} must be above {low:g}, not {value!r}", name)
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
