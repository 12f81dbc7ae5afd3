"""``prune4rel clean``: embeddings and labels in; out, which labels are wrong and what they should be."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from prune4rel.cli import app, flags
from prune4rel.cli.flags import read_values, takes
from prune4rel.cli.source import SOURCE, SourceOptions
from prune4rel.errors import InputError, nearest

if TYPE_CHECKING:
    from prune4rel.cleaning import Cleaned
    from prune4rel.cleaning.write import Origin
    from prune4rel.data import Dataset

INPUT, JUDGING, OUTPUT = "Input", "Judging", "Output"
EMBEDDINGS, TRAINING = WAYS = ("embeddings", "training")


@app.command()
@takes(SourceOptions, without=("skip_broken",))
def clean(
    source: Annotated[Path | None, Argument(help=f"{SOURCE} Or --embeddings and --labels.")] = None,
    *,
    given: dict[str, Any],
    dataset: Annotated[
        str | None,
        Option("--dataset", help="Open SOURCE as this data set (`prune4rel datasets`).", rich_help_panel=INPUT),
    ] = None,
    option: Annotated[
        list[str] | None,
        Option("--option", help="An option of the data set as NAME=VALUE; repeat.", rich_help_panel=INPUT),
    ] = None,
    embeddings: Annotated[
        Path | None, Option(help="(n, d) feature vectors, dense or sparse (SciPy's .npz).", rich_help_panel=INPUT)
    ] = None,
    labels: Annotated[
        Path | None,
        Option(help="(n,) given labels: integers or class names; (n, A) are votes of A people.", rich_help_panel=INPUT),
    ] = None,
    probabilities: Annotated[
        Path | None,
        Option(help="(n, C) of your own model, out of fold; with embeddings or alone.", rich_help_panel=INPUT),
    ] = None,
    votes: Annotated[
        Path | None,
        Option(
            help="Instead of labels: CSV or Parquet, a vote a row (example, annotator, label).", rich_help_panel=INPUT
        ),
    ] = None,
    ids: Annotated[Path | None, Option(help="(n,) your own names for the examples.", rich_help_panel=INPUT)] = None,
    class_names: Annotated[
        Path | None, Option(help="Text file, one class name a line, in order.", rich_help_panel=INPUT)
    ] = None,
    test_embeddings: Annotated[
        Path | None, Option(help="(m, d) of the test split, to find what lies in both.", rich_help_panel=INPUT)
    ] = None,
    test_labels: Annotated[Path | None, Option(help="(m,) its labels.", rich_help_panel=INPUT)] = None,
    decisions: Annotated[Path | None, Option(help=flags.DECISIONS, rich_help_panel=INPUT)] = None,
    by: Annotated[
        str,
        Option(
            help="What judges: embeddings (seconds), or training, where no encoder knows the examples (as long as a "
            "training).",
            rich_help_panel=JUDGING,
        ),
    ] = EMBEDDINGS,
    epochs: Annotated[
        int | None, Option(help="Of that training; as many as suit the data unless told.", rich_help_panel=JUDGING)
    ] = None,
    noise_rate: Annotated[
        float | None,
        Option(
            min=0.0,
            max=0.99,
            help="Share of wrong labels, where you know it: look at a hundred chosen by chance.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    skip_broken: Annotated[
        bool, Option("--skip-broken", help="Go on without rows that hold NaN or infinity.", rich_help_panel=JUDGING)
    ] = False,
    seed: Annotated[int, Option(help="Of folds.", rich_help_panel=JUDGING)] = 0,
    device: Annotated[str, Option(help="auto, cpu or cuda.", rich_help_panel=JUDGING)] = "auto",
    engine: Annotated[
        str, Option(help="local, or ray for a cluster; the same flags.", rich_help_panel=JUDGING)
    ] = "local",
    ray_address: Annotated[
        str | None, Option(help="Address of a running Ray cluster; else Ray starts here.", rich_help_panel=JUDGING)
    ] = None,
    output: flags.FolderOutput = None,
    force: Annotated[
        bool, Option("--force", help="Replace such a folder; decisions in it stay.", rich_help_panel=OUTPUT)
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the estimate and stop.", rich_help_panel=OUTPUT)] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress, no summary.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Find wrong labels, and say what they should be: in seconds, without a network being trained.

    prune4rel clean photos/ -o cleaned, or: prune4rel clean --embeddings E.npy --labels y.npy -o cleaned

    Images and texts are turned into vectors by a pretrained network (--encoder); vectors of your own, out-of-fold
    probabilities of your own model, or both do, too. Medical images, spectrograms, measurements, which no encoder
    knows: --by training trains a network on them, and judges by what it said before it learnt. The folder gets
    labels.parquet and labels.csv, noise.json, signals/ to select from, duplicates.parquet and report.html;
    `prune4rel review cleaned` opens it to decide.
    """
    from prune4rel.cleaning.write import Origin, check_folder
    from prune4rel.cli.bar import best_progress
    from prune4rel.progress import Progress

    files = {
        "embeddings": embeddings,
        "labels": labels,
        "probabilities": probabilities,
        "votes": votes,
        "ids": ids,
        "test_embeddings": test_embeddings,
        "test_labels": test_labels,
    }
    present = {name: file for name, file in files.items() if file is not None}
    if output is None and not dry_run:
        raise InputError("say where everything should go: --output FOLDER (or --dry-run for an estimate only)")
    if output is not None and not dry_run:
        check_folder(output, force=force)
    options = SourceOptions(**given, skip_broken=skip_broken)
    progress = Progress() if quiet else best_progress()
    data, origin = _open(source, dataset, option, options, quiet=quiet)
    how: dict[str, Any] = {
        "decisions": decisions,
        "skip_broken": skip_broken,
        "seed": seed,
        "device": device,
        "progress": progress,
    }
    if _is_by_training(by, epochs, engine, noise_rate):
        data = _to_train_on(origin, present, options)
        if dry_run:
            _estimate_training(data, epochs, device)
            return
        found: Cleaned | None = _by_training(data, output, epochs, how)
    else:
        names = {} if class_names is None else {"class_names": flags.read_names(class_names)}
        how |= {"engine": engine, "ray_address": ray_address, "noise_rate": noise_rate}
        found = _by_embeddings(data, origin, present, names, options, how, dry_run=dry_run)
    if found is None:
        return
    if output is None:
        raise AssertionError("checked above")
    origin = origin or Origin(files={name: str(file.resolve()) for name, file in present.items()})
    found.save(output, source=origin, force=force)
    if found.settled is not None:
        flags.tell_settled(found.settled)
    if not quiet:
        from prune4rel.cli.tables import print_cleaned

        print_cleaned(found, output)
        if decisions is None and (output / "decisions.jsonl").is_file():
            import typer

            kept = output / "decisions.jsonl"
            typer.secho(f"note: {kept} was not used; add --decisions {kept}", err=True, fg="yellow")


