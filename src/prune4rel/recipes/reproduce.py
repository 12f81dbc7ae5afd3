"""`reproduce`: run a recipe, or what is left of it, and compare with the paper."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from prune4rel.atomic import make_folder
from prune4rel.errors import InputError
from prune4rel.pipeline import collect
from prune4rel.pipeline import run as run_pipeline
from prune4rel.progress import PlainProgress, Progress
from prune4rel.recipes.budgets import BudgetTable, tables_of, tables_to_csv
from prune4rel.recipes.catalogue import Recipe, get, with_ours
from prune4rel.recipes.cells import BINS, SOURCES, PaperCell, Wanted, narrow
from prune4rel.recipes.compare import Comparison, compare
from prune4rel.recipes.harvest import (
    Finding,
    check_archive,
    harvest,
    keep,
    kept,
    relabelings,
    together,
)
from prune4rel.recipes.jobs import (
    Cost,
    Job,
    Settings,
    check_data,
    cost_of,
    in_words,
    make_jobs,
    rates_given,
    rates_measured,
    rates_probed,
    seconds_of,
)
from prune4rel.recipes.write import Bin, bins_of, bins_to_csv, to_csv, to_markdown
from prune4rel.report import Story, write_report
from prune4rel.storage import write_arrays, write_text

N, TEST, SIDE = 60, 20, 8
WRONG = 0.3
EPOCHS, STEPS = 2, 9
"""DivideMix warms up for at most half of its epochs, and methods need what it says then."""


def stand_in(cells: Iterable[PaperCell], folder: Path, settings: Settings, steps: int | None = None) -> Settings:
    """Write a stand-in for every data set of some cells, unless it is there, and return settings that use them.

    Parameters
    ----------
    cells
        What is to be run.
    folder
        Where the stand-ins go; must exist.
    settings
        What to change: data, network and epochs.
    steps
        How many everybody gets of the real thing, if so.
    """
    places = {}
    for dataset, noise in dict.fromkeys((cell.dataset, cell.noise) for cell in cells):
        for number, labels in enumerate(SOURCES[dataset].labels[noise]):
            path = folder / f"{dataset}{labels and '-'}{labels}.npz"
            if not path.exists():
                write_arrays(path, pictures(SOURCES[dataset].classes, number), force=True)
            places[dataset, labels] = path
    tiny = {"device": "cpu", "network": "mlp", "network_options": {"width": 8, "depth": 1}}
    long = {"epochs": EPOCHS} if steps is None else {"steps": STEPS}
    options = {**long, "warmup_epochs": 1, **settings.options, **tiny}
    return replace(settings, stand_in=places, options=options)


def pictures(classes: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return images of plain colours with noise, as the data set `arrays` takes them; some labels are wrong.

    >>> arrays = pictures(10)
    >>> arrays["images"].shape, len(arrays["test_labels"]), float((arrays["labels"] != arrays["clean_labels"]).mean())
    ((60, 8, 8, 3), 20, 0.3)
    """
    rng = np.random.default_rng(seed)
    colours = rng.integers(40, 216, size=(classes, 1, 1, 3))
    clean = np.arange(N + TEST) % min(classes, N)
    images = np.clip(colours[clean] + rng.normal(0, 20, (N + TEST, SIDE, SIDE, 3)), 0, 255).astype(np.uint8)
    given = clean[:N].copy()
    moved = rng.permutation(N)[: round(WRONG * N)]
    given[moved] = (given[moved] + 1) % classes
    return {
        "images": images[:N],
        "labels": given,
        "clean_labels": clean[:N],
        "test_images": images[N:],
        "test_labels": clean[N:],
        "class_names": np.array([f"class{number}" for number in range(classes)]),
    }


def stories_of(jobs: Iterable[Job], out: Path, progress: Progress | None = None) -> list[Story]:
    """Return the stories of jobs that have been run; what lies in several folders is told as one.

    Parameters
    ----------
    jobs
        Whose runs are finished.
    out
        The folder of their folders.
    progress
        Told how drawing comes along.
    """
    found: dict[tuple[str, str], Story] = {}
    for job in jobs:
        story = collect(out / job.folder, progress)
        before = found.get((job.dataset, job.labels))
        if before is not None:
            story = replace(before, cells=(*before.cells, *story.cells), notes=(*before.notes, *story.notes))
        found[job.dataset, job.labels] = story
    return list(found.values())


