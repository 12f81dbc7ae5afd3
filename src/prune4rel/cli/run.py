"""``prune4rel run``: from a data set to a report."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, echo

from prune4rel.cli import app, flags
from prune4rel.cli.flags import takes
from prune4rel.cli.source import SOURCE, ColumnOptions
from prune4rel.errors import InputError
from prune4rel.steps import StepOptions

if TYPE_CHECKING:
    from prune4rel.pipeline import Config
    from prune4rel.progress import Progress

WHERE = "Output"


@dataclass(frozen=True)
class RunOptions(StepOptions, ColumnOptions):
    """The options of a run, and which column of a table is what."""


@app.command()
@takes(RunOptions)
def run(
    source: Annotated[Path | None, Argument(help=f"{SOURCE} Or --dataset and --data.")] = None,
    *,
    given: dict[str, Any],
    config: Annotated[
        Path | None, Option(help="A YAML file with these options; flags win over it.", rich_help_panel=WHERE)
    ] = None,
    output: flags.FolderOutput = None,
    code: flags.Code = None,
    time_budget: Annotated[
        str | None, Option(help="Like 2h or 90min: shrink or refuse what takes longer.", rich_help_panel=WHERE)
    ] = None,
    restart: Annotated[bool, Option("--restart", help="Begin anew in that folder.", rich_help_panel=WHERE)] = False,
    verify: Annotated[
        bool, Option("--verify", help="Compare all files of that folder with what was written.", rich_help_panel=WHERE)
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say what it would do and how long that takes, and stop.", rich_help_panel=WHERE)
    ] = False,
    quiet: flags.Quiet = False,
) -> None:
    """Select by several methods, train on what each picked, and report: the whole way from a data set to a page.

    prune4rel run photos/ --methods uniform,prune4rel --ratios .1,.2 -o run

    Of a SOURCE of images or texts an encoder makes vectors, and small networks learn from these; --network timm/NAME
    trains a network on the images instead. The sets of papers go by name:

    prune4rel run --dataset cifar10n --data DIR --option noise=worst --methods uniform,prune4rel -o run

    Killed and run again, it goes on at the first unfinished step; a changed option redoes only what depends on it.
    The folder gets config.yaml (which --config takes), results.csv, report.html, and everything in between.
    """
    from prune4rel.cli.bar import best_progress
    from prune4rel.cli.tables import print_facts
    from prune4rel.pipeline import Config, describe
    from prune4rel.pipeline import run as run_pipeline
    from prune4rel.pipeline.config import parse_duration, read_yaml
    from prune4rel.progress import Progress
    from prune4rel.steps.select import names_of_code

    if output is None:
        raise InputError("say where everything should go: --output FOLDER")
    named = names_of_code(given.get("methods", ()))
    own_options = given.pop("learner_options", {})
    if config is not None:
        given = merged(read_yaml(config), given)
    given = _of_source(source, given, quiet=quiet)
    own_options = _by_learner(own_options, given)
    if own_options:
        given = merged(given, {"learner_options": own_options})
    resolved = Config.from_dict(given, "" if config is None else f"{config}: ", code={*named, *(code or ())})
    flags.require_data(given, "run")
    if source is not None:
        resolved = _with_encoder(resolved, quiet=quiet)
    listener = Progress() if quiet else best_progress()
    budget = None if time_budget is None else parse_duration(time_budget)
    if not quiet and resolved.decisions is not None:
        flags.tell_settled_of(resolved)
    if dry_run:
        print_facts(describe(resolved, output, time_budget=budget))
        return
    done = run_pipeline(resolved, output, time_budget=budget, restart=restart, verify=verify, progress=listener)
    if done.config.select_only:
        echo(f"The selections: {(done.folder / 'selections').resolve()}")
        return
    finish(done.folder, listener, quiet=quiet)


def _of_source(source: Path | None, given: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Put in what a SOURCE comes to, as a data set and its options; what was guessed is said."""
    from prune4rel.data import recognise

    columns = {name.removesuffix("_column"): given.pop(name) for name in list(given) if name.endswith("_column")}
    if source is None:
        if columns:
            raise InputError("columns are for a SOURCE; name one")
        return given
    if given.get("data") is not None:
        raise InputError("a SOURCE and --data are two data sets; leave one out")
    further = given.get("options") or {}
    if given.get("dataset") is not None:
        return {**given, "data": str(source), "options": {**columns, **further}}
    found = recognise(source, options=further, skip_missing=bool(given.get("skip_broken")), **columns)
    for line in () if quiet else found.said:
        echo(line, err=True)
    return {**given, "dataset": found.dataset, "data": str(found.data.absolute()), "options": dict(found.options)}


def _with_encoder(config: "Config", *, quiet: bool) -> "Config":
    """Take the usual encoder for images and texts, unless an encoder or a network was named."""
    from prune4rel.encoders import default_encoder
    from prune4rel.steps.data import open_examples

    if config.encoder is not None or config.network is not None:
        return config
    kind = open_examples(config).kind
    if kind == "features":
        return config
    name = default_encoder(kind)
    if not quiet:
        echo(f"encoder: {name} (--encoder names another one, --network a network to train on the {kind})", err=True)
    return config.changed(encoder=name)


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
    from prune4rel.steps.select import learners_named

    names, methods = (
        value if isinstance(value, list | tuple) else [value]
        for value in (given.get("learners", "sop+"), given.get("methods", ()))
    )
    names = [*names, *learners_named(methods)]
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
    from prune4rel.pipeline.collect import RESULTS, gather, write_results
    from prune4rel.report import write_report

    with only_one(folder):
        found = gather(folder, listener)
        write_results(found.cells, folder / RESULTS)
        page = folder / "report.html"
        write_report([found.story], page, force=True)
    if not quiet:
        print_run(found)
        echo(f"\nThe report: {page.resolve()}")
