"""Train learners on what was selected, or on everything."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from prune4rel.errors import InputError
from prune4rel.progress import Progress
from prune4rel.steps.data import open_dataset
from prune4rel.steps.look import LookStep
from prune4rel.steps.model import WHAT
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
        if self.select_only:
            raise InputError("rounds: a second one needs a training before it; leave select_only out", "rounds")
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
    options: TrainOptions
    optimiser_steps: float
    paid: int = 0
    steps: int | None = None
    """Where everybody gets as many: what its signals took of them, and how many are left to train."""

    @property
    def on_the_way(self) -> bool:
        """Whether it is a round before the last of those that share the steps of one; shown nowhere."""
        return self.options.steps is not None and self.steps is not None and self.paid + self.steps < self.options.steps

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
                spec, look = each.spec, None
                rounds = options.rounds if spec is not None and spec.learns else 1
                for number in range(1, 1 + rounds):
                    of = None if spec is None else SelectStep.of(steps, spec, each.ratio, each.learner, seed, look)
                    upto = None if options.steps is None else options.steps * number // rounds
                    made = cls._add(steps, each.learner, seed, of, upto)
                    if each.spec is not None and number < rounds:
                        look = LookStep.at(steps, made, made.paid + (made.steps or 0))
                        spec = replace(each.spec, label=f"{each.spec.label}, round {number + 1}")

    @classmethod
    def _add(cls, steps: Steps, learner: str, seed: int, choice: SelectStep | None, upto: int | None) -> Self:
        plan, tail = steps.plan(learner, seed), f"{slug(learner)}-seed{seed}"
        paid = choice.provider.charge(choice.spec.may_use) if choice is not None and choice.spec.learns else 0
        plan = with_steps(plan, _left(upto, paid, learner, choice, steps.options.rounds))
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
    """Return a plan that ends after so many steps; as it is where there is no such number, or no step is taken."""
    from prune4rel.learners import get

    if get(plan.learner).kind.at_once:
        return plan
    return replace(plan, hyperparameters=plan.hyperparameters.changed(steps=steps))


def _left(steps: int | None, paid: int, learner: str, choice: SelectStep | None, rounds: int) -> int | None:
    """Return how many steps are left to train, up to so many in all; refuse where nothing is."""
    if steps is None or paid < steps:
        return None if steps is None else steps - paid
    fewer = "" if rounds == 1 else f" up to the end of this one of {rounds} rounds"
    who = EVERYTHING if choice is None else choice.spec.label
    raise InputError(
        f"{who} with {learner} pays {paid:,} steps for its warm-up and for looking at all examples, and there are "
        f"{steps:,}{fewer}: nothing is left to train. Give everybody more (--steps), or warm up for less "
        "(--warmup-epochs)",
        "steps",
    )


def _optimiser_steps(plan: "TrainingPlan", n: int, ratio: float) -> float:
    settings = plan.hyperparameters
    if settings.steps is None:
        return settings.epochs * ratio * n / settings.batch
    from prune4rel.learners import get

    return settings.steps / get(plan.learner).kind.n_networks