SMOKE = "smoke"
SMOKE_IS_NOT_KEPT = "smoke means nothing and is not archived; leave --archive or --smoke out"
WORTH_PROBING = 1e6
"""Images below which nobody wants to know how long it takes."""


@dataclass(frozen=True)
class Plan:
    """A recipe that is ready to be run: which cells, as which runs of the pipeline."""

    recipe: Recipe
    cells: tuple[PaperCell, ...]
    jobs: tuple[Job, ...]
    smoke: bool = False

    @property
    def cost(self) -> Cost:
        """What it takes from scratch."""
        return cost_of(self.jobs)


@dataclass(frozen=True)
class Reproduction:
    """What came of a recipe: blocks of rows; bins by what they are of (how many trainings, and the bins); or budgets.

    Those are tables of what everybody did with the same number of steps.
    """

    recipe: Recipe
    blocks: tuple[Comparison, ...]
    bins: dict[str, tuple[int, list[Bin]]]
    budgets: tuple[BudgetTable, ...]
    folder: Path
    smoke: bool = False


def make_plan(
    name: str, wanted: Wanted | None = None, settings: Settings | None = None, *, ours: bool | None = None
) -> Plan:
    """Work out which cells of a recipe to run, and how.

    Parameters
    ----------
    name
        One of `recipes.catalogue.RECIPES`.
    wanted
        Which cells; all unless told.
    settings
        How to run them.
    ours
        Whether our own presets are run beside the paper's methods; as the recipe says unless told.

    Examples
    --------
    >>> plan = make_plan("table1", Wanted(noise=("worst",), ratio=(0.2,)), ours=False)
    >>> len(plan.cells), [job.signal.suffix for job in plan.jobs]
    (20, ['', '-plain', '-ten-networks', '-self-supervised'])
    """
    recipe = get(name)
    cells = narrow(with_ours(recipe, ours=ours), wanted or Wanted())
    jobs = make_jobs(cells, settings or Settings(), select_only=recipe.select_only, steps=recipe.steps)
    return Plan(recipe, cells, jobs)


def make_smoke_plan(
    name: str,
    out: Path,
    wanted: Wanted | None = None,
    settings: Settings | None = None,
    *,
    ours: bool | None = None,
) -> Plan:
    """Work out the same on tiny stand-ins, which are written into ``OUT/smoke/data``."""
    recipe = get(name)
    cells = narrow(with_ours(recipe, ours=ours), wanted or Wanted())
    data = out / SMOKE / "data"
    _make_folder(data)
    tiny = stand_in(cells, data, settings or Settings(seeds=1), recipe.steps)
    jobs = make_jobs(cells, tiny, select_only=recipe.select_only, steps=recipe.steps)
    return Plan(recipe, cells, jobs, smoke=True)


def estimate(plan: Plan, out: Path | None, images_per_second: float | None = None, *, probe: bool = False) -> str:
    """Say what a plan takes from scratch: by a given rate, by what was measured in the folder, or by trying.

    Parameters
    ----------
    plan
        What is to be run.
    out
        Where it will be run; rates of trainings that are finished there are used.
    images_per_second
        Of all trainings together.
    probe
        Whether to time a few steps where nothing is known. The data sets have to be there.
    """
    cost = plan.cost
    if images_per_second is not None:
        return in_words(cost, seconds_of(cost, rates_given(plan.jobs, images_per_second)))
    rates = {} if out is None else rates_measured(plan.jobs, out)
    if probe and cost.all_images >= WORTH_PROBING:
        rates = rates_probed(plan.jobs, rates)
    return in_words(cost, seconds_of(cost, rates, plan.jobs[0].config.parallel))


