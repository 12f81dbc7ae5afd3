"""How training went: test accuracy by epoch."""

from collections.abc import Sequence
from statistics import fmean

from prune4rel.report.charts import Lines, Point, Series, number_axis, share_axis
from prune4rel.report.figure import Figure, Looks, Missing, Panel, Table
from prune4rel.report.story import Cell, Group, Story, groups_of, main_setting
from prune4rel.report.words import isolate, percent, ratio

MOST_POINTS = 150
MEASURE = "test_accuracy"


def curves(story: Story, looks: Looks) -> Figure | Missing:
    """Draw the mean test accuracy after each epoch, at the ratio and with the learner of the spotlight."""
    told = [cell for cell in story.cells if any(MEASURE in line for line in cell.curve)]
    if not told:
        return Missing("No accuracy was kept epoch by epoch.")
    main = main_setting(story, told)
    groups = [group for group in groups_of(told) if (group.learner, group.ratio) == main]
    series = tuple(_series(group, looks) for group in groups)
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
        table=Table(("method", "ratio", "seed", "epoch", "test_accuracy"), rows),
    )


def _epochs(cell: Cell) -> list[tuple[float, float]]:
    return [
        (line.get("epoch", place + 1), line[MEASURE])
        for place, line in enumerate(cell.curve)
        if line.get(MEASURE) is not None and line[MEASURE] == line[MEASURE]
    ]


def _series(group: Group, looks: Looks) -> Series:
    at: dict[float, list[float]] = {}
    for cell in group.cells:
        for epoch, value in _epochs(cell):
            at.setdefault(epoch, []).append(value)
    epochs = _thinned(sorted(at))
    points = tuple(
        Point(epoch, fmean(at[epoch]), tip=f"{isolate(group.label)}, epoch {epoch:g}: {percent(fmean(at[epoch]))}")
        for epoch in epochs
    )
    return Series(group.label, looks[group.label], points, markers=len(epochs) == 1)


def _thinned(epochs: Sequence[float]) -> list[float]:
    """Every so manieth epoch, the last one always."""
    step = -(-len(epochs) // MOST_POINTS)
    return [*epochs[:-1:step], epochs[-1]] if epochs else []
