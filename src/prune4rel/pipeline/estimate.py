"""How long a run will take, judged from a few steps of each learner."""

import time
from collections.abc import Sequence

import numpy as np
import torch

from prune4rel.data import Dataset
from prune4rel.errors import InputError
from prune4rel.machine import format_seconds
from prune4rel.pipeline.cells import Training
from prune4rel.pipeline.config import Config
from prune4rel.pipeline.work import open_dataset, plan_for
from prune4rel.progress import Progress
from prune4rel.training.workshop import Workshop

WORTH_PROBING = 3000
"""Steps below which a run is not worth an estimate."""

PROBES = 4
LEAST_EPOCHS = 0.25
"""Share of the epochs below which a training is refused rather than shortened."""

RESERVE = 0.9
"""Share of a time budget that may be planned for."""


def estimate(
    config: Config, dataset: Dataset, warm_ups: int, trainings: Sequence[Training], *, always: bool = False
) -> float | None:
    """Return seconds that warm-ups and trainings take; None where they are too short to be worth the question."""
    n = len(dataset.train)
    plans = {learner: plan_for(config, dataset, learner, config.seed) for learner in config.learners}
    warmed = plans[config.learners[0]]
    steps = warm_ups * warmed.warmup_epochs * n / warmed.recipe.batch
    steps += sum(
        plans[each.learner].recipe.epochs * each.ratio * n / plans[each.learner].recipe.batch for each in trainings
    )
    if steps < WORTH_PROBING and not always:
        return None
    pace = {learner: seconds_a_step(config, dataset, learner) for learner in config.learners}
    total = warm_ups * warmed.warmup_epochs * n / warmed.recipe.batch * pace[config.learners[0]]
    for each in trainings:
        recipe = plans[each.learner].recipe
        total += recipe.epochs * each.ratio * n / recipe.batch * pace[each.learner]
    cores = min(config.parallel, max(1, len(trainings)))
    return total / cores


def seconds_a_step(config: Config, dataset: Dataset, learner: str) -> float:
    """Time a few steps of a learner on a handful of examples, networks without weights worth keeping."""
    plan = plan_for(config, dataset, learner, config.seed)
    some = np.arange(min(len(dataset.train), plan.recipe.batch * (PROBES + 2)))
    shop = Workshop(dataset, some, plan, device=config.device, skip_broken=config.skip_broken)
    training = shop.training
    with shop.threads():
        training.stepper.set_rate(plan.recipe.rate(0))
        training.learner.begin_epoch(0, training.predict)
        one, *others = training.learner.passes(0)
        spent: list[float] = []
        begin = time.perf_counter()
        for streams, drawn in training.feed.steps(one, 0, 0):
            training.stepper(one, streams, drawn)
            if shop.device.type == "cuda":
                torch.cuda.synchronize(shop.device)
            spent.append(time.perf_counter() - begin)
            begin = time.perf_counter()
    usual = min(spent[1:]) if len(spent) > 1 else spent[0]
    share_of_augmenting = spent[0] / max(1, len(spent)) if len(spent) > 1 else 0.0
    return (usual + max(0.0, share_of_augmenting - usual)) * (1 + len(others))


def fit_budget(config: Config, budget: float, listener: Progress) -> Config:
    """Shrink a run until it fits: fewer repeats first, then shorter trainings; refuse what still does not."""
    from pathlib import Path  # noqa: PLC0415 - a place that is never written to

    from prune4rel.pipeline.cells import lay_out  # noqa: PLC0415 - needs this module's caller

    dataset = open_dataset(config)

    def needed(candidate: Config) -> float:
        steps = lay_out(candidate, dataset, Path())
        found = estimate(candidate, dataset, len(steps.warm_ups), steps.trainings, always=True)
        return found or 0.0

    wanted = needed(config)
    room = RESERVE * budget
    if wanted <= room:
        return config
    said = f"it would take about {format_seconds(wanted)}, and there are {format_seconds(budget)}"
    seeds = max(1, min(config.seeds, int(config.seeds * room / wanted)))
    if seeds < config.seeds:
        config = config.changed(seeds=seeds)
        said += f"; {seeds} repeat{'s' if seeds > 1 else ''} instead"
        wanted = needed(config)
    if wanted > room:
        epochs = plan_for(config, dataset, config.learners[0], config.seed).recipe.epochs
        fewer = int(epochs * room / wanted)
        if fewer < LEAST_EPOCHS * epochs or fewer < 1:
            raise InputError(
                f"the time budget is too short: {said}, and even the smallest useful run needs about "
                f"{format_seconds(LEAST_EPOCHS * wanted / RESERVE)}. Choose fewer "
                "methods, ratios or learners, or a longer budget"
            )
        config = config.changed(epochs=fewer)
        said += f"; {fewer} epochs instead of {epochs}"
    listener.say(said)
    return config
