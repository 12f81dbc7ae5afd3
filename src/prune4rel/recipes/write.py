"""The comparison as Markdown and CSV, and Figure 2 as bins of confidence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prune4rel.atomic import csv_text
from prune4rel.recipes.budgets import HEADER as BUDGET_HEADER
from prune4rel.recipes.budgets import BudgetTable
from prune4rel.recipes.catalogue import Recipe
from prune4rel.recipes.cells import OURS
from prune4rel.recipes.compare import Comparison, Found, Row, agreement
from prune4rel.recipes.paper import Published

BINS = 15


@dataclass(frozen=True)
class Bin:
    """Examples whose neighbourhood confidence lies from `low` to `high`."""

    low: float
    high: float
    examples: int
    confidence: float
    accuracy: float


def bins_of(confidence: NDArray[np.float64], right: NDArray[np.bool_], count: int = BINS) -> list[Bin]:
    """Cut examples into bins of as equal a number as ties allow, by neighbourhood confidence.

    Parameters
    ----------
    confidence
        (n,) N(x; S), higher is surer. Equal values stay together.
    right
        (n,) whether the label ended up right.
    count
        How many bins, at most.

    Examples
    --------
    >>> [(each.low, each.high, each.accuracy) for each in bins_of(np.arange(4.0), np.array([0, 0, 0, 1], bool), 2)]
    [(0.0, 1.0, 0.0), (2.0, 3.0, 0.5)]
    """
    if not len(confidence):
        return []
    edges = np.unique(np.quantile(confidence, np.arange(1, count) / count, method="higher"))
    place = np.searchsorted(edges, confidence, side="right")
    found = []
    for number in np.unique(place):
        inside = place == number
        values = confidence[inside]
        found.append(
            Bin(
                float(values.min()),
                float(values.max()),
                int(inside.sum()),
                float(values.mean()),
                float(right[inside].mean()),
            )
        )
    return found


def correlation(bins: Sequence[Bin]) -> float | None:
    """Return Pearson's coefficient of mean confidence and accuracy over the bins; None where it has no meaning.

    >>> bins = [Bin(0, 1, 5, 0.5, 0.2), Bin(1, 2, 5, 1.5, 0.4), Bin(2, 3, 5, 2.5, 0.6)]
    >>> round(correlation(bins), 6)
    1.0
    """
    x = np.array([each.confidence for each in bins])
    y = np.array([each.accuracy for each in bins])
    if len(bins) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def rank_correlation(bins: Sequence[Bin]) -> float | None:
    """Return Spearman's coefficient over the bins, which come in order of confidence: 1 where accuracy only rises.

    >>> bins = [Bin(0, 1, 5, 0.5, 0.2), Bin(1, 2, 5, 1.5, 0.59), Bin(2, 3, 5, 2.5, 0.6)]
    >>> round(rank_correlation(bins), 6)
    1.0
    """
    accuracies = np.array([each.accuracy for each in bins])
    values, place, counts = np.unique(accuracies, return_inverse=True, return_counts=True)
    if len(values) < 2:
        return None
    middle = np.cumsum(counts) - (counts - 1) / 2
    return float(np.corrcoef(np.arange(len(bins)), middle[place])[0, 1])


NOT_RUN, NOT_PRINTED = "not run", "-"
SMOKE = "SMOKE: tiny stand-ins for the data, a network of a few weights. These numbers mean nothing."
HEADER = ("method", "ours", "seeds", "paper", "difference")
COLUMNS = (
    "recipe",
    "metric",
    "dataset",
    "noise",
    "learner",
    "method",
    "ratio",
    "ours_mean",
    "ours_std",
    "seeds",
    "paper_mean",
    "paper_std",
    "difference",
    "smoke",
)
BIN_HEADER = ("bin", "confidence from", "to", "examples", "re-labeling accuracy, %")


class Notes:
    """Footnotes, each numbered where it first appears."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, texts: Sequence[str]) -> str:
        """Return the marks of some footnotes, such as ``" [1] [2]"``."""
        for text in texts:
            if text not in self.texts:
                self.texts.append(text)
        return "".join(f" [{self.texts.index(text) + 1}]" for text in texts)

    def lines(self) -> list[str]:
        """Return the footnotes."""
        return [f"[{number}] {text}" for number, text in enumerate(self.texts, 1)]


def cells_of(block: Comparison, row: Row, notes: Notes, *, smoke: bool = False) -> tuple[str, ...]:
    """Return a row as text, in the columns of `HEADER`; smoke has no columns of the paper's."""
    name = block.name_of(row)
    ours = (NOT_RUN, "") if row.ours is None else (with_spread(row.ours), str(row.ours.seeds))
    if smoke:
        return name, *ours
    paper = NOT_PRINTED if row.paper is None else with_spread(row.paper)
    difference = "" if row.difference is None else f"{row.difference:+.1f}"
    return name, *ours, paper + notes.mark(row.remarks), difference


