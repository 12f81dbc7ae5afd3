"""From cells to runs of the pipeline, one folder a data set, label set and kind of warm-up; and what they take."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prune4rel.errors import InputError
from prune4rel.machine import format_seconds
from prune4rel.pipeline import Config
from prune4rel.pipeline.estimate import seconds_a_step
from prune4rel.reading import read_json
from prune4rel.recipes.cells import SOURCES, PaperCell, Signal, paper_method
from prune4rel.steps.data import open_dataset
from prune4rel.steps.select import EVERYTHING
from prune4rel.training.hyperparameters import PRESETS
from prune4rel.training.result import RESULT, Result
from prune4rel.training.train import CONFIG

BUDGETS = "budgets"
"""Folder of an archive that holds what had a given number of steps: no other table counts it in."""


@dataclass(frozen=True)
class Settings:
    """How to run, whatever the recipe.

    Parameters
    ----------
    data
        Folder of the data sets, or the folder that holds a folder of each name.
    seeds
        How many repeats.
    options
        Other options of a run that no recipe decides, as `Config` takes them: `seed`, `device`, `epochs`, ...
    stand_in
        Files to read instead of data sets, by name and label set: see `stand_in`.
    """

    data: Path | None = None
    seeds: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    stand_in: Mapping[tuple[str, str], Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One run of the pipeline.

    Parameters
    ----------
    dataset, noise, labels
        Which data set, which kind of noise, and which of its label sets.
    signal
        Which kind of warm-up.
    cells
        The cells it runs; their noise may have more label sets, which other jobs run.
    config
        For `pipeline.run`.
    """

    dataset: str
    noise: str
    labels: str
    signal: Signal
    cells: tuple[PaperCell, ...]
    config: Config

    @property
    def source(self) -> str:
        """Name of its data set and labels."""
        return f"{self.dataset}{self.labels and '-'}{self.labels}"

    @property
    def folder(self) -> str:
        """Name of its folder."""
        steps = "" if self.config.steps is None else f"-{self.config.steps}"
        return self.source + self.signal.suffix + steps

    @property
    def kept_in(self) -> str:
        """Name of its folder in an archive."""
        return self.source if self.config.steps is None else f"{BUDGETS}/{self.source}-{self.config.steps}"

    @property
    def trainings(self) -> int:
        """How many trainings it comes to."""
        return 0 if self.config.select_only else len(self.cells) * self.config.seeds

    def cell_of(self) -> dict[tuple[str, str, float], PaperCell]:
        """Return its cells by label, learner and ratio: the names the pipeline knows."""
        return {(paper_method(cell.method, cell.dataset).label, cell.learner, cell.ratio): cell for cell in self.cells}


def make_jobs(
    cells: Iterable[PaperCell], settings: Settings, *, select_only: bool = False, steps: int | None = None
) -> tuple[Job, ...]:
    """Put cells that share data and a kind of warm-up together; `steps` is how many everybody gets unless told.

    >>> from prune4rel.recipes.catalogue import get
    >>> jobs = make_jobs(get("table5").cells, Settings(data=Path("data")))
    >>> [(job.folder, job.trainings) for job in jobs[:2]]
    [('cifar10n-random1-plain', 3), ('cifar10n-random1', 6)]
    """
    groups: dict[tuple[str, str, str, Signal], list[PaperCell]] = {}
    for cell in cells:
        signal = paper_method(cell.method, cell.dataset).signal
        for labels in SOURCES[cell.dataset].labels[cell.noise]:
            groups.setdefault((cell.dataset, cell.noise, labels, signal), []).append(cell)
    read_together = list(dict.fromkeys((dataset, labels) for dataset, _, labels, _ in groups))
    if steps is not None:
        options = {"steps": steps, "equal_steps": True, "everything": False, **settings.options}
        settings = replace(settings, options=options)
    return tuple(
        Job(*key, tuple(group), _config(*key, group, settings, select_only=select_only))
        for key, group in sorted(groups.items(), key=lambda item: read_together.index((item[0][0], item[0][2])))
    )


def _config(
    dataset: str,
    noise: str,
    labels: str,
    signal: Signal,
    cells: list[PaperCell],
    settings: Settings,
    *,
    select_only: bool,
) -> Config:
    learners = list(dict.fromkeys(cell.learner for cell in cells))
    place = settings.stand_in.get((dataset, labels))
    return Config(
        dataset=dataset if place is None else "arrays",
        data=str(place or _place(dataset, settings.data) or "") or None,
        options=dict(SOURCES[dataset].labels[noise][labels]) if place is None else {},
        methods=tuple(_methods(cells, learners)),
        ratios=tuple(dict.fromkeys(cell.ratio for cell in cells)),
        learners=tuple(learners),
        seeds=settings.seeds,
        balanced=False,
        warmup_learner=signal.learner,
        repeats=signal.repeats,
        extras=signal.extras,
        view=signal.view,
        select_only=select_only,
        title=" ".join(filter(None, ["SMOKE" if place else "", SOURCES[dataset].title, labels])),
        **settings.options,
    )


def _methods(cells: list[PaperCell], learners: list[str]) -> Iterable[dict[str, Any]]:
    """One entry a method, with its learners where it is not run with all of them."""
    by_method: dict[str, list[PaperCell]] = {}
    for cell in cells:
        by_method.setdefault(cell.method, []).append(cell)
    ratios = list(dict.fromkeys(cell.ratio for cell in cells))
    for method, same in by_method.items():
        found = paper_method(method, same[0].dataset)
        own, at = (list(dict.fromkeys(getattr(cell, name) for cell in same)) for name in ("learner", "ratio"))
        some = {"learners": own} if own != learners else {}
        if method == EVERYTHING:
            yield {"method": method, **some}
            continue
        some |= {"ratios": at} if at != ratios else {}
        yield {
            "method": found.method,
            "options": dict(found.options),
            "balanced": found.balanced,
            "label": found.label,
            **some,
        }


def _place(dataset: str, data: Path | None) -> Path | None:
    if data is None:
        return None
    whole = data.expanduser().absolute()
    return whole / dataset if (whole / dataset).is_dir() else whole


def check_data(jobs: Iterable[Job]) -> None:
    """Read every data set once, so that what is missing is told before hours of work."""
    wanted = {(job.dataset, job.labels): job for job in jobs}
    names = list(dict.fromkeys(job.dataset for job in wanted.values()))
    if any(job.config.data is None for job in wanted.values()):
        raise InputError(
            f"say with --data where {' and '.join(names)} can be found; what is looked for there is shown by "
            + " and ".join(f"`prune4rel datasets {name}`" for name in names)
        )
    for job in wanted.values():
        try:
            open_dataset(job.config)
        except InputError as error:
            raise InputError(
                f"{error} (`prune4rel datasets {job.dataset}` shows what is looked for in {job.config.data})"
            ) from None


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
        if config.steps is not None:
            trainings += job.trainings
            learnt = {cell for cell in job.cells if cell.method not in ("uniform", EVERYTHING)}
            warm_ups += config.seeds * len({cell.learner for cell in learnt})
            selections += config.seeds * sum(cell.method != EVERYTHING for cell in job.cells)
            for cell in job.cells:  # a warm-up that several share counts as often as it is paid for
                images[job.dataset, cell.learner] += config.seeds * config.steps * preset.hyperparameters.batch
            continue
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
