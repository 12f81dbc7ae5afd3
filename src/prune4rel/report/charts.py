"""Figures as plain values: charts, a sentence on what they show, and the numbers behind them. `draw` lays them out."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from prune4rel.atomic import defuse
from prune4rel.report.words import Symbol, nice_step, plain, short

Value = str | int | float | None
Symbols = Mapping[str, Symbol]

TICKS = 5


@dataclass(frozen=True)
class Axis:
    """A range of numbers, and which of them are written beside it."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies, from 0 at `low` to 1 at `high`."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Point:
    """A value, its interval where there is one, and what to say when it is pointed at."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    tip: str = ""


@dataclass(frozen=True)
class Series:
    """Points that belong together. `faint` ones stay in the background."""

    name: str
    symbol: Symbol
    points: tuple[Point, ...]
    dashed: bool = False
    markers: bool = True


@dataclass(frozen=True)
class Reference:
    """A value to compare with."""

    value: float
    label: str


@dataclass(frozen=True)
class Lines:
    """Points joined by lines."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class DotRow:
    """One line of a dot plot: a name, and a point for some of the chart's keys (None where there is none)."""

    name: str
    points: tuple[Point | None, ...]


@dataclass(frozen=True)
class Dots:
    """A row a name, with dots on a common axis; with several keys, the dots of a row are joined."""

    axis: Axis
    keys: tuple[tuple[str, Symbol], ...]
    rows: tuple[DotRow, ...]
    references: tuple[Reference, ...] = ()
    row_symbols: tuple[Symbol, ...] = ()


@dataclass(frozen=True)
class Stack:
    """One bar in parts, and what is written at its end."""

    name: str
    values: tuple[float, ...]
    end: str
    tips: tuple[str, ...]


@dataclass(frozen=True)
class Stacks:
    """Bars in parts, one below the other."""

    axis: Axis
    keys: tuple[tuple[str, Symbol], ...]
    rows: tuple[Stack, ...]


@dataclass(frozen=True)
class Square:
    """A field of a matrix: how strong its colour is (None for none), its text, and what to say about it."""

    strength: float | None
    text: str
    tip: str


@dataclass(frozen=True)
class Matrix:
    """A table of coloured fields."""

    row_label: str
    column_label: str
    names: tuple[str, ...]
    squares: tuple[tuple[Square, ...], ...]


Chart = Lines | Dots | Stacks | Matrix


@dataclass(frozen=True)
class DataTable:
    """Numbers with a name for every column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def to_csv(self) -> str:
        r"""Write as CSV, in full precision.

        Text that a spreadsheet would take for a formula gets an apostrophe in front.

        >>> DataTable(("class", "share"), (("=1+1", 0.5), ("cat", None))).to_csv()
        "class,share\r\n'=1+1,0.5\r\ncat,\r\n"
        """
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(self.columns)
        writer.writerows([_written(value) for value in row] for row in self.rows)
        return text.getvalue()


@dataclass(frozen=True)
class Panel:
    """A chart with a title of its own where a figure has several."""

    title: str
    chart: Chart


@dataclass(frozen=True)
class Figure:
    """What one section shows of one story.

    Parameters
    ----------
    caption
        One sentence on what is seen.
    panels
        The charts.
    table
        The numbers behind them.
    """

    caption: str
    panels: tuple[Panel, ...]
    table: DataTable


@dataclass(frozen=True)
class Missing:
    """Why a story has no such figure, in one sentence."""

    reason: str


def _written(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return str(defuse(plain(value)))
    return repr(float(value)) if isinstance(value, float) else str(value)


def share_axis(label: str, values: Iterable[float], *, zero: bool = False) -> Axis:
    """Make an axis in per cent that holds all `values`, shares of one.

    >>> share_axis("accuracy", [0.71, 0.93]).ticks[:2]
    ((0.7, '70%'), (0.75, '75%'))
    """
    known = list(values)
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < 0.02:
        low, high = (low, low + 0.02) if zero and low == 0 else (low - 0.01, high + 0.01)
    pad = 0.04 * (high - low)
    low, high = max(0.0, low - (0 if zero else pad)), min(1.0, high + pad)
    axis = number_axis(label, [low, high])
    return replace(axis, ticks=tuple((tick, f"{100 * tick:.4g}%") for tick, _ in axis.ticks))


def number_axis(label: str, values: Iterable[float], *, zero: bool = False, most: int = TICKS) -> Axis:
    """Make an axis with round numbers at both ends.

    >>> axis = number_axis("picks", [0, 940])
    >>> axis.low, axis.high, axis.ticks[-1]
    (0.0, 1000.0, (1000.0, '1k'))
    """
    known = list(values)
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        low, high = low - abs(low) / 2, high + (abs(high) / 2 or 1.0)
    step = nice_step(high - low, most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple((float(f"{place * step:.12g}"), short(place * step)) for place in range(first, last + 1))
    return Axis(label, ticks[0][0], ticks[-1][0], ticks)


def log_axis(label: str, values: Iterable[float]) -> Axis:
    """Make a logarithmic axis with powers of ten at both ends.

    >>> [text for _, text in log_axis("gain", [0.02, 300]).ticks]
    ['0.01', '0.1', '1', '10', '100', '1k']
    """
    known = list(values)
    first, last = math.floor(math.log10(min(known)) + 1e-9), math.ceil(math.log10(max(known)) - 1e-9)
    last = max(last, first + 1)
    step = math.ceil((last - first) / 6)
    last = first + step * math.ceil((last - first) / step)
    powers = [10.0**power for power in range(first, last + 1, step)]
    return Axis(label, powers[0], powers[-1], tuple((power, short(power)) for power in powers), log=True)


def aligned(charts: Sequence[Chart]) -> list[Chart]:
    """Give line charts of the same quantities the same axes, so that they can be compared side by side."""
    lines = [chart for chart in charts if isinstance(chart, Lines)]
    if len(lines) < 2 or len(lines) < len(charts):
        return list(charts)
    if len({(chart.x.label, chart.x.log, chart.y.label, chart.y.log) for chart in lines}) > 1:
        return list(charts)
    y = _joined([chart.y for chart in lines])
    return [replace(chart, y=y) for chart in lines]


def _joined(axes: Sequence[Axis]) -> Axis:
    low, high = min(axis.low for axis in axes), max(axis.high for axis in axes)
    if axes[0].log:
        return log_axis(axes[0].label, [low, high])
    if axes[0].ticks[0][1].endswith("%"):
        wide = number_axis(axes[0].label, [low, high])
        return replace(wide, ticks=tuple((tick, f"{100 * tick:.4g}%") for tick, _ in wide.ticks))
    return number_axis(axes[0].label, [low, high])
