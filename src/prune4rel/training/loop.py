"""The one loop: epochs of passes of steps, to be left and entered at any step."""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from prune4rel.errors import InputError
from prune4rel.learners import Learner
from prune4rel.loading.schedule import seed_of
from prune4rel.training.evaluate import ask
from prune4rel.training.feed import Feed
from prune4rel.training.hyperparameters import Hyperparameters
from prune4rel.training.record import Record
from prune4rel.training.step import Stepper

STEPS_BETWEEN_CHECKS = 200
"""Steps after which it is looked whether the loss is still a number: looking makes a GPU wait."""

POSITION = ("epoch", "number", "step", "steps")

AfterStep = Callable[[int, float], None]
"""Told after every step how many examples it had, and which share of an epoch it was."""


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

    Attributes
    ----------
    epoch, number, step
        Which pass of which epoch it is in, and how many steps of that are done.
    steps
        How many steps are done in all.
    """

    def __init__(
        self, learner: Learner, feed: Feed, hyperparameters: Hyperparameters, keep: Collection[str] = ()
    ) -> None:
        self.learner, self.feed, self.hyperparameters = learner, feed, hyperparameters
        self.record = Record(learner.m, learner.n_classes, keep, learner.ranks, feed.device)
        self.stepper = Stepper(learner, hyperparameters, self.record, feed.device)
        self.epoch = self.number = self.step = self.steps = 0
        self._begun = False
        self._branch = (learner.ranks.rank,) if learner.ranks.rank else ()  # for ranks hold different examples

    def run_epoch(self, after_step: AfterStep) -> dict[str, float]:
        """Run what is left of the current epoch and return its means."""
        rate = self.hyperparameters.rate(self.epoch)
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
        if self.learner.steady and self.epoch + 1 < self.hyperparameters.epochs:
            self.feed.prepare(self.learner.passes(self.epoch + 1)[0], self.epoch + 1, 0)
        self.check_finite()
        found = {"epoch": self.epoch, "lr": rate, **self.record.summary(), **self.learner.describe()}
        self.epoch += 1
        self.number = 0
        self._begun = False
        return found

    def run_passes(self, after_step: AfterStep) -> None:
        """Run all steps of the epoch that are left."""
        passes = self.learner.passes(self.epoch)
        share = 1 / sum(map(self.feed.steps_of, passes))
        while self.number < len(passes):
            one = passes[self.number]
            for streams, drawn in self.feed.steps(one, self.epoch, self.number, self.step):
                # layers that draw, such as dropout, draw the same in a step wherever the training was begun
                place = (self.epoch, self.number, self.step, *self._branch)
                _seed_draws(self.feed.device, seed_of(self.feed.seed, 2, *place))
                self.stepper(one, streams, drawn)
                self.step += 1
                self.steps += 1
                if self.steps % STEPS_BETWEEN_CHECKS == 0:
                    self.check_finite()
                after_step(streams[0].batch, share)
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

    def predict(self, network: nn.Module) -> Tensor:
        """Logits (m, C) of a network on all examples trained on, not augmented."""
        whole = self.feed.loader.over(self.feed.subset, shard=None)
        return ask(
            network,
            lambda x: (network(x), None),
            whole,
            self.feed.views["plain"],
            half=self.stepper.half,
            ranks=self.learner.ranks,
        ).logits

    def averaged(self) -> ExitStack:
        """Let the networks have their averaged weights for a while, where there are any."""
        stack = ExitStack()
        for average in self.stepper.averages:
            stack.enter_context(average.swapped())
        return stack

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
        facts = {name: getattr(self, name) for name in POSITION}
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
        self._begun = bool(facts["begun"])
        self.record.names[:] = facts["names"]


def _seed_draws(device: torch.device, seed: int) -> None:
    """Seed what layers draw from. `torch.manual_seed` would also write down, at every step, who asked for it."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)
