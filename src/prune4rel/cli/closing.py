"""The table a run ends in."""

from textwrap import fill
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from prune4rel.machine import format_seconds
from prune4rel.pipeline.summary import Line, lines_of, seconds_of_everything

if TYPE_CHECKING:
    from prune4rel.pipeline.collect import Findings

WIDE = 200
"""Columns of what is no terminal: a file can be as wide as it takes."""

LEGEND_WIDTH = 80

MEANING = {
    "accuracy": "on the test split, after the last epoch",
    "noise": "wrong labels among those trained on",
    "relabelled": "share of all training labels the model gets right",
}


def print_closing(found: "Findings") -> None:
    """Print accuracy, time and noise of every method, and training on everything to compare with."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    lines = lines_of(found.cells)
    learners = list(dict.fromkeys(line.learner for line in lines))
    several_ratios = len({line.ratio for line in lines}) > 1
    shown = [title for title in _numbers(lines[0]) if any(_numbers(line)[title] for line in lines)]
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("trained on", overflow="fold")
    for title in shown:
        table.add_column(title, justify="right", no_wrap=True)
    for learner in learners:
        table.add_row(f"[bold]{escape(learner)}[/bold]")
        for line in lines:
            if line.learner == learner:
                ratio = f", {line.ratio:g}" if several_ratios and line.ratio < 1 else ""
                table.add_row(f"  {escape(line.label)}{ratio}", *(_numbers(line)[title] for title in shown))
    console.print(table)
    if legend := "; ".join(f"{title}: {MEANING[title]}" for title in shown if title in MEANING):
        console.print(fill(legend, LEGEND_WIDTH), style="dim")
    if seeds := max(line.seeds for line in lines) - 1:
        console.print(f"means over {seeds + 1} seeds, ± their standard deviation", style="dim")
    for learner in learners:
        _print_time_of_everything(console, found, learner)


def _print_time_of_everything(console: Console, found: "Findings", learner: str) -> None:
    whole = seconds_of_everything(found.cells, learner, found.story.n)
    if whole is None:
        return
    seconds, measured = whole
    verb = "took" if measured else "would take about"
    how = "" if measured else " (scaled up)"
    words = f"Training {learner} on everything {verb} {format_seconds(seconds)}{how}."
    console.print(words, style="dim", markup=False)


def _numbers(line: Line) -> dict[str, str]:
    """Return what stands in each column; nothing where it is not known."""
    spread = "" if line.spread is None else f" ± {100 * line.spread:.1f}"
    return {
        "accuracy": _percent(line.accuracy) + spread,
        "noise": _percent(line.subset_noise),
        "relabelled": _percent(line.relabel_accuracy),
        "warm-up": format_seconds(line.warmup) if line.warmup else "",
        "select": format_seconds(line.selection) if line.selection else "",
        "train": format_seconds(line.training),
    }


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
