"""What has been run so far, read from the folders of the pipeline."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from prune4rel.data import Dataset
from prune4rel.methods.prune4rel import PRESETS
from prune4rel.pipeline.collect import lent_confidence
from prune4rel.recipes.cells import ACCURACY, CORRECTED, NOISE, SECONDS, PaperCell
from prune4rel.recipes.jobs import Job
from prune4rel.recipes.setting import SOURCES
from prune4rel.selection import Selection
from prune4rel.signals import Signals
from prune4rel.steps import KINDS, SelectStep, Step, Steps, TrainStep
from prune4rel.steps.data import open_dataset
from prune4rel.storage import read_columns
from prune4rel.training.result import CORRECTED as LABELS
from prune4rel.training.result import Result

Made = TypeVar("Made", SelectStep, TrainStep)


@dataclass(frozen=True)
class Finding:
    """The numbers of one finished repeat of a cell, on one of its label sets."""

    cell: PaperCell
    labels: str
    seed: int
    numbers: dict[str, float]


def harvest(jobs: Iterable[Job], out: Path) -> list[Finding]:
    """Return what is finished; what is not is left out."""
    return [finding for job in jobs for finding, _ in finished(job, out / job.folder)]


def finished(job: Job, folder: Path, only: Step | None = None) -> Iterator[tuple[Finding, SelectStep | TrainStep]]:
    """Give what is finished of a job, each with what it comes from; of one step if told so."""
    if not folder.is_dir():
        return
    dataset = open_dataset(job.config)
    steps = Steps(job.config, dataset, folder, KINDS)
    cells = job.cell_of()
    if job.config.select_only:
        for choice in _some(steps.of(SelectStep), only):
            for learner in learners_of(job, choice) if choice.done else ():
                cell = cells.get((choice.spec.label, learner, choice.ratio))
                if cell is not None:
                    yield Finding(cell, job.labels, choice.seed, _of_choice(choice, dataset)), choice
        return
    for training in _some(steps.of(TrainStep), only):
        if training.choice is not None and training.done:
            cell = cells[training.label, training.learner, training.ratio]
            yield Finding(cell, job.labels, training.seed, _of_training(training)), training


def _some(made: list[Made], only: Step | None) -> list[Made]:
    return [one for one in made if only is None or one.folder == only.folder]


def learners_of(job: Job, choice: SelectStep) -> tuple[str, ...]:
    """Return the learners a selection is for: all that share its warm-up."""
    own = (choice.provider.learner,) if job.config.warmup_learner is None else job.config.learners
    return tuple(learner for learner in own if learner in (choice.spec.learners or own))


def _of_choice(choice: SelectStep, dataset: Dataset) -> dict[str, float]:
    train = dataset.train
    seconds = float((choice.record() or {}).get("picking_seconds", np.nan))
    found = {SECONDS: seconds}
    if train.clean_labels is not None:
        picks = Selection.load(choice.path).indices
        found[NOISE] = 100 * float((train.labels[picks] != train.clean_labels[picks]).mean())
    return found


def _of_training(training: TrainStep) -> dict[str, float]:
    result = Result.load(training.folder)
    shares = {
        ACCURACY: result.test_accuracy,
        NOISE: result.subset_noise,
        CORRECTED: result.self_correction,
    }
    return {name: 100 * value for name, value in shares.items() if value is not None and np.isfinite(value)}


@dataclass(frozen=True)
class Relabeling:
    """How sure the picks around each example are, and whether its label ended up right; one finished training."""

    dataset: str
    noise: str
    confidence: NDArray[np.float64]
    right: NDArray[np.bool_]


def relabelings(jobs: Iterable[Job], out: Path) -> list[Relabeling]:
    """Return neighbourhood confidence and re-labeling of every example, for every finished training."""
    return [look for job in jobs for look in _relabelings(job, out / job.folder)]


def _relabelings(job: Job, folder: Path) -> Iterator[Relabeling]:
    if not folder.is_dir():
        return
    dataset = open_dataset(job.config)
    clean = dataset.train.clean_labels
    if clean is None:
        return
    for training in Steps(job.config, dataset, folder, KINDS).of(TrainStep):
        if training.choice is None or not training.done:
            continue
        near = {**PRESETS["official"], "tau": SOURCES[job.dataset].tau}
        chosen = replace(Selection.load(training.choice.path), options=near)
        said = read_columns(training.folder / LABELS, ["corrected_label"])[0]["corrected_label"]
        signals = Signals.load(training.choice.provider.signals)
        yield Relabeling(job.dataset, job.noise, lent_confidence(signals, chosen), said == clean)