def _by_embeddings(
    data: Any,
    origin: "Origin | None",
    present: dict[str, Path],
    names: dict[str, Any],
    options: SourceOptions,
    how: dict[str, Any],
    *,
    dry_run: bool,
) -> "Cleaned | None":
    """Judge by vectors of the user's or of an encoder, or by probabilities; None where only the time is told."""
    import time
    import warnings
    from dataclasses import replace

    from prune4rel import cleaning
    from prune4rel.cleaning.encode import described
    from prune4rel.cli.source import encoded, tell_encoding

    before: dict[str, float] = {}
    with flags.naming(present):
        arrays: dict[str, Any] = {name: _read(name, file) for name, file in present.items()} | names
        if (examples := _to_encode(origin, options)) is not None:
            if "embeddings" not in arrays and dry_run:
                tell_encoding(examples, options, how["device"])
                return None
            begin = time.monotonic()
            if "embeddings" in arrays:
                own = described(examples, how["progress"])
            else:
                own = encoded(examples, options, how["device"], how["progress"])
            before["encoding"] = time.monotonic() - begin
            data, arrays = None, {**own, **arrays}
        if dry_run:
            _print_estimate(data, arrays, skip_broken=how["skip_broken"])
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # they are among the notes
            found = cleaning.clean(data, **arrays, **how)
            return replace(found, seconds=before | found.seconds)


