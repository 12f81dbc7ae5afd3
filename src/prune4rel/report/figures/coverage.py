"""The coverage objective and the gain of each pick, against the number of picks."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from prune4rel.report.charts import Lines, Point, Series, log_axis, number_axis
from prune4rel.report.figure import Figure, Looks, Missing, Panel, Table, Value
from prune4rel.report.palette import FAVOURITE
from prune4rel.report.story import Array, Cell, Story
from prune4rel.report.words import count, isolate, short

WINDOWS = 80
AGREES = 0.01


def coverage(story: Story, looks: Looks) -> Figure | Missing:
    """Draw how the objective grows and the gain falls as examples are picked."""
    cells = _longest_each(story.cells)
    if not cells:
        return Missing("No method of this run keeps the coverage objective.")
    growth: list[Series] = []
    worth: list[Series] = []
    rows: list[tuple[Value, ...]] = []
    for cell in cells:
        gains = np.asarray(cell.gains, dtype=np.float64)
        adds_up = _adds_up(gains, cell.objective)
        steps = list(_windows(gains))
        for picks, total, gain in steps:
            rows.append((cell.label, cell.ratio, cell.seed, picks, total if adds_up else None, gain))
        if adds_up:
            growth.append(_series(cell, looks, [(picks, total) for picks, total, _ in steps], "covers"))
        worth.append(_series(cell, looks, [(picks, gain) for picks, _, gain in steps if gain > 0], "gains"))
    panels = _panels(growth, [series for series in worth if series.points])
    if not panels:
        return Missing("No pick of this run gained anything.")
    return Figure(
        caption="How much of the training set the picks speak for, and what each further pick is worth: "
        "when the gain has fallen by orders of magnitude, more examples would add little. "
        f"Gains are means over windows of picks, at most {WINDOWS} for each method.",
        panels=panels,
        table=Table(("method", "ratio", "seed", "picks", "objective", "mean_gain"), tuple(rows)),
    )


def _longest_each(cells: Sequence[Cell]) -> list[Cell]:
    """Greedy picks for a small subset begin those for a large one, so the largest shows them all."""
    best: dict[str, Cell] = {}
    for cell in cells:
        if cell.method != FAVOURITE or cell.gains is None or cell.known("objective") is None or not len(cell.gains):
            continue
        if not np.isfinite(np.asarray(cell.gains, dtype=np.float64)).all():
            continue
        if cell.label not in best or cell.size > best[cell.label].size:
            best[cell.label] = cell
    return list(best.values())


def _adds_up(gains: Array, objective: float | None) -> bool:
    """Tell whether gains are those of the objective; the paper's score is only a part of it."""
    return objective is not None and math.isclose(float(gains.sum()), objective, rel_tol=AGREES)


def _windows(gains: Array) -> list[tuple[int, float, float]]:
    """Return picks so far, sum so far and mean gain at the end of each window."""
    ends = np.unique(np.linspace(0, len(gains), min(WINDOWS, len(gains)) + 1).round().astype(int))
    totals = np.concatenate([[0.0], np.cumsum(gains)])
    return [(int(stop), float(totals[stop]), float(gains[start:stop].mean())) for start, stop in pairwise(ends)]


def _series(cell: Cell, looks: Looks, steps: Sequence[tuple[int, float]], verb: str) -> Series:
    points = tuple(
        Point(picks, value, tip=f"{isolate(cell.label)}, pick {count(picks)}: {verb} {short(float(f'{value:.3g}'))}")
        for picks, value in steps
    )
    return Series(cell.label, looks[cell.label], points, markers=False)


def _panels(growth: Sequence[Series], worth: Sequence[Series]) -> tuple[Panel, ...]:
    panels = []
    for title, series, label, axis in (
        ("Coverage objective", growth, "objective", partial(number_axis, zero=True)),
        ("Gain of a pick", worth, "gain, log scale", log_axis),
    ):
        if series:
            picks = number_axis("picks", [point.x for one in series for point in one.points], zero=True)
            values = axis(label, [point.y for one in series for point in one.points])
            panels.append(Panel(title, Lines(picks, values, tuple(series))))
    return tuple(panels)
