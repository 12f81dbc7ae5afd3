"""From cells to runs of the pipeline: one folder a data set, label set and kind of warm-up, shared by all recipes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prune4rel.errors import InputError
from prune4rel.pipeline import Config
from prune4rel.recipes.cells import PaperCell
from prune4rel.recipes.setting import SOURCES, Signal, paper_method
from prune4rel.steps.data import open_dataset


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
        Files to read instead of data sets, by name and label set: see `recipes.smoke`.
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
        return self.source + self.signal.suffix

    @property
    def trainings(self) -> int:
        """How many trainings it comes to."""
        return 0 if self.config.select_only else len(self.cells) * self.config.seeds

    def cell_of(self) -> dict[tuple[str, str, float], PaperCell]:
        """Return its cells by label, learner and ratio: the names the pipeline knows."""
        return {(paper_method(cell.method, cell.dataset).label, cell.learner, cell.ratio): cell for cell in self.cells}


def make_jobs(cells: Iterable[PaperCell], settings: Settings, *, select_only: bool = False) -> tuple[Job, ...]:
    """Put cells that share data and a kind of warm-up together.

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
    by_method: dict[str, dict[str, None]] = {}
    for cell in cells:
        by_method.setdefault(cell.method, {})[cell.learner] = None
    for method, own in by_method.items():
        found = paper_method(method, cells[0].dataset)
        some = {"learners": list(own)} if list(own) != learners else {}
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
