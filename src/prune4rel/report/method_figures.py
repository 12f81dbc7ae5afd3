"""Figures that compare methods: accuracy, wrong labels picked, coverage, training and cost."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, zip_longest
from statistics import fmean

import numpy as np

from prune4rel.machine import format_seconds
from prune4rel.report.charts import (
    Axis,
    Chart,
    DataTable,
    DotRow,
    Dots,
    Figure,
    Lines,
    Missing,
    Panel,
    Point,
    Reference,
    Series,
    Stack,
    Stacks,
    Symbols,
    Value,
    log_axis,
    number_axis,
    share_axis,
)
from prune4rel.report.story import Array, Cell, Group, Story, groups_of, main_setting
from prune4rel.report.words import (
    BASELINE,
    FAVOURITE,
    Symbol,
    count,
    isolate,
    listed,
    percent,
    plural,
    plus_minus,
    ratio,
    short,
    symbols_of,
)

MARGIN = 0.05
WINDOWS = 80
AGREES = 0.01
MOST_POINTS = 150
MEASURE = "test_accuracy"
STEPS = ("warmup", "selection", "training")
SPELT = {"warmup": "warm-up"}
COLOURS = (7, 1, 0, 2, 3, 4)
MINUTE, HOUR = 60, 3600


def accuracy(story: Story, symbols: Symbols) -> Figure | Missing:
    """Draw test accuracy of the last epoch, the mean over seeds with one standard deviation either way."""
    groups = [group for group in groups_of(story.cells) if group.values("test_accuracy")]
    if not groups:
        return Missing("No model was tested in this run.")
    full = None if story.full_training is None else story.full_training.known("test_accuracy")
    seeds = max(len(group.values("test_accuracy")) for group in groups)
    bars = (
        f"Dots are means over {plural(seeds, 'seed')}, bars one standard deviation either way."
        if seeds > 1
        else "One seed each, so there are no error bars: differences of a point or two may be chance."
    )
    rows = tuple(
        (cell.label, cell.learner, cell.ratio, cell.seed, cell.known("test_accuracy"), cell.known("best_accuracy"))
        for group in groups
        for cell in group.cells
    )
    return Figure(
        caption=f"Test accuracy after the last epoch, by the share of the training set that was kept. {bars}",
        panels=panels_by_ratio(
            groups,
            "test_accuracy",
            label="test accuracy",
            symbols=symbols,
            references=() if full is None else (Reference(full, "all examples"),),
        ),
        table=DataTable(("method", "learner", "ratio", "seed", "test_accuracy", "best_epoch_accuracy"), rows),
    )


def subset_noise(story: Story, symbols: Symbols) -> Figure | Missing:
    """Draw the share of wrong labels among the picks of every method."""
    groups = [group for group in groups_of(_once_a_selection(story.cells)) if group.values("subset_noise")]
    if not groups:
        return Missing("The true labels are not known, so wrong ones cannot be counted.")
    whole = story.noise
    rows = tuple(
        (cell.label, cell.ratio, cell.seed, cell.size, cell.known("subset_noise"))
        for group in groups
        for cell in group.cells
    )
    return Figure(
        caption="Share of wrong labels among the picks, against that of the whole training set. "
        "Fewer is not always better: a learner can correct the labels whose neighbours it trusts.",
        panels=panels_by_ratio(
            groups,
            "subset_noise",
            label="wrong labels in the subset",
            symbols=symbols,
            references=() if whole is None else (Reference(whole, "whole set"),),
            zero=True,
            high_first=False,
        ),
        table=DataTable(("method", "ratio", "seed", "size", "subset_noise"), rows),
    )


def _once_a_selection(cells: tuple[Cell, ...]) -> list[Cell]:
    """Several learners may train on the same picks: they count once."""
    seen: dict[tuple[object, ...], Cell] = {}
    for cell in cells:
        seen.setdefault((cell.label, cell.ratio, cell.seed, cell.subset_noise), replace(cell, learner=""))
    return list(seen.values())


def panels_by_ratio(
    groups: Sequence[Group],
    name: str,
    *,
    label: str,
    symbols: Symbols,
    references: Sequence[Reference] = (),
    zero: bool = False,
    high_first: bool = True,
) -> tuple[Panel, ...]:
    """Draw one panel a learner: a number of every method against the ratio, or as dots for a single ratio.

    Parameters
    ----------
    groups
        Only those whose number is known are drawn.
    name
        The number of a cell, such as ``"test_accuracy"``.
    label
        Of its axis.
    zero
        Let the axis start at nought.
    high_first
        Put the highest on top in a dot plot.
    """
    known = [group for group in groups if group.mean(name) is not None]
    learners = list(dict.fromkeys(group.learner for group in known))
    panels = []
    for learner in learners:
        mine = [group for group in known if group.learner == learner]
        points = [_mean_point(group, name) for group in mine]
        ends = [end for point in points for end in (point.low, point.y, point.high) if end is not None]
        axis = share_axis(label, [*ends, *(reference.value for reference in references)], zero=zero)
        many = len({group.ratio for group in mine}) > 1
        chart = (
            _against_ratio(mine, points, axis, symbols, references)
            if many
            else _as_dots(mine, points, axis, symbols, references, high_first=high_first)
        )
        panels.append(Panel(learner if len(learners) > 1 else "", chart))
    return tuple(panels)


def _against_ratio(
    groups: Sequence[Group], points: Sequence[Point], axis: Axis, symbols: Symbols, references: Sequence[Reference]
) -> Chart:
    series = []
    for method in dict.fromkeys(group.label for group in groups):
        line = tuple(point for group, point in zip(groups, points, strict=True) if group.label == method)
        series.append(Series(method, symbols[method], line, dashed=symbols[method][0] == BASELINE))
    ratios = sorted({group.ratio for group in groups})
    pad = MARGIN * (ratios[-1] - ratios[0])
    ticks = tuple((value, ratio(value)) for value in ratios)
    x = Axis("share of the training set kept", ratios[0] - pad, ratios[-1] + pad, ticks)
    return Lines(x, axis, tuple(series), tuple(references))


def _as_dots(
    groups: Sequence[Group],
    points: Sequence[Point],
    axis: Axis,
    symbols: Symbols,
    references: Sequence[Reference],
    *,
    high_first: bool,
) -> Chart:
    order = sorted(zip(groups, points, strict=True), key=lambda pair: pair[1].y, reverse=high_first)
    return Dots(
        axis,
        (("", symbols[order[0][0].label]),),
        tuple(DotRow(group.label, (point,)) for group, point in order),
        tuple(references),
        tuple(symbols[group.label] for group, _ in order),
    )


def _mean_point(group: Group, name: str) -> Point:
    mean, spread = group.mean(name), group.spread(name)
    if mean is None:
        raise AssertionError("groups without the number are left out before")
    seeds = plural(len(group.values(name)), "seed")
    tip = f"{isolate(group.label)} at {ratio(group.ratio)}: {plus_minus(mean, spread)}% ({seeds})"
    if spread is None:
        return Point(group.ratio, mean, tip=tip)
    return Point(group.ratio, mean, max(0.0, mean - spread), min(1.0, mean + spread), tip)


def coverage(story: Story, symbols: Symbols) -> Figure | Missing:
    """Draw how the objective grows and the gain falls as examples are picked."""
    cells = _longest_each(story.cells)
    if not cells:
        return Missing("No method of this run keeps the coverage objective.")
    growth: list[Series] = []
    worth: list[Series] = []
    rows: list[tuple[Value, ...]] = []
    for cell in cells:
        gains = np.asarray(cell.gains, dtype=np.float64)
        # the paper's score is only a part of the objective
        adds_up = math.isclose(float(gains.sum()), cell.known("objective") or 0.0, rel_tol=AGREES)
        steps = list(_windows(gains))
        for picks, total, gain in steps:
            rows.append((cell.label, cell.ratio, cell.seed, picks, total if adds_up else None, gain))
        if adds_up:
            growth.append(_windowed(cell, symbols, [(picks, total) for picks, total, _ in steps], "covers"))
        worth.append(_windowed(cell, symbols, [(picks, gain) for picks, _, gain in steps if gain > 0], "gains"))
    panels = _coverage_panels(growth, [series for series in worth if series.points])
    if not panels:
        return Missing("No pick of this run gained anything.")
    return Figure(
        caption="How much of the training set the picks speak for, and what each further pick is worth: "
        "when the gain has fallen by orders of magnitude, more examples would add little. "
        f"Gains are means over windows of picks, at most {WINDOWS} for each method.",
        panels=panels,
        table=DataTable(("method", "ratio", "seed", "picks", "objective", "mean_gain"), tuple(rows)),
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


def _windows(gains: Array) -> list[tuple[int, float, float]]:
    """Return picks so far, sum so far and mean gain at the end of each window."""
    ends = np.unique(np.linspace(0, len(gains), min(WINDOWS, len(gains)) + 1).round().astype(int))
    totals = np.concatenate([[0.0], np.cumsum(gains)])
    return [(int(stop), float(totals[stop]), float(gains[start:stop].mean())) for start, stop in pairwise(ends)]


def _windowed(cell: Cell, symbols: Symbols, steps: Sequence[tuple[int, float]], verb: str) -> Series:
    points = tuple(
        Point(picks, value, tip=f"{isolate(cell.label)}, pick {count(picks)}: {verb} {short(float(f'{value:.3g}'))}")
        for picks, value in steps
    )
    return Series(cell.label, symbols[cell.label], points, markers=False)


def _coverage_panels(growth: Sequence[Series], worth: Sequence[Series]) -> tuple[Panel, ...]:
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


def curves(story: Story, symbols: Symbols) -> Figure | Missing:
    """Draw the mean test accuracy after each epoch, at the ratio and with the learner of the spotlight."""
    told = [cell for cell in story.cells if any(MEASURE in line for line in cell.curve)]
    if not told:
        return Missing("No accuracy was kept epoch by epoch.")
    main = main_setting(story, told)
    groups = [group for group in groups_of(told) if (group.learner, group.ratio) == main]
    series = tuple(_curve(group, symbols) for group in groups)
    points = [point for one in series for point in one.points]
    rows = tuple(
        (cell.label, cell.ratio, cell.seed, *epoch)
        for group in groups
        for cell in group.cells
        for epoch in _epochs(cell)
    )
    return Figure(
        caption=f"Test accuracy after each epoch with {isolate(main[0])} on {ratio(main[1])} of the training "
        "set, means over the seeds. The last epoch is the result.",
        panels=(
            Panel(
                "",
                Lines(
                    number_axis("epoch", [point.x for point in points], zero=True),
                    share_axis("test accuracy", [point.y for point in points]),
                    series,
                ),
            ),
        ),
        table=DataTable(("method", "ratio", "seed", "epoch", "test_accuracy"), rows),
    )


def by_steps(story: Story, symbols: Symbols) -> Figure | Missing:
    """Draw the mean test accuracy against the steps that it took, warm-up included: one line a contender."""
    del symbols  # of methods; here what one was trained on, and by whom, tells lines apart, too
    told = [cell for cell in (*story.cells, *story.everything) if _looks_by_steps(cell)]
    if not told:
        return Missing("No accuracy was kept step by step.")
    groups = groups_of(told)
    shares = ["" if group.ratio == 1 else f", {ratio(group.ratio)}" for group in groups]
    names = [f"{group.label}{share}, {group.learner}" for group, share in zip(groups, shares, strict=True)]
    own = symbols_of(names)
    series = tuple(_line_by_steps(group, name, own[name]) for group, name in zip(groups, names, strict=True))
    points = [point for one in series for point in one.points]
    same = "" if story.steps is None else f" Everybody had {count(story.steps)}."
    rows = tuple(
        (cell.label, cell.learner, cell.ratio, cell.seed, *look)
        for group in groups
        for cell in group.cells
        for look in _looks_by_steps(cell)
    )
    return Figure(
        caption="Test accuracy against steps of the optimiser, means over the seeds. A line begins where warm-up and "
        f"looking at examples are paid for; a schedule ends with the last step, so that only line ends compare.{same}",
        panels=(
            Panel(
                "",
                Lines(
                    number_axis("steps", [point.x for point in points], zero=True),
                    share_axis("test accuracy", [point.y for point in points]),
                    series,
                ),
            ),
        ),
        table=DataTable(("method", "learner", "ratio", "seed", "steps", "test_accuracy"), rows),
    )


def _looks_by_steps(cell: Cell) -> list[tuple[float, float]]:
    return [
        (cell.paid + line["steps"], line[MEASURE])
        for line in cell.curve
        if "steps" in line and line.get(MEASURE) is not None and math.isfinite(line[MEASURE])
    ]


def _line_by_steps(group: Group, name: str, symbol: Symbol) -> Series:
    """Put the looks of all seeds together, first with first."""
    every = list(zip_longest(*map(_looks_by_steps, group.cells)))
    means = [[fmean(one[axis] for one in place if one is not None) for axis in range(2)] for place in every]
    points = tuple(Point(x, y, tip=f"{isolate(name)}, step {count(x)}: {percent(y)}") for x, y in means)
    return Series(name, symbol, points, markers=len(points) == 1)


def _epochs(cell: Cell) -> list[tuple[float, float]]:
    return [
        (line.get("epoch", place + 1), line[MEASURE])
        for place, line in enumerate(cell.curve)
        if line.get(MEASURE) is not None and line[MEASURE] == line[MEASURE]
    ]


def _curve(group: Group, symbols: Symbols) -> Series:
    at: dict[float, list[float]] = {}
    for cell in group.cells:
        for epoch, value in _epochs(cell):
            at.setdefault(epoch, []).append(value)
    epochs = _thinned(sorted(at))
    points = tuple(
        Point(epoch, fmean(at[epoch]), tip=f"{isolate(group.label)}, epoch {epoch:g}: {percent(fmean(at[epoch]))}")
        for epoch in epochs
    )
    return Series(group.label, symbols[group.label], points, markers=len(epochs) == 1)


def _thinned(epochs: Sequence[float]) -> list[float]:
    """Every so manieth epoch, the last one always."""
    step = -(-len(epochs) // MOST_POINTS)
    return [*epochs[:-1:step], epochs[-1]] if epochs else []


def cost(story: Story, symbols: Symbols) -> Figure | Missing:
    """Draw the seconds of each step, mean over the seeds, of the spotlight's ratio and learner."""
    del symbols
    every = [*story.cells, *([] if story.full_training is None else [story.full_training])]
    timed = [cell for cell in every if any(seconds > 0 for seconds in cell.seconds.values())]
    if not timed:
        return Missing("No times were kept.")
    main = main_setting(story, timed)
    steps = [step for step in STEPS if any(step in cell.seconds for cell in timed)]
    steps += sorted({step for cell in timed for step in cell.seconds} - set(steps))
    groups = [
        group
        for group in groups_of(timed)
        if (group.learner, group.ratio) == main or story.full_training in group.cells
    ]
    means = [[group.seconds(step) for step in steps] for group in groups]
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (cell.label, cell.learner, cell.ratio, cell.seed, *(cell.seconds.get(step) for step in steps)) for cell in timed
    )
    keys = tuple((SPELT.get(step, step), (COLOURS[place % len(COLOURS)], "square")) for place, step in enumerate(steps))
    return Figure(
        caption=f"Time for {listed([name for name, _ in keys])} at {ratio(main[1])} with {isolate(main[0])}, means "
        "over the seeds. A warm-up that several methods share is counted for each of them.",
        panels=(
            Panel(
                "",
                Stacks(
                    _time_axis(max(sum(parts) for parts in means)),
                    keys,
                    tuple(_stack(group, steps, parts) for group, parts in zip(groups, means, strict=True)),
                ),
            ),
        ),
        table=DataTable(("method", "learner", "ratio", "seed", *(f"{step}_seconds" for step in steps)), rows),
    )


def _stack(group: Group, steps: list[str], parts: list[float]) -> Stack:
    tips = tuple(
        f"{isolate(group.label)}, {step}: {format_seconds(seconds)}" for step, seconds in zip(steps, parts, strict=True)
    )
    return Stack(group.label, tuple(parts), format_seconds(sum(parts)), tips)


def _time_axis(longest: float) -> Axis:
    unit, name = (
        (HOUR, "hours") if longest > 2 * HOUR else (MINUTE, "minutes") if longest > 2 * MINUTE else (1, "seconds")
    )
    axis = number_axis(name, [longest / unit], zero=True)
    return Axis(name, 0.0, axis.high * unit, tuple((tick * unit, text) for tick, text in axis.ticks))
