"""What a run came to, as a table: one line a method, ratio and learner."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from prune4rel.report.story import Cell, Story
from prune4rel.storage import write_whole

RESULTS = "results.csv"
COLUMNS = (
    "method",
    "learner",
    "ratio",
    "seed",
    "size",
    "test_accuracy",
    "best_accuracy",
    "relabel_accuracy",
    "self_correct",
    "subset_noise",
    "labels_changed",
    "objective",
    "warmup_seconds",
    "selection_seconds",
    "training_seconds",
)


@dataclass(frozen=True)
class Line:
    """Means over the seeds of one method at one ratio with one learner."""

    label: str
    learner: str
    ratio: float
    seeds: int
    accuracy: float | None
    spread: float | None
    relabel_accuracy: float | None
    subset_noise: float | None
    labels_changed: float | None
    warmup: float
    selection: float
    training: float

    @property
    def seconds(self) -> float:
        """Everything together."""
        return self.warmup + self.selection + self.training


def lines_of(cells: Sequence[Cell]) -> list[Line]:
    """Sum cells up, in the order they come.

    >>> import numpy as np
    >>> cell = {"method": "uniform", "label": "uniform", "learner": "sop", "ratio": 0.5, "size": 1}
    >>> two = [Cell(**cell, indices=np.array([0]), seed=seed, test_accuracy=0.8 + seed / 10) for seed in range(2)]
    >>> [(round(line.accuracy, 2), round(line.spread, 4)) for line in lines_of(two)]
    [(0.85, 0.0707)]
    """
    groups: dict[tuple[str, str, float], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.learner, cell.label, cell.ratio), []).append(cell)
    return [_line(same) for same in groups.values()]


def _line(same: list[Cell]) -> Line:
    first = same[0]
    accuracies = _known(same, "test_accuracy")
    return Line(
        label=first.label,
        learner=first.learner,
        ratio=first.ratio,
        seeds=len(same),
        accuracy=fmean(accuracies) if accuracies else None,
        spread=stdev(accuracies) if len(accuracies) > 1 else None,
        relabel_accuracy=_mean(same, "relabel_accuracy"),
        subset_noise=_mean(same, "subset_noise"),
        labels_changed=_mean(same, "labels_changed"),
        warmup=fmean(cell.seconds.get("warmup", 0.0) for cell in same),
        selection=fmean(cell.seconds.get("selection", 0.0) for cell in same),
        training=fmean(cell.seconds.get("training", 0.0) for cell in same),
    )


def _known(same: list[Cell], name: str) -> list[float]:
    return [value for cell in same if (value := cell.known(name)) is not None]


def _mean(same: list[Cell], name: str) -> float | None:
    values = _known(same, name)
    return fmean(values) if values else None


def seconds_of_everything(story: Story, learner: str) -> tuple[float, bool] | None:
    """Return the seconds a training on everything takes, and whether it was measured or scaled up."""
    full = story.full_training
    if full is not None and full.learner == learner:
        return full.seconds.get("training", 0.0), True
    same = [cell for cell in story.cells if cell.learner == learner and cell.seconds.get("training")]
    if not same:
        return None
    return fmean(cell.seconds["training"] * story.n / cell.size for cell in same), False


def write_results(story: Story, path: Path) -> None:
    """Write one line a training as CSV."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    everything = () if story.full_training is None else (story.full_training,)
    for cell in (*story.cells, *everything):
        writer.writerow(
            [
                cell.label,
                cell.learner,
                cell.ratio,
                cell.seed,
                cell.size,
                *(getattr(cell, name) for name in COLUMNS[5:12]),
                *(cell.seconds.get(name, "") for name in ("warmup", "selection", "training")),
            ]
        )
    write_whole(path, lambda part: part.write_text(text.getvalue(), encoding="utf-8", newline=""), force=True)
