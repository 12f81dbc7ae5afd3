"""How long a run will take, judged from a few steps of each learner, and what of it fits a time budget."""

import time
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import torch

from prune4rel.data import Dataset
from prune4rel.errors import InputError
from prune4rel.judging.logistic import seconds_to_fit
from prune4rel.learners import get
from prune4rel.learners.learner import Pass
from prune4rel.machine import format_seconds, sharing
from prune4rel.pipeline.config import Config
from prune4rel.progress import Progress
from prune4rel.steps import KINDS, Step, Steps, TrainStep
from prune4rel.training.hyperparameters import shape_of
from prune4rel.training.trainer import Trainer

WORTH_PROBING = 3000
"""Steps below which a run is not worth an estimate."""

PROBES = 4
LEAST_EPOCHS = 0.25
"""Share of the epochs below which a training is refused rather than shortened."""

RESERVE = 0.9
"""Share of a time budget that may be planned for."""


def estimate(config: Config, dataset: Dataset, steps: Collection[Step], least: float = WORTH_PROBING) -> float | None:
    """Return the seconds that some steps take; None where they are too few to be worth the question."""
    if sum(sum(step.cost().values()) for step in steps) < least or not steps:
        return None
    at_a_time = max(1, min(config.parallel, max(Counter(map(type, steps)).values())))
    return sum(_seconds(config, steps, paces_of(config, dataset, at_a_time)).values())


def paces_of(config: Config, dataset: Dataset, at_a_time: int) -> dict[str, float]:
    """Return the seconds a step of each learner takes, where so many processes share the threads of this machine."""
    warmed = () if config.warmup_learner is None else (config.warmup_learner,)
    with sharing(at_a_time):
        return {
            learner: seconds_a_step(config, dataset, learner)
            for learner in dict.fromkeys((*config.all_learners, *warmed))
        }


def _seconds(config: Config, steps: Collection[Step], paces: Mapping[str, float]) -> dict[type[Step], float]:
    """Return the seconds of all steps of every kind."""
    counts = Counter(map(type, steps))
    found = dict.fromkeys(KINDS, 0.0)
    for step in steps:
        at_a_time = min(config.parallel, counts[type(step)]) if step.spreads else 1
        found[type(step)] += step.seconds(paces.__getitem__) / at_a_time
    return found


def seconds_a_step(config: Config, dataset: Dataset, learner: str) -> float:
    """Time a few steps of a learner on a handful of examples, with weights that are thrown away."""
    plan = config.plan(dataset, learner)
    if get(learner).kind.at_once:
        return seconds_to_fit(plan.hyperparameters.batch, shape_of(dataset)[0], dataset.n_classes)
    some = np.arange(min(len(dataset.train), plan.hyperparameters.batch * (PROBES + 2)))
    trainer = Trainer(dataset, some, plan, device=config.device)
    training = trainer.training
    late = training.learner.setting.epochs - 1  # learners that begin gently are in full swing by then
    with trainer.settings():
        training.stepper.begin_epoch(0.0)
        training.learner.begin_epoch(late, training.predict)
        one, *others = training.learner.passes(late)
        _time_steps(trainer, one)  # the first ones also compile, choose kernels and take memory
        spent = _time_steps(trainer, one)
    usual = min(spent)
    augmenting = (spent[0] - usual) / len(spent)  # examples are augmented many at a time, before the first step
    return (usual + augmenting) * (1 + len(others))


def _time_steps(trainer: Trainer, one: Pass) -> list[float]:
    spent: list[float] = []
    begin = time.perf_counter()
    for streams, drawn in trainer.training.feed.steps(one, 0, 0):
        trainer.training.stepper(one, streams, drawn)
        if trainer.device.type == "cuda":
            torch.cuda.synchronize(trainer.device)
        spent.append(time.perf_counter() - begin)
        begin = time.perf_counter()
    return spent


MANY = 2**40
"""Steps that pay for every warm-up."""


def fit_steps(config: Config, dataset: Dataset, home: Path, budget: float, listener: Progress) -> Config:
    """Give everybody as many steps as let the whole run end in time; refuse where nothing would be left to train."""
    paces = paces_of(config, dataset, config.parallel)
    some = Steps(config.changed(steps=MANY), dataset, home, KINDS)
    more = Steps(config.changed(steps=2 * MANY), dataset, home, KINDS, (some.data, some.truth))
    few, many = (sum(_seconds(config, list(steps), paces).values()) for steps in (some, more))
    pace = (many - few) / MANY  # a step more for everybody takes so many seconds
    if pace <= 0:
        listener.say("nobody here takes steps, so that there are none to share")
        return config.changed(steps=1)
    count = int(MANY + (RESERVE * budget - few) / pace)
    rounds = config.rounds  # they share what everybody gets, and each has to be left something to train
    most = rounds * max([0, *(MANY // rounds - (one.steps or 0) for one in some.of(TrainStep))])
    if count < most + rounds:
        least = (few - (MANY - most - rounds) * pace) / RESERVE
        raise InputError(
            f"the time budget is too short: warm-ups and looking at all examples take up to {most:,} steps, and "
            f"{format_seconds(budget)} are about {max(0, count):,} for everybody; at least {format_seconds(least)} "
            "would leave anything to train. Choose fewer methods or repeats, or a longer budget"
        )
    listener.say(f"{format_seconds(budget)} make {count:,} steps for each of {len(config.contenders)} contenders")
    return config.changed(steps=count)


def fit_budget(config: Config, dataset: Dataset, home: Path, budget: float, listener: Progress) -> Config:
    """Shrink what is left of a run until it fits: fewer repeats first, then shorter trainings; refuse the rest.

    Parameters
    ----------
    home
        The run folder: what is done there takes no more time.
    budget
        Seconds.
    """
    paces = paces_of(config, dataset, config.parallel)

    def needed(candidate: Config) -> tuple[float, float]:
        """Return the seconds of trainings, and of all other steps."""
        found = _seconds(candidate, Steps(candidate, dataset, home, KINDS).left(), paces)
        training = found.pop(TrainStep)
        return training, sum(found.values())

    room = RESERVE * budget
    wanted = sum(needed(config))
    if wanted <= room:
        return config
    said = f"this would take about {format_seconds(wanted)}, and there are {format_seconds(budget)}"
    for seeds in range(config.seeds - 1, 0, -1):
        fewer = config.changed(seeds=seeds)
        if sum(needed(fewer)) <= room or seeds == 1:
            config = fewer
            said += f"; {seeds} repeat{'s' if seeds > 1 else ''} instead"
            break
    training, others = needed(config)
    if others + training > room:
        epochs = config.plan(dataset, config.learners[0]).hyperparameters.epochs
        least = max(1, round(LEAST_EPOCHS * epochs))
        kept = max(least, int(epochs * (room - others) / training)) if training else epochs
        shorter = config.changed(epochs=kept)
        if sum(needed(shorter)) > room:
            smallest = sum(needed(config.changed(epochs=least)))
            raise InputError(
                f"the time budget is too short: {said}, and even {least} epochs instead of {epochs} need about "
                f"{format_seconds(smallest / RESERVE)}. Choose fewer methods, ratios or learners, or a longer budget"
            )
        config = shorter
        said += f"; {kept} epochs instead of {epochs}"
    listener.say(said)
    return config
