"""What warm-ups and trainings share: which learners and network, how they are trained, how often."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from prune4rel.errors import InputError
from prune4rel.steps.data import DataOptions
from prune4rel.steps.options import option, refuse_twice

if TYPE_CHECKING:
    from prune4rel.data import Dataset
    from prune4rel.training import TrainingPlan

WHAT, MODEL = "What to compare", "Model and training"
UNLESS_TOLD = ("sop+",)
"""Who learns from images; this very object where nobody said who."""

TRUST = "trust"
"""The learner that may go by a method."""


@dataclass(frozen=True)
class ModelOptions(DataOptions):
    """Which model, and how it is trained; what is left out comes from the preset of the data set."""

    learners: tuple[str, ...] = option(
        UNLESS_TOLD, "Learners, with commas between; on features logistic unless told.", panel=WHAT
    )
    seeds: int = option(1, "How many repeats.", least=1, panel=WHAT)
    seed: int = option(0, "Seed of the first.", least=0, panel=WHAT)
    learner_options: dict[str, dict[str, Any]] = option(
        {}, "An option of the learner as NAME=VALUE; repeat.", flag="--learner-option", panel=MODEL
    )
    trust_by: str | None = option(
        None,
        "A method: in trainings of the learner trust, it selects whose labels count.",
        panel=MODEL,
        metavar="METHOD",
    )
    network: str | None = option(None, "preact-resnet18, small-cnn, mlp or timm/NAME; fits the data.", panel=MODEL)
    network_options: dict[str, Any] = option(
        {}, "An option of the network as NAME=VALUE; repeat.", flag="--network-option", panel=MODEL
    )
    training: dict[str, Any] = option(
        {},
        "A setting of training as NAME=VALUE: batch, lr, scheme, weight_decay, clip, ema, ...; repeat.",
        flag="--set",
        panel=MODEL,
    )
    look: dict[str, Any] = option(
        {}, "How images are augmented, as NAME=VALUE: mirror, padding, policy, cutout; repeat.", panel=MODEL
    )
    epochs: int | None = option(None, "Epochs of the whole training.", least=1, panel=MODEL)
    device: str = option("auto", "auto, cpu or cuda.", panel=MODEL)

    def __post_init__(self) -> None:
        super().__post_init__()
        from prune4rel.learners import get

        refuse_twice("learners", self.learners)
        for learner in (*self.learners, *self.learner_options):
            get(learner)
        if self.trust_by is not None:
            from prune4rel.learners.trust import needs_embeddings

            needs_embeddings(self.trust_by)
        for learner, own in self.learner_options.items():
            if not isinstance(own, dict):
                raise InputError(f"learner_options: {learner} must be a mapping of names to values", "learner_options")

    def with_learners(self, kind: str) -> Self:
        """Return the same with the usual learner for examples of a kind, where nobody named any, nor a network."""
        untold = self.learners is UNLESS_TOLD and self.network is None
        return replace(self, learners=("logistic",)) if untold and kind == "features" else self

    def plan(self, dataset: "Dataset", learner: str, seed: int | None = None) -> "TrainingPlan":
        """Return how one learner is trained."""
        from prune4rel.training import make_plan

        own = dict(self.learner_options.get(learner, {}))
        if learner == TRUST and self.trust_by is not None:
            own["trust_by"] = self.trust_by
        return make_plan(
            dataset,
            learner,
            learner_options=own,
            network=self.network,
            network_options=self.network_options,
            look=self.look,
            seed=self.seed if seed is None else seed,
            training=self.training | ({} if self.epochs is None else {"epochs": self.epochs}),
        )
