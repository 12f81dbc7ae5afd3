"""``prune4rel run``: from a data set to a report."""

from pathlib import Path
from typing import Annotated, Any

from typer import Context, Option

from prune4rel.cli import app, task
from prune4rel.errors import InputError

WHAT, WHERE = "What to compare", "Output"


@app.command()
def run(
    context: Context,
    *,
    config: Annotated[
        Path | None, Option(help="A YAML file with these options; flags win over it.", rich_help_panel=WHERE)
    ] = None,
    dataset: task.DatasetName = "digits",
    data: task.DataFolder = None,
    option: task.DataOptions = None,
    labels: task.LabelsFile = None,
    skip_broken: task.SkipBroken = False,
    methods: Annotated[
        str,
        Option(help="Methods, with commas between; NAME/PRESET for a preset of prune4rel.", rich_help_panel=WHAT),
    ] = "prune4rel",
    ratios: Annotated[str, Option(help="Shares to keep, with commas between.", rich_help_panel=WHAT)] = "0.2",
    learners: Annotated[str, Option(help="Learners, with commas between.", rich_help_panel=WHAT)] = "sop+",
    seeds: Annotated[int, Option(help="How many repeats.", rich_help_panel=WHAT)] = 1,
    seed: Annotated[int, Option(help="Seed of the first.", rich_help_panel=WHAT)] = 0,
    balanced: Annotated[
        bool, Option("--balanced/--unbalanced", help="Go round the (noisy) classes.", rich_help_panel=WHAT)
    ] = True,
    everything: Annotated[
        bool, Option("--everything", help="Train on the whole set, too, to compare with.", rich_help_panel=WHAT)
    ] = False,
    warmup_learner: Annotated[
        str | None, Option(help="Share one learner's warm-up among all.", rich_help_panel=WHAT)
    ] = None,
    learner_option: task.LearnerOptions = None,
    network: task.NetworkName = None,
    network_option: task.NetworkOptions = None,
    settings: task.TrainingOptions = None,
    epochs: task.Epochs = None,
    warmup_epochs: task.WarmupEpochs = None,
    device: task.Device = "auto",
    parallel: Annotated[int, Option(help="Trainings at a time.", rich_help_panel=task.MODEL)] = 1,
    output: Annotated[
        Path | None, Option("--output", "-o", help="The folder everything goes to.", rich_help_panel=WHERE)
    ] = None,
    title: Annotated[str | None, Option(help="Heading of the report.", rich_help_panel=WHERE)] = None,
    time_budget: Annotated[
        str | None, Option(help="Like 2h or 90min: shrink or refuse what takes longer.", rich_help_panel=WHERE)
    ] = None,
    restart: Annotated[bool, Option("--restart", help="Begin anew in that folder.", rich_help_panel=WHERE)] = False,
    quiet: task.Quiet = False,
) -> None:
    """Warm up, select, train and report: the whole way from a data set to a page.

    prune4rel run --dataset cifar10n --data DIR --option noise=worst --methods uniform,prune4rel --ratios .1,.2 -o run

    Killed and run again, it goes on at the first unfinished step; a changed option redoes only what depends on it.
    The folder gets config.yaml (which --config takes), results.csv, report.html, and everything in between.
    """
    from prune4rel.cli.bar import best_progress
    from prune4rel.cli.closing import print_closing
    from prune4rel.pipeline import Config
    from prune4rel.pipeline import run as run_pipeline
    from prune4rel.pipeline.config import parse_duration, read_yaml
    from prune4rel.progress import Progress

    if output is None:
        raise InputError("say where everything should go: --output FOLDER")
    learner_list = _list(learners)
    given: dict[str, Any] = {
        "dataset": dataset,
        "data": None if data is None else str(data),
        "options": task.values(option, "--option"),
        "labels": None if labels is None else str(labels),
        "skip_broken": skip_broken,
        "methods": _list(methods),
        "ratios": [_number(text) for text in _list(ratios)],
        "learners": learner_list,
        "seeds": seeds,
        "seed": seed,
        "balanced": balanced,
        "everything": everything,
        "warmup_learner": warmup_learner,
        "learner_options": {name: task.values(learner_option, "--learner-option") for name in learner_list}
        if learner_option
        else {},
        "network": network,
        "network_options": task.values(network_option, "--network-option"),
        "training": task.values(settings, "--set"),
        "epochs": epochs,
        "warmup_epochs": warmup_epochs,
        "device": device,
        "parallel": parallel,
        "title": title,
    }
    renamed = {"option": "options", "learner_option": "learner_options", "network_option": "network_options"}
    renamed["settings"] = "training"
    if config is not None:
        told = {renamed.get(name, name) for name in given_on_command_line(context)}
        given = {**read_yaml(config), **{name: value for name, value in given.items() if name in told}}
    resolved = Config.from_dict(given, "" if config is None else f"{config}: ")
    listener = Progress() if quiet else best_progress()
    budget = None if time_budget is None else parse_duration(time_budget)
    done = run_pipeline(resolved, output, time_budget=budget, restart=restart, progress=listener)
    story, page = finish(done.folder, listener)
    if not quiet:
        print_closing(story)
        print_where(page)


def given_on_command_line(context: Context) -> set[str]:
    """Names of the parameters that were given as flags, rather than left at their defaults."""
    return {
        name for name in context.params if (found := context.get_parameter_source(name)) and found.name == "COMMANDLINE"
    }


def finish(folder: Path, listener: Any) -> tuple[Any, Path]:
    """Write the table and the report of a run, and return its story and where the page is."""
    from prune4rel.pipeline import collect
    from prune4rel.pipeline.summary import RESULTS, write_results
    from prune4rel.report import write_report

    story = collect(folder, listener)
    write_results(story, folder / RESULTS)
    page = folder / "report.html"
    write_report([story], page, force=True)
    return story, page


def print_where(page: Path) -> None:
    """Say where the report is."""
    from rich.console import Console

    Console(highlight=False).print(f"\nThe report: {page.resolve()}", soft_wrap=True, markup=False)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--ratios takes numbers with commas between, not {text!r}") from None
