"""Train learners on what was selected, or on everything."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from prune4rel.progress import Progress
from prune4rel.steps.data import open_dataset
from prune4rel.steps.model import WHAT, ModelOptions
from prune4rel.steps.options import option
from prune4rel.steps.select import EVERYTHING, SelectStep
from prune4rel.steps.step import Step, Steps, slug, written


@dataclass(frozen=True)
class TrainOptions(ModelOptions):
    """What is trained."""

    everything: bool = option(False, "Train on the whole set, too, to compare with.", panel=WHAT)
    select_only: bool = option(False, "Warm up and select, and train nothing.", panel=WHAT)


@dataclass(frozen=True)
class TrainStep(Step):
    """One training: on a selection, or on everything."""

    title: ClassVar[str] = "training"
    place: ClassVar[str] = "trainings"

    learner: str
    seed: int
    choice: SelectStep | None
    options: ModelOptions
    whole: float
    """Steps of the optimiser that a training on everything takes."""

    @property
    def label(self) -> str:
        """What the method is called."""
        return EVERYTHING if self.choice is None else self.choice.spec.label

    @property
    def ratio(self) -> float:
        """Share of the training set."""
        return 1.0 if self.choice is None else self.choice.ratio

    @classmethod
    def lay_out(cls, steps: Steps) -> None:
        """Make a training on every selection for every learner that is to have it."""
        options = steps.options
        for seed in () if options.select_only else steps.seeds:
            for learner in options.learners:
                for spec in options.specs:
                    for ratio in options.ratios if learner in (spec.learners or options.learners) else ():
                        cls._add(steps, learner, seed, SelectStep.of(steps, spec, ratio, learner, seed))
                if options.everything:
                    cls._add(steps, learner, seed, None)

    @classmethod
    def _add(cls, steps: Steps, learner: str, seed: int, choice: SelectStep | None) -> None:
        plan, tail = steps.plan(learner, seed), f"{slug(learner)}-seed{seed}"
        if choice is None:
            name, place, after = f"training {learner} on everything, seed {seed}", f"{EVERYTHING}-{tail}", {}
        else:
            name = f"training {learner} on {choice.spec.label}, ratio {written(choice.ratio)}, seed {seed}"
            place = f"{slug(choice.spec.label)}-{written(choice.ratio)}-{tail}"
            after = {"after": choice.key}
        made = cls(
            name,
            steps.folder / cls.place / place,
            {"data": steps.data, "truth": steps.truth, "plan": plan.as_dict(), **after},
            learner,
            seed,
            choice,
            steps.options,
            plan.hyperparameters.epochs * len(steps.dataset.train) / plan.hyperparameters.batch,
        )
        steps.once((cls, place), lambda: made)

    @property
    def uses(self) -> tuple[Step, ...]:
        """The selection it is trained on."""
        return () if self.choice is None else (self.choice,)

    def used(self) -> dict[str, str]:
        """Return the fingerprint of the picks it is trained on."""
        return {} if self.choice is None else self.choice.outputs()

    def work(self, progress: Progress) -> Mapping[str, Any]:
        """Train, and leave a model and corrected labels behind."""
        from prune4rel.selection import Selection
        from prune4rel.training import train

        dataset = open_dataset(self.options)
        result = train(
            dataset,
            None if self.choice is None else Selection.load(self.choice.path).indices,
            folder=self.folder,
            plan=self.options.plan(dataset, self.learner, self.seed),
            device=self.options.device,
            skip_broken=self.options.skip_broken,
            progress=progress,
        )
        return {"test_accuracy": result.test_accuracy, "notes": list(result.notes)}

    def cost(self) -> Mapping[str, float]:
        """Return the steps of the optimiser; a selection takes its share of them."""
        return {self.learner: self.ratio * self.whole}
