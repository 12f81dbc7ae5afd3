"""Warm a learner up on all examples, and write down what it makes of each."""

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from prune4rel.atomic import put_aside
from prune4rel.errors import InputError, nearest
from prune4rel.progress import Progress
from prune4rel.steps.data import open_dataset
from prune4rel.steps.model import MODEL, WHAT, ModelOptions
from prune4rel.steps.options import option
from prune4rel.steps.step import SignalsStep, Steps, slug

if TYPE_CHECKING:
    from prune4rel.training import TrainingPlan

CHECKPOINTS = "work"
LOOK = "What a warm-up provides"
EXTRA_NAMES = "forgetting, aum, el2n, grad_norms or ssl_embeddings"


@dataclass(frozen=True)
class WarmUpOptions(ModelOptions):
    """How methods learn what a model makes of the examples."""

    warmup_learner: str | None = option(None, "Share one learner's warm-up among all.", panel=WHAT)
    warmup_epochs: int | None = option(None, "Epochs of the warm-up.", least=1, panel=MODEL)
    view: str = option("strong", "What the model is shown of an example: strong, weak or none.", panel=LOOK)
    views: int = option(1, "Average over so many views.", least=1, most=1_000, panel=LOOK)
    repeats: int = option(1, "Warm-ups that el2n and grad_norms average over.", least=1, most=1_000, panel=LOOK)
    extras: tuple[str, ...] = option((), f"Provide this, too: {EXTRA_NAMES}; commas between.", panel=LOOK)

    def __post_init__(self) -> None:
        super().__post_init__()
        from prune4rel.learners import get
        from prune4rel.training.warmup import EXTRAS, SHOWN

        if self.warmup_learner is not None:
            get(self.warmup_learner)
        for name, given, known in (("extras", self.extras, EXTRAS), ("view", (self.view,), SHOWN)):
            if unknown := [value for value in given if value not in known]:
                raise InputError(f"{name}: unknown {unknown[0]!r}; {nearest(unknown[0], known)}", name)

    def warm_up_plan(self, plan: "TrainingPlan") -> "TrainingPlan":
        """Return how a learner is warmed up; a training does not depend on how long its warm-up is."""
        return replace(plan, warmup_epochs=self.warmup_epochs or plan.warmup_epochs)


@dataclass(frozen=True)
class WarmUpStep(SignalsStep):
    """One warm-up."""

    title: ClassVar[str] = "warm-up"
    place: ClassVar[str] = "warmups"

    options: WarmUpOptions
    extras: tuple[str, ...]
    plan: "TrainingPlan"
    trained: int
    looked: int
    """How many examples are trained on, and how many looked at: those that a person took out, too."""

    @classmethod
    def provide(cls, steps: Steps, learner: str, seed: int) -> Self:
        """Make the warm-up that methods go by: of one learner for all if so wanted, shared by all that go by it."""
        learner = steps.options.warmup_learner or learner
        return steps.once((cls, learner, seed), lambda: cls._make(steps, learner, seed))

    @classmethod
    def _make(cls, steps: Steps, learner: str, seed: int) -> Self:
        options, train = steps.options, steps.dataset.train
        plan = options.warm_up_plan(steps.plan(learner, seed))
        extras = tuple(sorted({*options.extras, *(need for spec in options.specs for need in spec.needs)}))
        shown = {"view": options.view, "views": options.views, "repeats": options.repeats}
        return cls(
            f"warm-up of {learner}, seed {seed}",
            steps.folder / cls.place / f"{slug(learner)}-seed{seed}",
            {"data": steps.data, "plan": plan.as_dict(), "extras": list(extras), **shown},
            learner,
            seed,
            options,
            extras,
            plan,
            len(train) if train.removed is None else int((~train.removed).sum()),
            len(train),
        )

    def _epochs(self, needs: Collection[str]) -> tuple[int, int]:
        """Return how often all examples are trained on for some signals, and how often with no labels."""
        times = self.options.repeats if {"el2n", "grad_norms"} & set(needs) else 1
        alone = max(1, self.plan.hyperparameters.epochs // 3) if "ssl_embeddings" in needs else 0
        return times * self.plan.warmup_epochs, alone

    def charge(self, needs: Collection[str]) -> int:
        """Return the steps of the warm-ups, and of looking at every example afterwards."""
        from prune4rel.learners import get
        from prune4rel.learners.simclr import SimCLR
        from prune4rel.training.hyperparameters import looks_as_steps, steps_an_epoch

        epochs, alone = self._epochs(set(needs) & set(self.extras))
        batch, looks = self.plan.hyperparameters.batch, self.options.views * epochs // self.plan.warmup_epochs
        found = epochs * steps_an_epoch(self.trained, batch, get(self.learner).kind)
        found += looks_as_steps(self.looked * looks, batch)
        if alone:
            found += alone * steps_an_epoch(self.trained, batch, SimCLR) + looks_as_steps(self.looked, batch)
        return found

    def work(self, progress: Progress) -> Mapping[str, Any]:
        """Warm the learner up and save its signals."""
        from prune4rel.training import warm_up

        options = self.options
        if self.signals.exists() and (trouble := _trouble_of(self.signals)) is not None:
            progress.say(f"{trouble}; looking at all examples again")
            put_aside(self.signals)
        if not self.signals.exists():
            dataset = open_dataset(options)
            signals = warm_up(
                dataset,
                plan=options.warm_up_plan(options.plan(dataset, self.learner, self.seed)),
                extras=self.extras,
                view=options.view,  # type: ignore[arg-type]
                views=options.views,
                repeats=options.repeats,
                device=options.device,
                folder=self.folder / CHECKPOINTS,
                progress=progress,
            )
            signals.save(self.signals)
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        return {}

    def cost(self) -> Mapping[str, float]:
        """Return the steps of the optimiser; looking at every example afterwards is left out."""
        return {self.learner: sum(self._epochs(self.extras)) * self.trained / self.plan.hyperparameters.batch}


def _trouble_of(signals: Path) -> str | None:
    """Say why signals that an earlier process left behind cannot be used, or None."""
    from prune4rel.signals import Signals

    try:
        Signals.load(signals)
    except InputError as error:
        return str(error)
    return None
