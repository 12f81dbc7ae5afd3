"""Options that `warmup`, `train` and `run` share: which data, which learner, how to train."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from prune4rel.cli.pairs import check_names, read_pairs, read_value

if TYPE_CHECKING:
    from prune4rel.data import Dataset
    from prune4rel.decisions import Settled
    from prune4rel.training import TrainingPlan

DATA, MODEL = "Data", "Model and training"

DatasetName = Annotated[str, Option("--dataset", help="See `prune4rel datasets`.", rich_help_panel=DATA)]
DataFolder = Annotated[Path | None, Option("--data", help="The folder (or file) it lies in.", rich_help_panel=DATA)]
DataOptions = Annotated[
    list[str] | None,
    Option("--option", help="An option of the data set as NAME=VALUE, like noise=worst; repeat.", rich_help_panel=DATA),
]
LabelsFile = Annotated[
    Path | None, Option("--labels", help="Other labels for the training examples, one each.", rich_help_panel=DATA)
]
SkipBroken = Annotated[
    bool, Option("--skip-broken", help="Go on without image files that cannot be read.", rich_help_panel=DATA)
]
DECISIONS = "What people settled: decisions.jsonl of `prune4rel review`, or a CSV."
Decisions = Annotated[Path | None, Option("--decisions", help=DECISIONS, rich_help_panel=DATA)]
LearnerName = Annotated[str, Option("--learner", help="See `prune4rel learners`.", rich_help_panel=MODEL)]
LearnerOptions = Annotated[
    list[str] | None,
    Option("--learner-option", help="An option of the learner as NAME=VALUE; repeat.", rich_help_panel=MODEL),
]
NetworkName = Annotated[
    str | None,
    Option("--network", help="preact-resnet18, small-cnn, mlp or timm/NAME; fits the data.", rich_help_panel=MODEL),
]
NetworkOptions = Annotated[
    list[str] | None,
    Option("--network-option", help="An option of the network as NAME=VALUE; repeat.", rich_help_panel=MODEL),
]
TrainingOptions = Annotated[
    list[str] | None,
    Option(
        "--set",
        help="A setting of training as NAME=VALUE: batch, lr, scheme, weight_decay, clip, ema, ...; repeat.",
        rich_help_panel=MODEL,
    ),
]
Epochs = Annotated[int | None, Option("--epochs", help="Epochs of the whole training.", rich_help_panel=MODEL)]
WarmupEpochs = Annotated[int | None, Option("--warmup-epochs", help="Epochs of the warm-up.", rich_help_panel=MODEL)]
Seed = Annotated[int, Option("--seed", help="Of weights, order and augmentation.", rich_help_panel=MODEL)]
Device = Annotated[str, Option("--device", help="auto, cpu or cuda.", rich_help_panel=MODEL)]
Code = Annotated[
    list[str] | None,
    Option("--code", help="my_file:my_function that a file names and that may be run, too; repeat."),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress, no summary.")]


def values(pairs: list[str] | None, flag: str) -> dict[str, Any]:
    """Read NAME=VALUE pairs with values of their types."""
    return {name: read_value(text) for name, text in read_pairs(pairs, flag).items()}


def open_dataset(name: str, data: Path | None, options: list[str] | None, labels: Path | None) -> "Dataset":
    """Read the data set that was named."""
    from prune4rel.data import get, read_dataset

    given = values(options, "--option")
    check_names(f"data set {name!r}", given, get(name).options, flags=("data", "labels"))
    return read_dataset(name, data, labels, given)


def training_settings(pairs: list[str] | None) -> dict[str, Any]:
    """Read the settings of training that were given by ``--set``."""
    from dataclasses import fields

    from prune4rel.training.hyperparameters import Hyperparameters

    given = values(pairs, "--set")
    flags = ("learner", "network", "seed", "device", "warmup_epochs")
    check_names("training", given, [each.name for each in fields(Hyperparameters)], flags=flags)
    return given


def plan_from(
    dataset: "Dataset",
    learner: str,
    *,
    learner_option: list[str] | None,
    network: str | None,
    network_option: list[str] | None,
    settings: list[str] | None,
    epochs: int | None,
    warmup_epochs: int | None,
    seed: int,
) -> "TrainingPlan":
    """Resolve what was given into a plan."""
    from prune4rel.training import make_plan

    training = training_settings(settings)
    if epochs is not None:
        training["epochs"] = epochs
    return make_plan(
        dataset,
        learner,
        learner_options=values(learner_option, "--learner-option"),
        network=network,
        network_options=values(network_option, "--network-option"),
        warmup_epochs=warmup_epochs,
        seed=seed,
        training=training,
    )


def tell_settled(settled: "Settled") -> None:
    """Say what decisions came to, and which of them could not be used."""
    typer.echo(f"decisions: {settled.summary}", err=True)
    for line in (*settled.notes, *settled.refused):
        typer.secho(f"note: {line}", err=True, fg="yellow")