def _is_by_training(by: str, epochs: int | None, engine: str, noise_rate: float | None) -> bool:
    """Tell which way to judge, and refuse what is none."""
    if by not in WAYS:
        raise InputError(f"--by: unknown {by!r}; {nearest(by, WAYS)}", "by")
    if by == EMBEDDINGS and epochs is not None:
        raise InputError("--epochs is for --by training", "epochs")
    if by == TRAINING and engine != "local":
        raise InputError("--engine is for judging by embeddings; with --by training leave it out", "engine")
    if by == TRAINING and noise_rate is not None:
        raise InputError("--noise-rate is for judging by embeddings; with --by training leave it out", "noise_rate")
    return by == TRAINING


def _to_train_on(origin: "Origin | None", present: dict[str, Path], options: SourceOptions) -> "Dataset":
    """Return the data set, if a network can learn it."""
    if origin is None or origin.opened is None or present:
        raise InputError(
            "--by training learns from a SOURCE of images, or of features with --dataset arrays, and nothing else; "
            "leave arrays out",
            "by",
        )
    if options.about_encoder:
        raise InputError("--encoder and what belongs to it are not for --by training; leave them out", "encoder")
    return origin.opened


def _estimate_training(data: "Dataset", epochs: int | None, device: str) -> None:
    """Say how long a training would take, judged by a few steps of it."""
    import typer

    from prune4rel.cleaning.by_training import LEARNER
    from prune4rel.machine import format_seconds
    from prune4rel.pipeline import Config
    from prune4rel.pipeline.estimate import seconds_a_step

    config = Config(dataset=data.name, learners=(LEARNER,), epochs=epochs, device=device)
    settings = config.plan(data, LEARNER).hyperparameters
    steps = settings.epochs * max(1, len(data.train) // settings.batch)
    seconds = format_seconds(steps * seconds_a_step(config, data, LEARNER))
    typer.echo(
        f"{len(data.train):,} examples, {settings.epochs} epochs, {steps:,} steps: about {seconds} on this machine"
    )


def _by_training(data: "Dataset", output: Path | None, epochs: int | None, how: dict[str, Any]) -> "Cleaned":
    """Judge by a training, whose checkpoints lie beside the folder until it is there."""
    from shutil import rmtree

    from prune4rel.cleaning.by_training import clean_by_training

    if output is None:
        raise AssertionError("checked before")
    states = output.with_name(f".{output.name}.training")
    found = clean_by_training(data, folder=states, epochs=epochs, **how)
    rmtree(states, ignore_errors=True)
    return found


def _print_estimate(data: Any, given: dict[str, Any], *, skip_broken: bool) -> None:
    """Say how long it would take, and what memory."""
    import typer

    from prune4rel.cleaning import describe, prepare

    typer.echo(describe(prepare(data, **given, skip_broken=skip_broken)))


def _open(
    source: Path | None, dataset: str | None, option: list[str] | None, options: SourceOptions, *, quiet: bool
) -> tuple[Any, "Origin | None"]:
    """Open what lies at SOURCE; it is known how it can be opened again."""
    further = read_values(option, "--option")
    if source is None and dataset is None:
        if further or any(options.columns.values()):
            raise InputError("--option and columns are for data sets: name a SOURCE, or --dataset")
        return None, None
    from prune4rel.cleaning.write import Origin
    from prune4rel.cli.source import open_source
    from prune4rel.steps.data import DataOptions

    if dataset is None and source is not None:
        found = open_source(source, options, further, quiet=quiet)
        return found.dataset, Origin(found.name, str(found.place), found.options, found.dataset)
    named = {name: value for name, value in options.columns.items() if value is not None}
    place, given = (None, None) if source is None else (str(source.expanduser().resolve()), str(source))
    opened = flags.open_dataset(DataOptions(dataset=dataset or "", data=given, options={**named, **further}))
    return opened, Origin(dataset, place, {**named, **further}, opened)


def _to_encode(origin: "Origin | None", options: SourceOptions) -> "Dataset | None":
    """Return the data set if it holds images or texts; an encoder for anything else is refused."""
    if origin is not None and origin.opened is not None and origin.opened.kind != "features":
        return origin.opened
    if options.about_encoder:
        raise InputError("--encoder and what belongs to it are for images and texts; leave them out", "encoder")
    return None


def _read(name: str, path: Path) -> Any:
    from prune4rel.cleaning.inputs import read_rows
    from prune4rel.shards import read_whole

    if name == "votes":
        return path
    return read_rows(path, name) if name.endswith(("embeddings", "probabilities")) else read_whole(path, name)