def with_spread(number: Found | Published) -> str:
    """Write a mean with its standard deviation, where it has one.

    >>> with_spread(Found(84.25, 0.31, 3)), with_spread(Published(82.7))
    ('84.2 ± 0.3', '82.7')
    """
    mean = f"{number.mean:.1f}" if abs(number.mean) >= 1 else f"{number.mean:.2g}"
    return mean if number.std is None else f"{mean} ± {number.std:.1f}"


def bin_rows(bins: Sequence[Bin]) -> list[tuple[str, ...]]:
    """Return bins as text, in the columns of `BIN_HEADER`."""
    return [
        (str(number), f"{each.low:.3g}", f"{each.high:.3g}", f"{each.examples:,}", f"{100 * each.accuracy:.1f}")
        for number, each in enumerate(bins, 1)
    ]


def bin_sentence(bins: Sequence[Bin]) -> str:
    """Say how confidence and accuracy go together."""
    pearson, spearman = correlation(bins), rank_correlation(bins)
    if pearson is None or spearman is None:
        return "There is no correlation to tell of."
    return f"Over the bins, Pearson's correlation is {pearson:.2f}, Spearman's {spearman:.2f}."


def to_markdown(
    recipe: Recipe,
    blocks: Sequence[Comparison],
    bins: dict[str, tuple[int, list[Bin]]],
    budgets: Sequence[BudgetTable] = (),
    *,
    smoke: bool = False,
) -> str:
    """Write the whole comparison for people."""
    notes = Notes()
    parts = [f"# {recipe.name}: {recipe.title}", f"**{SMOKE}**" if smoke else recipe.remark]
    if not smoke and blocks and recipe.printed is not None:
        parts.append(agreement(blocks))
    header = HEADER[:3] if smoke else HEADER
    for block in blocks:
        rows = [cells_of(block, row, notes, smoke=smoke) for row in block.rows]
        parts += [f"## {block.title}", as_table(header, rows)]
        if not smoke and any(row.paper for row in block.rows):
            parts.append(order_words(block))
    for title, (runs, some) in bins.items():
        parts += [f"## {title}, {runs} {'training' if runs == 1 else 'trainings'}"]
        parts += [as_table(BIN_HEADER, bin_rows(some)), bin_sentence(some)] if some else [NOT_RUN]
    for table in budgets:
        parts += [f"## {table.title}", as_table(BUDGET_HEADER, table.rows)]
    if any(row.cell.method in OURS for block in blocks for row in block.rows):
        parts.append("“Ours” are presets of this package, which the paper does not have.")
    parts += notes.lines()
    return "\n\n".join(filter(None, parts)) + "\n"


def order_words(block: Comparison) -> str:
    """Say how the order of a block compares."""
    order = block.order
    if order.tau is None:
        return order.sentence
    return (
        f"{order.sentence} Kendall's tau is {order.tau:.2f}. Here: {', '.join(order.here)}. In the paper: "
        f"{', '.join(order.paper)}."
    )


def as_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, its first column to the left and numbers to the right."""
    line = "|" + "|".join("---" if number == 0 else "---:" for number in range(len(header))) + "|"
    return "\n".join([f"| {' | '.join(header)} |", line, *(f"| {' | '.join(row)} |" for row in rows)])


def to_csv(recipe: Recipe, blocks: Sequence[Comparison], *, smoke: bool = False) -> str:
    """Write every number, a line each; what is not known is empty."""
    rows = []
    for block in blocks:
        for row in block.rows:
            cell = row.cell
            ours = ("", "", 0) if row.ours is None else (row.ours.mean, row.ours.std, row.ours.seeds)
            paper = ("", "") if row.paper is None else (row.paper.mean, row.paper.std)
            what = (cell.dataset, cell.noise, cell.learner, cell.method, cell.ratio)
            rows.append((recipe.name, row.metric, *what, *ours, *paper, row.difference, smoke))
    return csv_text(COLUMNS, rows)


def bins_to_csv(recipe: Recipe, bins: dict[str, tuple[int, list[Bin]]], *, smoke: bool = False) -> str:
    """Write every bin, a line each."""
    header = ("recipe", "data", "trainings", "bin", "low", "high", "examples", "mean", "accuracy", "smoke")
    rows = []
    for title, (runs, some) in bins.items():
        for number, one in enumerate(some, 1):
            facts = (runs, number, one.low, one.high, one.examples, one.confidence, one.accuracy, smoke)
            rows.append((recipe.name, title, *facts))
    return csv_text(header, rows)
