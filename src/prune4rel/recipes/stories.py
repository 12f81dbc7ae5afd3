"""What the report tells of a recipe: one story a label set, whatever folders it was run in."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from prune4rel.pipeline import collect
from prune4rel.progress import Progress
from prune4rel.recipes.harvest import learners_of
from prune4rel.recipes.jobs import Job
from prune4rel.report import Cell, Story
from prune4rel.selection import Selection
from prune4rel.steps import KINDS, SelectStep, Steps
from prune4rel.steps.data import open_dataset


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
        story = _selected(job, out / job.folder) if job.config.select_only else collect(out / job.folder, progress)
        before = found.get((job.dataset, job.labels))
        if before is not None:
            story = replace(before, cells=(*before.cells, *story.cells), notes=(*before.notes, *story.notes))
        found[job.dataset, job.labels] = story
    return list(found.values())


def _selected(job: Job, folder: Path) -> Story:
    """Tell of selections nothing was trained on."""
    dataset = open_dataset(job.config)
    train = dataset.train
    cells = [
        _cell(choice, learner, dataset.n_classes, train.labels, train.clean_labels)
        for choice in Steps(job.config, dataset, folder, KINDS).of(SelectStep)
        for learner in learners_of(job, choice)
    ]
    return Story(
        title=job.config.title or job.folder,
        dataset=dataset.name,
        n=len(train),
        class_names=dataset.class_names,
        labels=train.labels,
        clean_labels=train.clean_labels,
        class_counts=tuple(np.bincount(train.labels, minlength=dataset.n_classes).tolist()),
        cells=tuple(cells),
        ids=train.ids,
        configuration=job.config.as_yaml(),
    )


def _cell(choice: SelectStep, learner: str, n_classes: int, labels: "np.ndarray", clean: "np.ndarray | None") -> Cell:
    chosen = Selection.load(choice.path)
    picks = chosen.indices
    record = choice.record() or {}
    return Cell(
        method=choice.spec.method,
        label=choice.spec.label,
        learner=learner,
        ratio=choice.ratio,
        seed=choice.seed,
        size=len(picks),
        indices=picks,
        class_counts=tuple(np.bincount(labels[picks], minlength=n_classes).tolist()),
        subset_noise=None if clean is None else float((labels[picks] != clean[picks]).mean()),
        gains=chosen.gains,
        objective=chosen.objective if np.isfinite(chosen.objective) else None,
        seconds={"selection": float(record.get("picking_seconds", 0.0))},
    )
