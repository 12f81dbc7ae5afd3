"""Train learners on what was selected, or on everything."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from prune4rel.errors import InputError
from prune4rel.progress import Progress
from prune4rel.steps.data import open_dataset
from prune4rel.steps.look import LookStep
from prune4rel.steps.model import WHAT, ModelOptions
from prune4rel.steps.options import option
from prune4rel.steps.select import EVERYTHING, SelectOptions, SelectStep
from prune4rel.steps.step import Step, Steps, slug, written

if TYPE_CHECKING:
    from prune4rel.training import TrainingPlan


@dataclass(frozen=True)
class TrainOptions(SelectOptions):
    """What is trained."""

    select_only: bool = option(False, "Warm up and select, and train nothing.", panel=WHAT)
    rounds: int = option(
        1, "Select again by what the trained model says, and train anew; so many rounds in all.", least=1, panel=WHAT
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds == 1:
            return
        if self.equal_steps or self.select_only:
            which = "equal_steps" if self.equal_steps else "select_only"
            raise InputError(f"rounds: a second one needs a whole training before it; leave {which} out", "rounds")
        for spec in self.specs:
            if spec.learns and spec.needs:
                raise InputError(
                    f"rounds: {spec.label!r} needs {spec.needs[0]}, which a trained model cannot say any more", "rounds"
                )


@dataclass(frozen=True)
class TrainStep(Step):
    """One training: on a selection, or on everything."""

    title: ClassVar[str] = "training"
    place: ClassVar[str] = "trainings"

    learner: str
    seed: int
    choice: SelectStep | None
    options: ModelOptions
    optimiser_steps: float
    paid: int = 0
    steps: int | None = None
    """Where everybody gets as many: what its signals took of them, and how many are left to train."""

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
            for each in options.contenders:
                of = None if each.spec is None else SelectStep.of(steps, each.spec, each.ratio, each.learner, seed)
                made = cls._add(steps, each.learner, seed, of)
                if each.spec is None or not each.spec.learns:
                    continue
                for number in range(2, 1 + options.rounds):
                    look = LookStep.at(steps, made, each.learner, seed)
                    again = replace(each.spec, label=f"{each.spec.label}, round {number}")
                    of = SelectStep.of(steps, again, each.ratio, each.learner, seed, look)
                    made = cls._add(steps, each.learner, seed, of)

    @classmethod
    def _add(cls, steps: Steps, learner: str, seed: int, choice: SelectStep | None) -> Self:
        plan, tail = steps.plan(learner, seed), f"{slug(learner)}-seed{seed}"
        paid = choice.provider.charge(choice.spec.may_use) if choice is not None and choice.spec.learns else 0
        plan = with_steps(plan, _left(steps.options.steps, paid, learner, choice))
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
            _optimiser_steps(plan, len(steps.dataset.train), 1.0 if choice is None else choice.ratio),
            paid,
            plan.hyperparameters.steps,
        )
        return steps.once((cls, place), lambda: made)

    @property
    def round(self) -> int:
        """That of the selection it is trained on."""
        return 1 if self.choice is None else self.choice.round

    @property
    def uses(self) -> tuple[Step, ...]:
        """The selection it is trained on."""
        return () if self.choice is None else (self.choice,)

    def used(self) -> dict[str, str]:
        """Return the fingerprint of the picks it is trained on."""
        return {} if self.choice is None else self.choice.outputs()

    def outputs(self) -> dict[str, str]:
        """Return the fingerprint of the model."""
        files = (self.record() or {}).get("files", {})
        return {name: one["sha256"] for name, one in files.items() if name.endswith(".safetensors")}

    def work(self, progress: Progress) -> Mapping[str, Any]:
        """Train, and leave a model and corrected labels behind."""
        from prune4rel.provenance import commit
        from prune4rel.selection import Selection
        from prune4rel.training import train

        dataset = open_dataset(self.options)
        result = train(
            dataset,
            None if self.choice is None else Selection.load(self.choice.path).indices,
            folder=self.folder,
            plan=with_steps(self.options.plan(dataset, self.learner, self.seed), self.steps),
            device=self.options.device,
            skip_broken=self.options.skip_broken,
            progress=progress,
        )
        return {"test_accuracy": result.test_accuracy, "notes": list(result.notes), "commit": commit()}

    def seconds_by_step(self) -> dict[str, float]:
        """Return what a finished training took: warm-up and selection included, and a round before with all it took."""
        from prune4rel.training.result import Result

        training = {"training": float(Result.load(self.folder).seconds.get("training", 0.0))}
        if self.choice is None:
            return training
        selection = {"selection": float((self.choice.record() or {}).get("picking_seconds", 0.0))}
        provider = self.choice.provider if self.choice.spec.learns else None
        warmup = float(((provider and provider.record()) or {}).get("seconds", 0.0))
        for before in provider.uses if provider else ():
            warmup += sum(before.seconds_by_step().values()) if isinstance(before, TrainStep) else 0.0
        return {"warmup": warmup, **selection, **training}

    def cost(self) -> Mapping[str, float]:
        """Return the steps of the optimiser; a selection takes its share of them."""
        return {self.learner: self.optimiser_steps}


def with_steps(plan: "TrainingPlan", steps: int | None) -> "TrainingPlan":
    """Return a plan that ends after so many steps; as it is where there is no such number."""
    return replace(plan, hyperparameters=plan.hyperparameters.changed(steps=steps))


def _left(steps: int | None, paid: int, learner: str, choice: SelectStep | None) -> int | None:
    """Return how many steps are left to train; refuse where nothing is."""
    if steps is None or paid < steps:
        return None if steps is None else steps - paid
    who = EVERYTHING if choice is None else choice.spec.label
    raise InputError(
        f"{who} with {learner} pays {paid:,} steps for its warm-up and for looking at all examples, and there are "
        f"{steps:,}: nothing is left to train. Give everybody more (--steps), or warm up for less (--warmup-epochs)",
        "steps",
    )


def _optimiser_steps(plan: "TrainingPlan", n: int, ratio: float) -> float:
    settings = plan.hyperparameters
    if settings.steps is None:
        return settings.epochs * ratio * n / settings.batch
    from prune4rel.learners import get

    return settings.steps / get(plan.learner).kind.n_networks
