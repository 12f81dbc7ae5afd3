"""Figures about labels: classes before and after, where labels are mended, and what was corrected to what."""

import math

import numpy as np
from numpy.typing import NDArray

from prune4rel.report.charts import (
    Axis,
    Chart,
    DataTable,
    DotRow,
    Dots,
    Figure,
    Lines,
    Matrix,
    Missing,
    Panel,
    Point,
    Reference,
    Series,
    Square,
    Symbols,
    number_axis,
    share_axis,
)
from prune4rel.report.story import Story
from prune4rel.report.words import BASELINE, count, isolate, percent, plural, ratio, short

Shares = NDArray[np.float64]

MOST_ROWS = 40
BEFORE, AFTER = (BASELINE, "circle"), (0, "circle")
BINS = 15
CERTAIN = 1.96
MOST_NAMES = 24


def class_balance(story: Story, symbols: Symbols) -> Figure | Missing:
    """Draw the share of each given class before and after pruning."""
    del symbols
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
        table=DataTable(("class", "training_set", "picked", "share_of_training_set", "share_of_picks"), rows),
    )


def _dots(story: Story, before: Shares, after: Shares) -> Chart:
    rows = tuple(
        DotRow(
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
            symbol,
            tuple(
                Point(rank + 1, float(share), tip=f"class {rank + 1} by size: {percent(float(share), 2)}")
                for rank, share in enumerate(sorted(shares, reverse=True))
            ),
            markers=False,
        )
        for name, symbol, shares in (("training set", BEFORE, before), ("subset", AFTER, after))
    )
    return Lines(
        number_axis("classes, largest first", [1, len(before)], zero=True),
        share_axis("share of the examples", [*before, *after], zero=True),
        series,
    )


def relabeling(story: Story, symbols: Symbols) -> Figure | Missing:
    """Draw how often the corrected label is true, in bins of about equally many examples."""
    del symbols
    if story.neighbourhood is None:
        return Missing("The confidence that the picks lend to their neighbours was not kept.")
    if story.corrected is None:
        return Missing("No model's labels for the whole training set were kept.")
    if story.clean_labels is None:
        return Missing("The true labels are not known, so corrections cannot be checked.")
    support = np.asarray(story.neighbourhood, dtype=np.float64)
    bins = bins_of(support)
    if not bins:
        return Missing("There are no examples.")
    kept, mended, rows = [], [], []
    for place, members in enumerate(bins):
        here = support[members]
        truth = story.clean_labels[members]
        given = float((story.labels[members] == truth).mean())
        right = float((story.corrected[members] == truth).mean())
        low, high = wilson(right, len(members))
        about = f"{count(len(members))} examples, neighbourhood confidence {_span(here)}"
        kept.append(Point(place, given, tip=f"{percent(given)} of the given labels are true: {about}"))
        mended.append(Point(place, right, low, high, f"{percent(right)} of the corrected labels are true: {about}"))
        rows.append((place + 1, float(here.min()), float(here.max()), float(here.mean()), len(members), given, right))
    ends = [end for point in mended for end in (point.low, point.high) if end is not None]
    return Figure(
        caption="Corrected labels that are true, by the confidence that an example's neighbours in the subset lend "
        f"it: {percent(mended[0].y)} in the least confident bin, {percent(mended[-1].y)} in the most confident. "
        f"{plural(len(bins), 'bin')} of about equally many examples; bars are 95% intervals.",
        panels=(
            Panel(
                "",
                Lines(
                    _bin_axis([row[3] for row in rows]),
                    share_axis("labels that are true", [*ends, *(point.y for point in kept)]),
                    (
                        Series("corrected", (0, "circle"), tuple(mended)),
                        Series("given", (BASELINE, "square"), tuple(kept), dashed=True),
                    ),
                ),
            ),
        ),
        table=DataTable(
            (
                "bin",
                "lowest_confidence",
                "highest_confidence",
                "mean_confidence",
                "examples",
                "given_right",
                "corrected_right",
            ),
            tuple(rows),
        ),
    )


