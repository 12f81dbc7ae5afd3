"""Classes in the training set and in the subset."""

import numpy as np
from numpy.typing import NDArray

from prune4rel.report.charts import Chart, Dots, Lines, Point, Reference, Row, Series, number_axis, share_axis
from prune4rel.report.figure import Figure, Looks, Missing, Panel, Table
from prune4rel.report.palette import BASELINE
from prune4rel.report.story import Story
from prune4rel.report.words import count, isolate, percent, ratio

Shares = NDArray[np.float64]

MOST_ROWS = 40
BEFORE, AFTER = (BASELINE, "circle"), (0, "circle")


def class_balance(story: Story, looks: Looks) -> Figure | Missing:
    """Draw the share of each given class before and after pruning."""
    del looks
    cell = story.spotlight
    if cell is None or len(cell.class_counts) != len(story.class_counts) or not sum(cell.class_counts):
        return Missing("No subset was put in the spotlight.")
    before = np.array(story.class_counts) / max(1, sum(story.class_counts))
    after = np.array(cell.class_counts) / sum(cell.class_counts)
    few = len(before) <= MOST_ROWS
    rows = tuple(
        (name, total, kept, float(share), float(now))
        for name, total, kept, share, now in zip(
            story.class_names, story.class_counts, cell.class_counts, before, after, strict=True
        )
    )
    sorted_by = "" if few else " Classes are sorted by size, each curve by its own."
    return Figure(
        caption=f"Share of each given label in the whole training set and among the {count(cell.size)} picks of "
        f"{isolate(cell.label)} at {ratio(cell.ratio)}.{sorted_by}",
        panels=(Panel("", _dots(story, before, after) if few else _curves(before, after)),),
        table=Table(("class", "training_set", "picked", "share_of_training_set", "share_of_picks"), rows),
    )


def _dots(story: Story, before: Shares, after: Shares) -> Chart:
    rows = tuple(
        Row(
            name,
            (
                Point(0, float(share), tip=f"{isolate(name)}: {percent(float(share))} of the training set"),
                Point(0, float(now), tip=f"{isolate(name)}: {percent(float(now))} of the subset"),
            ),
        )
        for name, share, now in zip(story.class_names, before, after, strict=True)
    )
    even = Reference(1 / len(before), "even")
    axis = share_axis("share of the examples", [*before, *after, even.value])
    return Dots(axis, (("training set", BEFORE), ("subset", AFTER)), rows, (even,))


def _curves(before: Shares, after: Shares) -> Chart:
    series = tuple(
        Series(
            name,
            look,
            tuple(
                Point(rank + 1, float(share), tip=f"class {rank + 1} by size: {percent(float(share), 2)}")
                for rank, share in enumerate(sorted(shares, reverse=True))
            ),
            markers=False,
        )
        for name, look, shares in (("training set", BEFORE, before), ("subset", AFTER, after))
    )
    return Lines(
        number_axis("classes, largest first", [1, len(before)], zero=True),
        share_axis("share of the examples", [*before, *after], zero=True),
        series,
    )
