"""Look at all examples with a trained model: the signals of a second round."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from prune4rel.progress import Progress
from prune4rel.steps.data import open_dataset
from prune4rel.steps.step import SignalsStep, Step, Steps
from prune4rel.steps.warm_up import WarmUpOptions

if TYPE_CHECKING:
    from prune4rel.steps.train import TrainStep

VIEWS = 4
"""Of every example, at least; a trained model is surer of one than a warmed-up one, and often wrongly so."""


@dataclass(frozen=True)
class LookStep(SignalsStep):
    """What the model of a training makes of all examples, of the picks it was trained on as of the others."""

    title: ClassVar[str] = "look"
    place: ClassVar[str] = "looks"

    training: Step
    options: WarmUpOptions
    paid: int
    """Steps of the training and all before it, and of looking."""

    @classmethod
    def at(cls, steps: Steps, training: "TrainStep", paid: int) -> Self:
        """Look with the model of one training, which took so many steps in all."""
        from prune4rel.training.hyperparameters import looks_as_steps

        options, learner, seed = steps.options, training.learner, training.seed
        views = max(VIEWS, options.views)
        return steps.once(
            (cls, training.folder.name),
            lambda: cls(
                f"look at all examples after {training.name}",
                steps.folder / cls.place / training.folder.name,
                {"after": training.key, "view": options.view, "views": views},
                learner,
                seed,
                training,
                options,
                paid
                + looks_as_steps(len(steps.dataset.train) * views, steps.plan(learner, seed).hyperparameters.batch),
            ),
        )

    @classmethod
    def provide(cls, steps: Steps, learner: str, seed: int) -> None:
        """Leave the first round to other kinds."""

    def charge(self, needs: Collection[str]) -> int:
        """Return the steps of all that was done for it."""
        del needs
        return self.paid

    @property
    def round(self) -> int:
        """The round that goes by it."""
        return self.training.round + 1

    @property
    def uses(self) -> tuple[Step, ...]:
        """The training whose model it asks."""
        return (self.training,)

    def used(self) -> dict[str, str]:
        """Return the fingerprint of the model."""
        return self.training.outputs()

    def work(self, progress: Progress) -> Mapping[str, Any]:
        """Ask the model, and save what it says."""
        from prune4rel.training import look_at

        dataset = open_dataset(self.options)
        signals = look_at(
            dataset,
            self.training.folder,
            plan=self.options.plan(dataset, self.learner, self.seed),
            view=self.options.view,  # type: ignore[arg-type]
            views=max(VIEWS, self.options.views),
            device=self.options.device,
            progress=progress,
        )
        signals.save(self.signals, force=True)
        return {}
