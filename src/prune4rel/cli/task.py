"""Options and words that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from prune4rel.cli.pairs import check_names

if TYPE_CHECKING:
    from prune4rel.data import Dataset
    from prune4rel.decisions import Settled
    from prune4rel.steps.data import DataOptions

DATA, MODEL = "Data", "Model and training"

DECISIONS = "What people settled: decisions.jsonl of `prune4rel review`, or a CSV."
Decisions = Annotated[Path | None, Option("--decisions", help=DECISIONS, rich_help_panel=DATA)]
LearnerName = Annotated[str, Option("--learner", help="See `prune4rel learners`.", rich_help_panel=MODEL)]
Seed = Annotated[int, Option("--seed", help="Of weights, order and augmentation.", rich_help_panel=MODEL)]
Code = Annotated[
    list[str] | None,
    Option("--code", help="my_file:my_function that a file names and that may be run, too; repeat."),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress, no summary.")]


def open_dataset(options: "DataOptions") -> "Dataset":
    """Read the data set that was named, or say which flag is meant where an option of it is none."""
    from prune4rel.data import get
    from prune4rel.steps.data import open_dataset as read

    known = get(options.dataset).options
    check_names(f"data set {options.dataset!r}", options.options, known, flags=("data", "labels"))
    return read(options)


def tell_settled(settled: "Settled") -> None:
    """Say what decisions came to, and which of them could not be used."""
    typer.echo(f"decisions: {settled.summary}", err=True)
    for line in (*settled.notes, *settled.refused):
        typer.secho(f"note: {line}", err=True, fg="yellow")
