"""``prune4rel run``: from a data set to a report."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Option, echo

from prune4rel.cli import app, task
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from prune4rel.progress import Progress

WHAT, WHERE = "What to compare", "Output"
FLAGS = {"option": "options", "network_option": "network_options", "settings": "training"}
"""Flags whose keys in a configuration are called otherwise."""


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
    code: task.Code = None,
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
    from prune4rel.pipeline import Config
    from prune4rel.pipeline import run as run_pipeline
    from prune4rel.pipeline.config import parse_duration, read_yaml
    from prune4rel.progress import Progress
    from prune4rel.steps.select import names_of_code

    if output is None:
        raise InputError("say where everything should go: --output FOLDER")
    given: dict[str, Any] = {
        "dataset": dataset,
        "data": None if data is None else str(data),
        "options": task.values(option, "--option"),
        "labels": None if labels is None else str(labels),
        "skip_broken": skip_broken,
        "methods": _list(methods),
        "ratios": [_number(text) for text in _list(ratios)],
        "learners": _list(learners),
        "seeds": seeds,
        "seed": seed,
        "balanced": balanced,
        "everything": everything,
        "warmup_learner": warmup_learner,
        "network": network,
        "network_options": task.values(network_option, "--network-option"),
        "training": task.training_settings(settings),
        "epochs": epochs,
        "warmup_epochs": warmup_epochs,
        "device": device,
        "parallel": parallel,
        "title": title,
    }
    if config is not None:
        told = {FLAGS.get(name, name) for name in given_on_command_line(context)}
        named = names_of_code(given["methods"]) if "methods" in told else set()
        given = merged(read_yaml(config), {name: value for name, value in given.items() if name in told})
    else:
        named = names_of_code(given["methods"])
    own_options = _by_learner(task.values(learner_option, "--learner-option"), given)
    if own_options:
        given = merged(given, {"learner_options": own_options})
    resolved = Config.from_dict(given, "" if config is None else f"{config}: ", code={*named, *(code or ())})
    listener = Progress() if quiet else best_progress()
    budget = None if time_budget is None else parse_duration(time_budget)
    done = run_pipeline(resolved, output, time_budget=budget, restart=restart, progress=listener)
    if done.config.select_only:
        echo(f"The selections: {(done.folder / 'selections').resolve()}")
        return
    finish(done.folder, listener, quiet=quiet)


def given_on_command_line(context: Context) -> set[str]:
    """Names of the parameters that were given as flags, rather than left at their defaults."""
    return {
        name for name in context.params if (found := context.get_parameter_source(name)) and found.name == "COMMANDLINE"
    }


def merged(values: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Let flags win over values, one by one also inside mappings.

    >>> merged({"training": {"lr": 0.1, "batch": 8}, "seed": 0}, {"training": {"lr": 0.2}})
    {'training': {'lr': 0.2, 'batch': 8}, 'seed': 0}
    """
    found = dict(values)
    for name, flag in flags.items():
        before = found.get(name)
        both = isinstance(before, Mapping) and isinstance(flag, Mapping)
        found[name] = merged(before, flag) if both else flag  # type: ignore[arg-type]
    return found


def _by_learner(options: dict[str, Any], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give each learner those of the options that it has; an option that none of them has is refused."""
    from prune4rel.errors import nearest
    from prune4rel.learners import get

    names = given.get("learners", "sop+")
    names = names if isinstance(names, list | tuple) else [names]
    known = {name: get(name).options for name in dict.fromkeys([*names, *filter(None, [given.get("warmup_learner")])])}
    everyones = list(dict.fromkeys(option for own in known.values() for option in own))
    for option in options:
        if option not in everyones:
            raise InputError(f"--learner-option: no learner here has {option!r}; {nearest(option, everyones)}")
    found = {name: {key: value for key, value in options.items() if key in own} for name, own in known.items()}
    return {name: own for name, own in found.items() if own}


def finish(folder: Path, listener: "Progress", *, quiet: bool = False) -> None:
    """Write the table and the report of a run, and say what it came to."""
    from prune4rel.cli.tables import print_run
    from prune4rel.lock import only_one
    from prune4rel.pipeline.collect import gather
    from prune4rel.pipeline.summary import RESULTS, write_results
    from prune4rel.report import write_report

    with only_one(folder):
        found = gather(folder, listener)
        write_results(found.cells, folder / RESULTS)
        page = folder / "report.html"
        write_report([found.story], page, force=True)
    if not quiet:
        print_run(found)
        echo(f"\nThe report: {page.resolve()}")


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--ratios takes numbers with commas between, not {text!r}") from None
