"""The table a run ends in."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from prune4rel.machine import format_seconds
from prune4rel.pipeline.summary import Line, lines_of, seconds_of_everything

if TYPE_CHECKING:
    from prune4rel.report import Story


def print_closing(story: "Story") -> None:
    """Print accuracy, time and noise of every method, and training on everything to compare with."""
    console = Console(highlight=False)
    everything = () if story.full_training is None else (story.full_training,)
    lines = lines_of((*story.cells, *everything))
    learners = list(dict.fromkeys(line.learner for line in lines))
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("trained on", no_wrap=True)
    for title in ("accuracy", "noise", "relabelled", "warm-up", "select", "train"):
        table.add_column(title, justify="right", no_wrap=True)
    for learner in learners:
        if len(learners) > 1:
            table.add_row(f"[bold]{escape(learner)}[/bold]")
        for line in lines:
            if line.learner == learner:
                table.add_row(*_row(line, several_ratios=_several_ratios(lines)))
    console.print(table)
    console.print(
        "accuracy: on the test split, last epoch; noise: wrong labels trained on; relabelled: training labels the "
        "model gets right",
        style="dim",
        soft_wrap=True,
    )
    for learner in learners:
        found = seconds_of_everything(story, learner)
        if found is not None and story.full_training is None:
            console.print(
                f"Training {learner} on everything would take about {format_seconds(found[0])} "
                "(scaled up from the trainings above).",
                style="dim",
                soft_wrap=True,
            )


def _several_ratios(lines: list[Line]) -> bool:
    return len({line.ratio for line in lines}) > 1


def _row(line: Line, *, several_ratios: bool) -> list[str]:
    accuracy = "" if line.accuracy is None else f"{line.accuracy:.1%}"
    if line.spread is not None:
        accuracy += f" ± {100 * line.spread:.1f}"
    return [
        escape(line.label) + (f", {line.ratio:.0%}" if several_ratios else ""),
        accuracy,
        _percent(line.subset_noise),
        _percent(line.relabel_accuracy),
        format_seconds(line.warmup) if line.warmup else "",
        format_seconds(line.selection) if line.selection else "",
        format_seconds(line.training),
    ]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