def bins_of(support: NDArray[np.float64], most: int = BINS) -> list[NDArray[np.int64]]:
    """Cut examples into bins: those without support, then about equally many each; equal values share a bin.

    >>> [members.tolist() for members in bins_of(np.array([0.0, 3.0, 0.0, 1.0]), most=4)]
    [[0, 2], [3], [1]]
    """
    alone, order = np.flatnonzero(support <= 0), np.argsort(support, kind="stable")
    first = [alone] if len(alone) else []
    order = order[len(alone) :]
    if not len(order):
        return first
    ranked = support[order]
    cuts = np.searchsorted(ranked, ranked[np.linspace(0, len(ranked), most - len(first), endpoint=False).astype(int)])
    return first + [members for members in np.split(order, np.unique(cuts)) if len(members)]


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return a 95% interval for a share seen in `n` examples (Wilson).

    >>> low, high = wilson(0.5, 100)
    >>> round(low, 3), round(high, 3)
    (0.404, 0.596)
    """
    square = CERTAIN**2 / n
    centre = (share + square / 2) / (1 + square)
    half = math.sqrt(share * (1 - share) * square + square**2 / 4) / (1 + square)
    return max(0.0, centre - half), min(1.0, centre + half)


def _bin_axis(means: list[float]) -> Axis:
    last = len(means) - 1
    shown = sorted({round(last * step / 4) for step in range(5)})
    return Axis(
        "mean neighbourhood confidence of the bin",
        -0.4,
        last + 0.4,
        tuple((float(place), short(float(f"{means[place]:.2g}"))) for place in shown),
    )


def _span(values: NDArray[np.float64]) -> str:
    low, high = (short(float(f"{value:.2g}")) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def confusion(story: Story, symbols: Symbols) -> Figure | Missing:
    """Draw given against corrected labels, the busiest classes where there are many."""
    del symbols
    if story.corrected is None:
        return Missing("No model's labels for the whole training set were kept.")
    counts = pairs_of(story.labels, story.corrected, len(story.class_names))
    if not counts.sum():
        return Missing("There are no examples.")
    chart = matrix_chart(counts, story.class_names)
    changed = int(counts.sum() - np.trace(counts))
    given, now = np.nonzero(counts)
    rows = tuple(
        (story.class_names[row], story.class_names[column], int(counts[row, column]))
        for row, column in zip(given, now, strict=True)
    )
    drawn = len(chart.names)
    some = "" if drawn == len(counts) else f" The {drawn} classes with the most corrections are drawn."
    return Figure(
        caption=f"Given labels (rows) against the model's (columns): {count(changed)} of {plural(story.n, 'example')}, "
        f"{percent(changed / story.n)}, would be labelled anew. Colour is the share of a given class that moved; "
        f"the diagonal, where labels stay, is not coloured.{some}",
        panels=(Panel("", chart),),
        table=DataTable(("given", "corrected", "examples"), rows),
    )


def pairs_of(given: NDArray[np.int64], corrected: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """(C, C) how many examples with a given label (row) have a corrected one (column).

    >>> pairs_of(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    array([[1, 1],
           [0, 1]])
    """
    flat = np.bincount(np.asarray(given) * n_classes + np.asarray(corrected), minlength=n_classes**2)
    return flat.reshape(n_classes, n_classes)


def busiest(moved: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the classes of a (C, C) matrix to draw: all, or where there are many those that most moves from or to."""
    most = np.argsort(-(moved.sum(axis=0) + moved.sum(axis=1)), kind="stable")
    return np.sort(most[:MOST_NAMES])


def matrix_chart(
    counts: NDArray[np.int64], names: tuple[str, ...], *, rows: str = "given label", columns: str = "corrected label"
) -> Matrix:
    """Draw a (C, C) table of counts, coloured by the share of a row that moved; the busiest of many classes."""
    shown = busiest(counts * (1 - np.eye(len(counts))))
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    off = shares[np.ix_(shown, shown)] * (1 - np.eye(len(shown)))
    strongest = float(off.max()) or 1.0

    def square(row: int, column: int) -> Square:
        number, share = int(counts[row, column]), float(shares[row, column])
        one, other = isolate(names[row]), isolate(names[column])
        if row == column:
            return Square(None, count(number), f"{one}: {count(number)} labels stay ({percent(share)})")
        tip = f"{one} to {other}: {count(number)} ({percent(share)} of {one})"
        return Square(share / strongest, count(number) if number else "", tip)

    squares = tuple(tuple(square(int(row), int(column)) for column in shown) for row in shown)
    return Matrix(rows, columns, tuple(names[place] for place in shown), squares)