def reproduce(
    plan: Plan,
    out: str | Path,
    *,
    run: bool = True,
    archive: str | Path | None = None,
    images_per_second: float | None = None,
    progress: bool | Progress = False,
) -> Reproduction:
    """Run what is left of a plan, compare, and write ``OUT/NAME``: comparison.md, comparison.csv and report.html.

    Killed and called again it goes on; recipes with the same folder share all they have in common.

    Parameters
    ----------
    plan
        From `make_plan`.
    out
        Folder of all recipes, made where it is not there.
    run
        Whether to run anything, or only compare what is finished; then no report is written.
    archive
        Folder that gets a small file of everything as soon as it is finished; what it holds already is counted in,
        wherever it was run.
    images_per_second
        See `estimate`.
    progress
        True for lines on standard error, or a `Progress` of your own.
    """
    listener = PlainProgress() if progress is True else progress or Progress()
    if plan.smoke and archive is not None:
        raise InputError(SMOKE_IS_NOT_KEPT, "archive")
    if archive is not None and not run:
        check_archive(Path(archive))
    base = Path(out)
    home = base / SMOKE if plan.smoke else base
    check_data([job for job in plan.jobs if run or (home / job.folder).is_dir()])
    folder = home / plan.recipe.name
    _make_folder(folder)
    if run:
        if not plan.smoke:
            said = estimate(plan, home, images_per_second, probe=True)
            listener.say(f"{plan.recipe.name}: {said}, less what is done")
        for number, job in enumerate(plan.jobs, 1):
            listener.say(f"{plan.recipe.name}, {number} of {len(plan.jobs)}: {job.folder}")
            after = (lambda _: None) if archive is None else partial(keep, [job], home, Path(archive))
            run_pipeline(job.config, home / job.folder, progress=listener, after_step=after)
    result = _result(plan, home, folder, None if archive is None else Path(archive))
    _write(plan, result)
    if run:
        write_report(stories_of(plan.jobs, home, listener), folder / "report.html", force=True)
    return result


def _result(plan: Plan, home: Path, folder: Path, archive: Path | None) -> Reproduction:
    if BINS in plan.recipe.metrics:
        if archive is not None:
            keep(plan.jobs, home, archive)
        return Reproduction(plan.recipe, (), _bins(plan, home), (), folder, plan.smoke)
    found = harvest(plan.jobs, home) if archive is None else _with_kept(plan, home, archive)
    if plan.recipe.steps is not None:
        return Reproduction(plan.recipe, (), {}, tables_of(plan.cells, found), folder, plan.smoke)
    blocks = compare(plan.recipe, plan.cells, found, smoke=plan.smoke)
    return Reproduction(plan.recipe, tuple(blocks), {}, (), folder, plan.smoke)


def _with_kept(plan: Plan, home: Path, archive: Path) -> list[Finding]:
    """Keep what is finished, and return it with what the archive holds of as many steps."""
    here = keep(plan.jobs, home, archive)
    if plan.recipe.steps is None:
        return together(here, kept(archive))
    return together(here, [one for job in plan.jobs for one in kept(archive, job.kept_in)])


def _bins(plan: Plan, home: Path) -> dict[str, tuple[int, list[Bin]]]:
    """Bins of all trainings with the same kind of noise together."""
    found = relabelings(plan.jobs, home)
    bins: dict[str, tuple[int, list[Bin]]] = {}
    for dataset, noise in dict.fromkeys((cell.dataset, cell.noise) for cell in plan.cells):
        some = [look for look in found if (look.dataset, look.noise) == (dataset, noise)]
        confidence = np.concatenate([np.empty(0), *(look.confidence for look in some)])
        right = np.concatenate([np.empty(0, dtype=bool), *(look.right for look in some)])
        bins[f"{SOURCES[dataset].title} {noise}"] = (len(some), bins_of(confidence, right))
    return bins


def _write(plan: Plan, result: Reproduction) -> None:
    recipe, smoke = plan.recipe, plan.smoke
    text = bins_to_csv(recipe, result.bins, smoke=smoke) if result.bins else to_csv(recipe, result.blocks, smoke=smoke)
    if result.budgets:
        text = tables_to_csv(result.budgets, smoke=smoke)
    write_text(result.folder / "comparison.csv", text, force=True)
    told = to_markdown(recipe, result.blocks, result.bins, result.budgets, smoke=smoke)
    write_text(result.folder / "comparison.md", told, force=True)


def _make_folder(path: Path) -> None:
    try:
        make_folder(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be made ({error.strerror})") from None
