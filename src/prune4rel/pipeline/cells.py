"""The steps a configuration amounts to: warm-ups, then selections, then trainings."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prune4rel.data import Dataset
from prune4rel.pipeline.config import Config
from prune4rel.pipeline.specs import EVERYTHING, MethodSpec
from prune4rel.pipeline.steps import Step
from prune4rel.pipeline.work import SELECTION, SIGNALS, identify, identify_truth, plan_for
from prune4rel.training import TrainingPlan

MOST_LETTERS = 80
"""Of a name in a file name."""


@dataclass(frozen=True)
class WarmUp:
    """One warm-up and the signals it provides."""

    learner: str
    seed: int
    extras: tuple[str, ...]
    step: Step

    @property
    def signals(self) -> Path:
        """Where its signals lie."""
        return self.step.folder / SIGNALS


@dataclass(frozen=True)
class Choice:
    """One selection."""

    spec: MethodSpec
    ratio: float
    seed: int
    warm_up: WarmUp
    step: Step

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.step.folder / SELECTION


@dataclass(frozen=True)
class Training:
    """One training: on a choice, or on everything."""

    learner: str
    seed: int
    choice: Choice | None
    step: Step

    @property
    def label(self) -> str:
        """What the method is called."""
        return EVERYTHING if self.choice is None else self.choice.spec.label

    @property
    def ratio(self) -> float:
        """Share of the training set."""
        return 1.0 if self.choice is None else self.choice.ratio


@dataclass(frozen=True)
class Steps:
    """All steps of a run, in order."""

    warm_ups: tuple[WarmUp, ...]
    choices: tuple[Choice, ...]
    trainings: tuple[Training, ...]

    def __iter__(self) -> Iterator[Step]:
        yield from (each.step for each in self.warm_ups)
        yield from (each.step for each in self.choices)
        yield from (each.step for each in self.trainings)

    def left(self) -> "Steps":
        """Return those that are not done."""
        return Steps(
            tuple(each for each in self.warm_ups if not each.step.done),
            tuple(each for each in self.choices if not each.step.done),
            tuple(each for each in self.trainings if not each.step.done),
        )


def lay_out(config: Config, dataset: Dataset, folder: Path) -> Steps:
    """Work out the steps of a run, each with everything its result depends on.

    Warm-ups are shared by all methods and ratios, and selections by all learners that share a warm-up.

    Examples
    --------
    >>> from prune4rel.data import load_dataset
    >>> config = Config(methods=["uniform", "prune4rel"], learners=["sop+", "cross-entropy"], warmup_learner="sop+")
    >>> steps = lay_out(config, load_dataset("digits"), Path("run"))
    >>> len(steps.warm_ups), len(steps.choices), len(steps.trainings)
    (1, 2, 4)
    """
    maker = _Maker(config, dataset, folder)
    for seed in range(config.seed, config.seed + config.seeds):
        for learner in config.learners:
            for spec in config.specs:
                for ratio in config.ratios if learner in (spec.learners or config.learners) else ():
                    choice = maker.choice(spec, ratio, learner, seed)
                    if not config.select_only:
                        maker.add_training(learner, seed, choice)
            if config.everything and not config.select_only:
                maker.add_training(learner, seed, None)
    return Steps(tuple(maker.warm_ups.values()), tuple(maker.choices.values()), tuple(maker.trainings))


class _Maker:
    """Makes each step once."""

    def __init__(self, config: Config, dataset: Dataset, folder: Path) -> None:
        self.config, self.dataset, self.folder = config, dataset, folder
        self.data, self.truth = identify(dataset), identify_truth(dataset)
        self.extras = tuple(sorted({*config.extras, *(need for spec in config.specs for need in spec.needs)}))
        self.warm_ups: dict[tuple[str, int], WarmUp] = {}
        self.choices: dict[tuple[str, float, str, int], Choice] = {}
        self.trainings: list[Training] = []
        self._plans: dict[tuple[str, bool], TrainingPlan] = {}

    def plan(self, learner: str, seed: int, *, warm: bool) -> dict[str, Any]:
        if (learner, warm) not in self._plans:
            self._plans[learner, warm] = plan_for(self.config, self.dataset, learner, seed, warm=warm)
        return replace(self._plans[learner, warm], seed=seed).as_dict()

    def warm_up(self, learner: str, seed: int) -> WarmUp:
        key = (self.config.warmup_learner or learner, seed)
        if key not in self.warm_ups:
            name = f"warm-up of {key[0]}, seed {seed}"
            shown = {"view": self.config.view, "views": self.config.views, "repeats": self.config.repeats}
            depends = {"data": self.data, "plan": self.plan(*key, warm=True), "extras": list(self.extras), **shown}
            step = Step(name, self.folder / "warmups" / f"{slug(key[0])}-seed{seed}", depends)
            self.warm_ups[key] = WarmUp(*key, self.extras, step)
        return self.warm_ups[key]

    def choice(self, spec: MethodSpec, ratio: float, learner: str, seed: int) -> Choice:
        warm_up = self.warm_up(learner, seed)
        key = (spec.label, ratio, warm_up.learner, seed)
        if key not in self.choices:
            before: Mapping[str, Any] = {"after": warm_up.step.key} if spec.learns else {"labels": self.data["labels"]}
            step = Step(
                f"selection by {spec.label}, ratio {written(ratio)}, seed {seed}",
                self.folder / "selections" / f"{slug(spec.label)}-{written(ratio)}-{slug(warm_up.learner)}-seed{seed}",
                {**spec.as_dict(), "ratio": ratio, "seed": seed, **before},
            )
            self.choices[key] = Choice(spec, ratio, seed, warm_up, step)
        return self.choices[key]

    def add_training(self, learner: str, seed: int, choice: Choice | None) -> None:
        plan = self.plan(learner, seed, warm=False)
        tail = f"{slug(learner)}-seed{seed}"
        if choice is None:
            name, place = f"training {learner} on everything, seed {seed}", f"{EVERYTHING}-{tail}"
        else:
            name = f"training {learner} on {choice.spec.label}, ratio {written(choice.ratio)}, seed {seed}"
            place = f"{slug(choice.spec.label)}-{written(choice.ratio)}-{tail}"
        after = {} if choice is None else {"after": choice.step.key}
        depends = {"data": self.data, "truth": self.truth, "plan": plan, **after}
        self.trainings.append(Training(learner, seed, choice, Step(name, self.folder / "trainings" / place, depends)))


def written(ratio: float) -> str:
    """Write a ratio as short as it can be told from others.

    >>> written(0.2), written(0.12345678)
    ('0.2', '0.12345678')
    """
    short = f"{ratio:g}"
    return short if float(short) == ratio else repr(ratio)


def slug(text: str) -> str:
    """Turn a name into part of a file name; different names stay different, on every file system.

    >>> slug("prune4rel (label-aware)"), slug("sop+"), slug("a/b:c")
    ('prune4rel_label-aware', 'sop+', 'a-b-c-3b07f8')
    """
    word = r"[a-z0-9][a-z0-9.+=-]*"
    if len(text) <= MOST_LETTERS and (usual := re.fullmatch(rf"({word})(?: \(({word})\))?", text)):
        return "_".join(filter(None, usual.groups()))
    plain = re.sub(r"[^\w.+=-]+", "-", text, flags=re.ASCII).strip(".-")[:MOST_LETTERS]
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:6]
    return f"{plain}-{digest}".lstrip("-")
