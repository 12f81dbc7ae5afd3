"""What a run came to, as a table: one line a method, ratio and learner."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from prune4rel.report.story import Cell
from prune4rel.steps.select import EVERYTHING
from prune4rel.storage import defuse, write_whole

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
TIMES = ("warmup", "selection", "training")


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


def seconds_of_everything(cells: Sequence[Cell], learner: str, n: int) -> tuple[float, bool] | None:
    """Return the seconds a training on all n examples takes, and whether that was measured or is scaled up.

    >>> import numpy as np
    >>> cell = {"method": "uniform", "label": "uniform", "learner": "sop", "ratio": 0.5, "seed": 0, "size": 50}
    >>> seconds_of_everything([Cell(**cell, indices=np.arange(50), seconds={"training": 3.0})], "sop", 100)
    (6.0, False)
    """
    same = [cell for cell in cells if cell.learner == learner and cell.seconds.get("training")]
    whole = [cell.seconds["training"] for cell in same if cell.label == EVERYTHING]
    if whole:
        return fmean(whole), True
    return (fmean(cell.seconds["training"] * n / cell.size for cell in same), False) if same else None


def write_results(cells: Sequence[Cell], path: Path) -> None:
    """Write one line a training as CSV; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for cell in cells:
        known = [cell.label, cell.learner, cell.ratio, cell.seed, cell.size]
        known += [getattr(cell, name) for name in COLUMNS[len(known) : -len(TIMES)]]
        writer.writerow(map(defuse, [*known, *(cell.seconds.get(name) for name in TIMES)]))
    write_whole(path, lambda part: part.write_text(text.getvalue(), encoding="utf-8", newline=""), force=True)
