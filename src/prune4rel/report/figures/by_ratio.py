"""What accuracy and noise share: a number of every method against the ratio, or a dot plot for a single ratio."""

from collections.abc import Sequence

from prune4rel.report.charts import Axis, Chart, Dots, Lines, Point, Reference, Row, Series, share_axis
from prune4rel.report.figure import Looks, Panel
from prune4rel.report.palette import BASELINE
from prune4rel.report.story import Group
from prune4rel.report.words import isolate, plural, plus_minus, ratio

MARGIN = 0.05


def panels_by_ratio(
    groups: Sequence[Group],
    name: str,
    *,
    label: str,
    looks: Looks,
    references: Sequence[Reference] = (),
    zero: bool = False,
    high_first: bool = True,
) -> tuple[Panel, ...]:
    """Draw one panel a learner.

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
        title = learner if len(learners) > 1 else ""
        draw = _against_ratio if len({group.ratio for group in mine}) > 1 else _as_dots
        panels.append(Panel(title, draw(mine, name, label, looks, references, zero=zero, high_first=high_first)))
    return tuple(panels)


def _against_ratio(
    groups: Sequence[Group],
    name: str,
    label: str,
    looks: Looks,
    references: Sequence[Reference],
    *,
    zero: bool,
    high_first: bool,
) -> Chart:
    del high_first
    series = []
    for method in dict.fromkeys(group.label for group in groups):
        points = tuple(_point(group, name, group.ratio) for group in groups if group.label == method)
        series.append(Series(method, looks[method], points, dashed=looks[method][0] == BASELINE))
    ratios = sorted({group.ratio for group in groups})
    pad = MARGIN * (ratios[-1] - ratios[0])
    ticks = tuple((value, ratio(value)) for value in ratios)
    x = Axis("share of the training set kept", ratios[0] - pad, ratios[-1] + pad, ticks)
    return Lines(x, _value_axis(series_points(series), label, references, zero=zero), tuple(series), tuple(references))


def _as_dots(
    groups: Sequence[Group],
    name: str,
    label: str,
    looks: Looks,
    references: Sequence[Reference],
    *,
    zero: bool,
    high_first: bool,
) -> Chart:
    order = sorted(groups, key=lambda group: group.mean(name) or 0.0, reverse=high_first)
    points = [_point(group, name, 0.0) for group in order]
    return Dots(
        _value_axis(points, label, references, zero=zero),
        (("", looks[order[0].label]),),
        tuple(Row(group.label, (point,)) for group, point in zip(order, points, strict=True)),
        tuple(references),
        tuple(looks[group.label] for group in order),
    )


def series_points(series: Sequence[Series]) -> list[Point]:
    """Return the points of all series."""
    return [point for one in series for point in one.points]


def _value_axis(points: Sequence[Point], label: str, references: Sequence[Reference], *, zero: bool) -> Axis:
    ends = [end for point in points for end in (point.low, point.y, point.high) if end is not None]
    return share_axis(label, [*ends, *(reference.value for reference in references)], zero=zero)


def _point(group: Group, name: str, x: float) -> Point:
    mean, spread = group.mean(name), group.spread(name)
    if mean is None:
        raise AssertionError("groups without the number are left out before")
    seeds = plural(len(group.values(name)), "seed")
    tip = f"{isolate(group.label)} at {ratio(group.ratio)}: {plus_minus(mean, spread)}% ({seeds})"
    if spread is None:
        return Point(x, mean, tip=tip)
    return Point(x, mean, max(0.0, mean - spread), min(1.0, mean + spread), tip)
