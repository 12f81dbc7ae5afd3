"""The one loop: epochs of passes of steps, to be left and entered at any step; and the batches it is fed with."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain, count
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prune4rel.augment import View, Views
from prune4rel.augment.draws import ViewName
from prune4rel.errors import InputError
from prune4rel.inference import embed, predict
from prune4rel.learners import Learner
from prune4rel.learners.learner import Drawn, Examples, Pass, Stream, Streams
from prune4rel.learners.memory import Memory
from prune4rel.loading import Loader
from prune4rel.loading.schedule import Ranks, seed_of
from prune4rel.machine import send
from prune4rel.networks import Network
from prune4rel.training.hyperparameters import Hyperparameters, looks_as_steps
from prune4rel.training.step import Record, Stepper


class Feed:
    """Hands out the batches of a pass. Every one is decided by the seed, the epoch, the pass and its number.

    Parameters
    ----------
    loader
        Holds the inputs of (at least) the examples that are trained on.
    subset
        (m,) numbers in the split of the examples that are trained on; their positions here are a learner's rows.
    views
        What view names mean.
    batch
        Examples a batch; streams with fewer examples have them all in one.
    seed
        Of order and augmentation.
    ranks
        The processes batches are spread over.
    """

    def __init__(
        self,
        loader: Loader,
        subset: NDArray[np.int64],
        views: Mapping[ViewName, View],
        batch: int,
        seed: int,
        ranks: Ranks,
    ) -> None:
        self.loader, self.subset, self.views = loader, subset, views
        self.batch, self.seed, self.ranks = batch, seed, ranks
        self.device = loader.device
        self._ahead: tuple[tuple[int, int], Iterator[tuple[Streams, Drawn]]] | None = None
        places = torch.full((int(subset.max()) + 1,), -1, dtype=torch.int64)
        places[torch.tensor(subset)] = torch.arange(len(subset))
        self._row_of = places.to(self.device)
        self._side: Any = None
        self._here: Any = None
        if self.device.type == "cuda":
            self._side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
            self._side.wait_stream(torch.cuda.current_stream(self.device))  # for the inputs to be there

    def steps_of(self, one: Pass) -> int:
        """Return the number of steps of a pass."""
        rows = len(one.streams[0].rows)
        return rows // self._size(one.streams[0])

    def prepare(self, one: Pass, epoch: int, number: int) -> None:
        """Make the first batches of a pass ahead of time, on a GPU beside the steps that it still has to run."""
        self._come_here()
        steps = self._make_steps(one, epoch, number, 0)
        with torch.cuda.stream(self._side):
            first = next(steps)
        self._ahead = (epoch, number), chain([first], steps)

    def steps(self, one: Pass, epoch: int, number: int, begin: int = 0) -> Iterator[tuple[Streams, Drawn]]:
        """Hand out what the loss of pass `number` of an epoch gets, from step `begin` on."""
        self._come_here()
        if self._side is not None:
            self._here.wait_stream(self._side)
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == (epoch, number) and begin == 0:
            return ahead[1]
        return self._make_steps(one, epoch, number, begin)

    def _come_here(self) -> None:
        """Remember on which stream batches are used."""
        if self._side is not None:
            self._here = torch.cuda.current_stream(self.device)

    def _used_here(self, *tensors: Tensor) -> None:
        """Let memory that was taken on the side not be taken again before the steps that read it are done."""
        if self._side is not None:
            for tensor in tensors:
                tensor.record_stream(self._here)

    def _make_steps(self, one: Pass, epoch: int, number: int, begin: int) -> Iterator[tuple[Streams, Drawn]]:
        sources = [
            self._examples(stream, seed_of(self.seed, 0, epoch, number, place), begin, whole=one.mixes)
            for place, stream in enumerate(one.streams)
        ]
        sizes = tuple(self._size(stream) for stream in one.streams)
        for step in range(begin, self.steps_of(one)):
            drawn: Drawn = ()
            if one.draw is not None:
                generator = torch.Generator().manual_seed(seed_of(self.seed, 1, epoch, number, step))
                drawn = tuple(send(values, self.device) for values in one.draw(sizes, generator))
                self._used_here(*drawn)
            yield tuple(next(source) for source in sources), drawn

    def _size(self, stream: Stream) -> int:
        return min(self.batch, len(stream.rows))

    def _examples(self, stream: Stream, seed: int, begin: int, *, whole: bool) -> Iterator[Examples]:
        """Batches of one stream without end: what is left over at the end of a round is dropped."""
        size = self._size(stream)
        picked = tuple(self.views[name] for name in stream.views)
        loader = self.loader.over(
            self.subset[stream.rows],
            batch=size,
            seed=seed,
            shuffle=True,
            drop_last=True,
            chunk=None,
            transform=Views(picked),
            shard=None if whole else self.ranks.shard,
        )
        first, done = divmod(begin, len(loader))
        loader.seek(first, done)
        for _ in count():
            for batch in loader:
                rows = self._row_of.index_select(0, batch.indices)
                self._used_here(rows, batch.indices, *batch.views, batch.labels)
                yield Examples(rows, batch.views, batch.labels, size)


STEPS_BETWEEN_CHECKS = 200
"""Steps after which it is looked whether the loss is still a number: looking makes a GPU wait."""

POSITION = ("epoch", "number", "step", "steps")
SPENT = ("batches", "looked", "spent_before")

AfterStep = Callable[[int, float], None]
"""Told after every step how many examples it had, and how far it led: see `Training.length`."""


class Looks:
    """What a learner may ask between epochs of all examples trained on, not augmented; looking counts as steps."""

    def __init__(self, training: "Training") -> None:
        self.training = training

    def __call__(self, network: nn.Module) -> Tensor:
        """Return logits (m, C) of a network."""
        return self._ask(predict, network, network)

    def embed(self, network: Network) -> Tensor:
        """Return embeddings (m, d) of a network."""
        return self._ask(embed, network, network.embed)

    def _ask(self, ask: Callable[..., Tensor], network: nn.Module, function: Callable[[Tensor], Tensor]) -> Tensor:
        training = self.training
        feed = training.feed
        training.looked += len(feed.subset)
        whole, plain = feed.loader.over(feed.subset, shard=None), feed.views["plain"]
        return ask(network, function, whole, plain, half=training.stepper.half, ranks=training.learner.ranks)


class Training:
    """A learner on its way. Its state is all there is: what follows depends on nothing else.

    Parameters
    ----------
    learner
        On the device.
    feed
        Where its batches come from.
    hyperparameters
        How to train.
    keep
        Histories to record, see `Record`.
    remember
        Keep a memory of predictions, of learners that keep none by themselves.

    Attributes
    ----------
    epoch, number, step
        Which pass of which epoch it is in, and how many steps of that are done.
    steps
        How many steps are done in all.
    batches, looked, spent_before
        How many batches were trained on, how many examples the learner looked at between epochs, and what was spent
        when this epoch began.
    memory
        Of predictions, the learner's own or one beside it; None where there is none.
    predict
        What learners ask of all examples.
    """

    def __init__(
        self,
        learner: Learner,
        feed: Feed,
        hyperparameters: Hyperparameters,
        keep: Collection[str] = (),
        *,
        remember: bool = False,
    ) -> None:
        self.learner, self.feed, self.hyperparameters = learner, feed, hyperparameters
        own = learner.own_memory()
        wanted = remember and own is None
        memory = Memory(learner.given, learner.n_classes).to(feed.device) if wanted else None
        self.memory = own or memory
        self.predict = Looks(self)
        self.record = Record(learner.m, learner.n_classes, keep, learner.ranks, feed.device, memory)
        self.stepper = Stepper(learner, hyperparameters, self.record, feed.device)
        self.epoch = self.number = self.step = self.steps = self.batches = self.looked = self.spent_before = 0
        self._begun = self._averaged = False
        self._branch = (learner.ranks.rank,) if learner.ranks.rank else ()  # for ranks hold different examples

    @property
    def spent(self) -> int:
        """Steps as `Hyperparameters.steps` counts them: one a batch and network, and as many for a step of two."""
        return self.batches + looks_as_steps(self.looked, self.feed.batch)

    @property
    def length(self) -> int:
        """How long the whole training is: its steps if it has a number of them, else its epochs."""
        return self.hyperparameters.steps or self.hyperparameters.epochs

    @property
    def place(self) -> int:
        """How much of that is done."""
        return self.epoch if self.hyperparameters.steps is None else self.spent

    @property
    def over(self) -> bool:
        """Whether all of it is done, the numbers of the last epoch told."""
        return self.place >= self.length and not self._begun

    def _rate(self) -> float:
        """Return the learning rate of this epoch; that of a number of steps falls as over all epochs."""
        settings = self.hyperparameters
        done = self.epoch if settings.steps is None else settings.epochs * self.spent_before / settings.steps
        return settings.rate(done)

    def run_epoch(self, after_step: AfterStep) -> dict[str, float]:
        """Run what is left of the current epoch, or of the steps there are, and return its means."""
        if not self._begun:
            self.spent_before = self.spent
        rate = self._rate()
        self.stepper.begin_epoch(rate)
        if not self._begun:
            self.record.begin_epoch()
            self.learner.begin_epoch(self.epoch, self.predict)
            self._begun = True
        try:
            with torch.random.fork_rng(devices=[]):
                self.run_passes(after_step)
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise InputError(
                "this network normalises over a batch, and a batch of one example leaves nothing to normalise; choose "
                "a larger batch, more examples, or the network mlp",
                "batch",
            ) from None
        last = self.epoch + 1 >= self.length if self.hyperparameters.steps is None else self.place >= self.length
        if self.learner.steady and not last:
            self.feed.prepare(self.learner.passes(self.epoch + 1)[0], self.epoch + 1, 0)
        self.check_finite()
        found = {"epoch": self.epoch, "lr": rate, **self.record.summary(), **self.learner.describe()}
        found["steps"] = self.spent
        self.epoch += 1
        self.number = self.step = 0
        self._begun = False
        return found

    def run_passes(self, after_step: AfterStep) -> None:
        """Run all steps of the epoch that are left, or that there are to be."""
        passes = self.learner.passes(self.epoch)
        limited = self.hyperparameters.steps is not None
        share = 1 / max(1, sum(map(self.feed.steps_of, passes)))
        while self.number < len(passes):
            one = passes[self.number]
            if limited and self.place >= self.length and (self.number or self.step):
                return  # but for one step, where looking before the epoch took what was left
            for streams, drawn in self.feed.steps(one, self.epoch, self.number, self.step):
                # layers that draw, such as dropout, draw the same in a step wherever the training was begun
                place = (self.epoch, self.number, self.step, *self._branch)
                _seed_draws(self.feed.device, seed_of(self.feed.seed, 2, *place))
                self.stepper(one, streams, drawn)
                self.step += 1
                self.steps += 1
                self.batches += len(streams)
                if self.steps % STEPS_BETWEEN_CHECKS == 0:
                    self.check_finite()
                after_step(streams[0].batch, len(streams) if limited else share)
                if limited and self.place >= self.length:
                    return
            self.number += 1
            self.step = 0
            if self.number < len(passes):
                self.feed.prepare(passes[self.number], self.epoch, self.number)

    def check_finite(self) -> None:
        """Stop where loss or weights are no numbers any more. All ranks have to ask together."""
        sound, bad = self.is_sound(), self.record.first_bad_step()
        if bad is None and sound:
            return
        what = (
            f"weights became NaN or infinite by step {self.steps}"
            if bad is None
            else f"loss became NaN or infinite in step {bad + 1} of epoch {self.epoch + 1}"
        )
        raise InputError(
            f"the {what}; the last good checkpoint, if there was one, is kept. Try a smaller learning rate than "
            f"{self.hyperparameters.lr:g} (lr=, --set lr=...), gradient clipping (clip=5), or precision=float32, and "
            "begin anew"
        )

    def is_sound(self) -> bool:
        """Whether weights and loss are still numbers, as far as this rank can see: else a checkpoint is worthless."""
        numbers: dict[torch.dtype, list[Tensor]] = {}
        for tensor in (*self.learner.state_dict().values(), self.record.sums):
            if tensor.is_floating_point() and tensor.numel():
                numbers.setdefault(tensor.dtype, []).append(tensor)
        # sums of magnitudes, all in one launch: finite where all numbers are
        found = [torch.stack(torch._foreach_norm(tensors, 1)).isfinite().all() for tensors in numbers.values()]  # noqa: SLF001
        return all(map(bool, found))

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Let the networks have their averaged weights for a while, where there are any; within, that changes nothing.

        Several looks may be taken side by side: the first one takes the averages in, and is the first to end.
        """
        averages = [] if self._averaged else self.stepper.averages
        with ExitStack() as stack:
            for average in averages:
                stack.enter_context(average.swapped())
                stack.callback(setattr, self, "_averaged", False)
                self._averaged = True
            yield

    def _parts(self) -> dict[str, nn.Module]:
        parts: dict[str, nn.Module] = {"learner": self.learner, "record": self.record}
        parts |= {f"descent{k}": descent for k, descent in enumerate(self.stepper.descents)}
        return parts | {f"average{k}": average for k, average in enumerate(self.stepper.averages)}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return everything as tensors and a JSON value."""
        tensors = {
            f"{part}.{name}": tensor
            for part, module in self._parts().items()
            for name, tensor in module.state_dict().items()
        }
        facts = {name: getattr(self, name) for name in (*POSITION, *SPENT)}
        return tensors, {**facts, "begun": self._begun, "names": list(self.record.names)}

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Become what `state` told."""
        for part, module in self._parts().items():
            own = {name.partition(".")[2]: value for name, value in tensors.items() if name.partition(".")[0] == part}
            try:
                module.load_state_dict(own)
            except RuntimeError as error:
                raise InputError(
                    f"the checkpoint does not fit this version of the {part} ({error}); begin anew with --restart "
                    "(restart=True)"
                ) from None
        for name in POSITION:
            setattr(self, name, int(facts[name]))
        for name in SPENT:
            setattr(self, name, int(facts.get(name, 0)))
        self._begun = bool(facts["begun"])
        self.record.names[:] = facts["names"]


def _seed_draws(device: torch.device, seed: int) -> None:
    """Seed what layers draw from. `torch.manual_seed` would also write down, at every step, who asked for it."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)
