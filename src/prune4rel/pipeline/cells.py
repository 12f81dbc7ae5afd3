"""The steps a configuration amounts to: warm-ups, then selections, then trainings."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prune4rel.data import Dataset
from prune4rel.pipeline.config import Config
from prune4rel.pipeline.specs import MethodSpec
from prune4rel.pipeline.steps import Step
from prune4rel.pipeline.work import SELECTION, SIGNALS, identify, plan_for

EVERYTHING = "everything"


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


def lay_out(config: Config, dataset: Dataset, folder: Path) -> Steps:
    """Work out the steps of a run, each with everything its result depends on."""
    data = identify(dataset)
    extras = tuple(sorted({need for spec in config.specs for need in spec.needs}))
    warm_ups: dict[tuple[str, int], WarmUp] = {}
    choices: dict[tuple[str, float, str, int], Choice] = {}
    trainings: list[Training] = []
    for seed in range(config.seed, config.seed + config.seeds):
        for learner in config.learners:
            plan = plan_for(config, dataset, learner, seed)
            warmed = config.warmup_learner or learner
            if (warmed, seed) not in warm_ups:
                warm_ups[warmed, seed] = _warm_up(config, dataset, warmed, seed, extras, folder, data)
            warm_up = warm_ups[warmed, seed]
            for spec in config.specs:
                for ratio in config.ratios:
                    key = (spec.label, ratio, warmed, seed)
                    if key not in choices:
                        choices[key] = _choice(spec, ratio, seed, warm_up, folder)
                    choice = choices[key]
                    name = f"{slug(spec.label)}-{ratio:g}-{slug(learner)}-seed{seed}"
                    step = Step(
                        f"training {learner} on {spec.label}, ratio {ratio:g}, seed {seed}",
                        folder / "trainings" / name,
                        {"after": choice.step.key, "plan": plan.as_dict()},
                    )
                    trainings.append(Training(learner, seed, choice, step))
            if config.everything:
                name = f"{EVERYTHING}-{slug(learner)}-seed{seed}"
                step = Step(
                    f"training {learner} on everything, seed {seed}",
                    folder / "trainings" / name,
                    {"data": data, "plan": plan.as_dict()},
                )
                trainings.append(Training(learner, seed, None, step))
    return Steps(tuple(warm_ups.values()), tuple(choices.values()), tuple(trainings))


def _warm_up(
    config: Config,
    dataset: Dataset,
    learner: str,
    seed: int,
    extras: tuple[str, ...],
    folder: Path,
    data: dict[str, str],
) -> WarmUp:
    depends = {
        "data": data,
        "plan": plan_for(config, dataset, learner, seed).as_dict(),
        "extras": list(extras),
        "view": config.view,
        "views": config.views,
        "repeats": config.repeats,
    }
    name = f"warm-up of {learner}, seed {seed}"
    return WarmUp(learner, seed, extras, Step(name, folder / "warmups" / f"{slug(learner)}-seed{seed}", depends))


def _choice(spec: MethodSpec, ratio: float, seed: int, warm_up: WarmUp, folder: Path) -> Choice:
    name = f"{slug(spec.label)}-{ratio:g}-{slug(warm_up.learner)}-seed{seed}"
    step = Step(
        f"selection by {spec.label}, ratio {ratio:g}, seed {seed}",
        folder / "selections" / name,
        {"after": warm_up.step.key, "ratio": ratio, "seed": seed, **spec.as_dict()},
    )
    return Choice(spec, ratio, seed, warm_up, step)


def slug(text: str) -> str:
    """Turn a name into part of a file name; different names stay different.

    >>> slug("prune4rel (label-aware)"), slug("sop+"), slug("a/b:c")
    ('prune4rel-label-aware', 'sop+', 'a-b-c-2fef1b')
    """
    plain = re.sub(r"[^\w.+=-]+", "-", text, flags=re.ASCII).strip("-")[:80]
    usual = re.fullmatch(r"[\w.+=-]+( \([\w.+=-]+\))?", text, flags=re.ASCII)
    return plain if usual else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
