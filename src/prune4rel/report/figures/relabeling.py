"""Re-labeling accuracy against the confidence in the neighbourhood: the paper's Figure 2."""

import math

import numpy as np
from numpy.typing import NDArray

from prune4rel.report.charts import Axis, Lines, Point, Series, share_axis
from prune4rel.report.figure import Figure, Looks, Missing, Panel, Table
from prune4rel.report.palette import BASELINE
from prune4rel.report.story import Story
from prune4rel.report.words import count, percent, plural, short

BINS = 15
CERTAIN = 1.96


def relabeling(story: Story, looks: Looks) -> Figure | Missing:
    """Draw how often the corrected label is true, in bins of about equally many examples."""
    del looks
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
        table=Table(
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
