"""Where the time went."""

from statistics import fmean

from prune4rel.machine import format_seconds
from prune4rel.report.charts import Axis, Stack, Stacks, number_axis
from prune4rel.report.figure import Figure, Looks, Missing, Panel, Table, Value
from prune4rel.report.story import Group, Story, groups_of, main_setting
from prune4rel.report.words import isolate, listed, ratio

STEPS = ("warmup", "selection", "training")
SPELT = {"warmup": "warm-up"}
COLOURS = (7, 1, 0, 2, 3, 4)
MINUTE, HOUR = 60, 3600


def cost(story: Story, looks: Looks) -> Figure | Missing:
    """Draw the seconds of each step, mean over the seeds, of the spotlight's ratio and learner."""
    del looks
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
    means = [[_mean(group, step) for step in steps] for group in groups]
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
        table=Table(("method", "learner", "ratio", "seed", *(f"{step}_seconds" for step in steps)), rows),
    )


def _mean(group: Group, step: str) -> float:
    return fmean(cell.seconds.get(step, 0.0) for cell in group.cells)


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
