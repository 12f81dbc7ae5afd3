"""What a recipe takes: warm-ups, selections, trainings, and the time of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prune4rel.errors import InputError
from prune4rel.machine import format_seconds
from prune4rel.pipeline.estimate import seconds_a_step
from prune4rel.reading import read_json
from prune4rel.recipes.jobs import Job
from prune4rel.recipes.setting import SOURCES
from prune4rel.steps.data import open_dataset
from prune4rel.training.hyperparameters import PRESETS
from prune4rel.training.result import RESULT, Result
from prune4rel.training.train import CONFIG

Rates = Mapping[tuple[str, str], float]
SELF_SUPERVISED_SHARE = 3
"""A self-supervised training has the epochs of a training, divided by this."""


@dataclass(frozen=True)
class Cost:
    """How much there is to do.

    `images` says by data set and learner how many images are looked at, each as often as it is: epochs times examples.
    """

    warm_ups: int
    selections: int
    trainings: int
    images: Mapping[tuple[str, str], float]

    @property
    def all_images(self) -> float:
        """Images of all data sets and learners together."""
        return sum(self.images.values())

    def __str__(self) -> str:
        return (
            f"{self.warm_ups:,} warm-ups, {self.selections:,} selections, {self.trainings:,} trainings, "
            f"{self.all_images / 1e6:,.1f} million images"
        )


def cost_of(jobs: Iterable[Job]) -> Cost:
    """Count what some jobs amount to from scratch, by the sizes and presets of the paper's data sets.

    >>> from prune4rel.recipes.catalogue import get
    >>> from prune4rel.recipes.jobs import Settings, make_jobs
    >>> print(cost_of(make_jobs(get("fig4").cells, Settings())))
    3 warm-ups, 36 selections, 36 trainings, 274.5 million images
    """
    warm_ups = selections = trainings = 0
    images: dict[tuple[str, str], float] = defaultdict(float)
    for job in jobs:
        config, n, preset = job.config, SOURCES[job.dataset].n, PRESETS[job.dataset]
        given = {} if config.epochs is None else {"epochs": config.epochs}
        epochs = preset.hyperparameters.changed(**{**config.training, **given}).epochs
        warm_epochs = (config.warmup_epochs or preset.warmup_epochs) * config.repeats
        if job.signal.self_supervised:
            warm_epochs += max(1, epochs // SELF_SUPERVISED_SHARE)
        for learner in (config.warmup_learner,) if config.warmup_learner else config.learners:
            warm_ups += config.seeds
            images[job.dataset, learner] += config.seeds * warm_epochs * n
        warmed = {(cell.method, cell.ratio, config.warmup_learner or cell.learner) for cell in job.cells}
        selections += config.seeds * len(warmed)
        trainings += job.trainings
        for cell in () if config.select_only else job.cells:
            images[job.dataset, cell.learner] += config.seeds * epochs * cell.ratio * n
    return Cost(warm_ups, selections, trainings, dict(images))


def seconds_of(cost: Cost, rates: Rates, parallel: int = 1) -> float | None:
    """Return the seconds of all images at rates by data set and learner; None where a rate is not known."""
    if any(key not in rates for key in cost.images):
        return None
    return sum(count / rates[key] for key, count in cost.images.items()) / parallel


def rates_given(jobs: Iterable[Job], images_per_second: float) -> dict[tuple[str, str], float]:
    """Return one rate for everything."""
    if not 0 < images_per_second < float("inf"):
        raise InputError(f"--images-per-second must be a number above 0, not {images_per_second:g}")
    return dict.fromkeys(_learners(jobs), images_per_second)


def rates_measured(jobs: Iterable[Job], out: Path) -> dict[tuple[str, str], float]:
    """Return the rates of the trainings that are finished in a folder; a training at a time."""
    images: dict[tuple[str, str], float] = defaultdict(float)
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    for job in jobs:
        for path in (out / job.folder / "trainings").glob(f"*/{RESULT}"):
            try:
                learner = str(read_json(path.parent / CONFIG)["learner"])
                result = Result.load(path.parent)
            except (InputError, LookupError, TypeError):
                continue  # somebody is writing there
            images[job.dataset, learner] += result.size * result.epochs
            seconds[job.dataset, learner] += result.seconds.get("training", 0.0)
    return {key: images[key] / spent for key, spent in seconds.items() if spent > 0}


def rates_probed(jobs: Iterable[Job], known: Rates) -> dict[tuple[str, str], float]:
    """Time a few steps of every learner whose rate is not known."""
    found = dict(known)
    for job in jobs:
        for dataset, learner in _learners([job]):
            if (dataset, learner) not in found:
                read = open_dataset(job.config)
                batch = job.config.plan(read, learner).hyperparameters.batch
                found[dataset, learner] = batch / seconds_a_step(job.config, read, learner)
    return found


def _learners(jobs: Iterable[Job]) -> list[tuple[str, str]]:
    """Return every data set with every learner it is warmed up or trained with."""
    return list(
        dict.fromkeys(
            (job.dataset, learner)
            for job in jobs
            for learner in (*filter(None, [job.config.warmup_learner]), *job.config.learners)
        )
    )


def in_words(cost: Cost, seconds: float | None) -> str:
    """Say what a recipe takes."""
    return f"{cost}, about {format_seconds(seconds)}" if seconds is not None else str(cost)
