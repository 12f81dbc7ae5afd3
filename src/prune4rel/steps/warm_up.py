"""Warm a learner up on all examples, and write down what it makes of each."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from prune4rel.atomic import put_aside
from prune4rel.errors import InputError, nearest
from prune4rel.progress import Progress
from prune4rel.steps.data import open_dataset
from prune4rel.steps.model import MODEL, WHAT, ModelOptions
from prune4rel.steps.options import option
from prune4rel.steps.step import SignalsStep, Steps, slug

CHECKPOINTS = "work"
LOOK = "What a warm-up provides"
EXTRA_NAMES = "forgetting, aum, el2n, grad_norms or ssl_embeddings"


@dataclass(frozen=True)
class WarmUpOptions(ModelOptions):
    """How methods learn what a model makes of the examples."""

    warmup_learner: str | None = option(None, "Share one learner's warm-up among all.", panel=WHAT)
    warmup_epochs: int | None = option(None, "Epochs of the warm-up.", least=1, panel=MODEL)
    view: str = option("strong", "What the model is shown of an example: strong, weak or none.", panel=LOOK)
    views: int = option(1, "Average over so many views.", least=1, panel=LOOK)
    repeats: int = option(1, "Warm-ups that el2n and grad_norms average over.", least=1, panel=LOOK)
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


@dataclass(frozen=True)
class WarmUpStep(SignalsStep):
    """One warm-up."""

    title: ClassVar[str] = "warm-up"
    place: ClassVar[str] = "warmups"

    options: WarmUpOptions
    extras: tuple[str, ...]
    optimiser_steps: float

    @classmethod
    def provide(cls, steps: Steps, learner: str, seed: int) -> Self:
        """Make the warm-up that methods go by: of one learner for all if so wanted, shared by all that go by it."""
        learner = steps.options.warmup_learner or learner
        return steps.once((cls, learner, seed), lambda: cls._make(steps, learner, seed))

    @classmethod
    def _make(cls, steps: Steps, learner: str, seed: int) -> Self:
        options, n = steps.options, len(steps.dataset.train)
        plan = steps.plan(learner, seed, warmup_epochs=options.warmup_epochs)
        extras = tuple(sorted({*options.extras, *(need for spec in options.specs for need in spec.needs)}))
        shown = {"view": options.view, "views": options.views, "repeats": options.repeats}
        times = options.repeats if {"el2n", "grad_norms"} & set(extras) else 1
        epochs = times * plan.warmup_epochs
        if "ssl_embeddings" in extras:
            epochs += max(1, plan.hyperparameters.epochs // 3)
        return cls(
            f"warm-up of {learner}, seed {seed}",
            steps.folder / cls.place / f"{slug(learner)}-seed{seed}",
            {"data": steps.data, "plan": plan.as_dict(), "extras": list(extras), **shown},
            learner,
            seed,
            options,
            extras,
            epochs * n / plan.hyperparameters.batch,
        )

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
                plan=options.plan(dataset, self.learner, self.seed, warmup_epochs=options.warmup_epochs),
                extras=self.extras,
                view=options.view,  # type: ignore[arg-type]
                views=options.views,
                repeats=options.repeats,
                device=options.device,
                folder=self.folder / CHECKPOINTS,
                skip_broken=options.skip_broken,
                progress=progress,
            )
            signals.save(self.signals)
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        return {}

    def cost(self) -> Mapping[str, float]:
        """Return the steps of the optimiser; looking at every example afterwards is left out."""
        return {self.learner: self.optimiser_steps}


def _trouble_of(signals: Path) -> str | None:
    """Say why signals that an earlier process left behind cannot be used, or None."""
    from prune4rel.signals import Signals

    try:
        Signals.load(signals)
    except InputError as error:
        return str(error)
    return None
