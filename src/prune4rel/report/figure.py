"""A figure: charts, a sentence on what they show, and the numbers behind them."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prune4rel.report.charts import Chart
from prune4rel.report.palette import Look, looks_of
from prune4rel.report.story import Story, labels_of
from prune4rel.report.words import plain

Value = str | int | float | None
Looks = Mapping[str, Look]

FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Table:
    """Numbers with a name for every column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def to_csv(self) -> str:
        r"""Write as CSV, in full precision.

        Text that a spreadsheet would take for a formula gets an apostrophe in front.

        >>> Table(("class", "share"), (("=1+1", 0.5), ("cat", None))).to_csv()
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
    table: Table


@dataclass(frozen=True)
class Missing:
    """Why a story has no such figure, in one sentence."""

    reason: str


def _written(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        text = plain(value)
        return f"'{text}" if text.startswith(FORMULA) else text
    return repr(float(value)) if isinstance(value, float) else str(value)


def label_looks(stories: Sequence[Story]) -> Looks:
    """Give a method the same colour and marker in all stories."""
    return looks_of(labels_of(cell for story in stories for cell in story.cells))
