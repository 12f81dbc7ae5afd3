"""``prune4rel clean``: embeddings and labels in; out, which labels are wrong and what they should be."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from prune4rel.cli import app, task
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from prune4rel.cleaning.write import Origin

INPUT, JUDGING, OUTPUT = "Input", "Judging", "Output"


@app.command()
def clean(
    source: Annotated[
        Path | None, Argument(help="A file or folder of arrays (labels, features, ...), or --embeddings and --labels.")
    ] = None,
    *,
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
    decisions: Annotated[Path | None, Option(help=task.DECISIONS, rich_help_panel=INPUT)] = None,
    skip_broken: Annotated[
        bool, Option("--skip-broken", help="Go on without rows that hold NaN or infinity.", rich_help_panel=JUDGING)
    ] = False,
    seed: Annotated[int, Option(help="Of folds.", rich_help_panel=JUDGING)] = 0,
    device: Annotated[str, Option(help="auto, cpu or cuda.", rich_help_panel=JUDGING)] = "auto",
    output: Annotated[
        Path | None, Option("--output", "-o", help="The folder everything goes to.", rich_help_panel=OUTPUT)
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Replace such a folder; decisions in it stay.", rich_help_panel=OUTPUT)
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the estimate and stop.", rich_help_panel=OUTPUT)] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress, no summary.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Find wrong labels, and say what they should be: in seconds, without a network being trained.

    prune4rel clean --embeddings E.npy --labels y.npy -o cleaned

    Needs feature vectors of a pretrained network (one that did not see these labels), or out-of-fold probabilities of
    your own model, or both. The folder gets labels.parquet and labels.csv, noise.json, signals/ to select from,
    duplicates.parquet and report.html; `prune4rel review cleaned` opens it to decide.
    """
    import warnings

    from prune4rel import cleaning
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
    data, origin = _open(source, dataset, option)
    try:
        given: dict[str, Any] = {name: _read(name, file) for name, file in present.items()}
        given["class_names"] = None if class_names is None else _names(class_names)
        if dry_run:
            _print_estimate(data, given, skip_broken=skip_broken)
            return
        progress = Progress() if quiet else best_progress()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # they are among the notes
            found = cleaning.clean(
                data,
                **given,
                decisions=decisions,
                skip_broken=skip_broken,
                seed=seed,
                device=device,
                progress=progress,
            )
    except InputError as error:
        if error.field in present and not str(error).startswith(str(present[error.field])):
            raise InputError(f"{present[error.field]}: {error}", error.field) from None
        raise
    if output is None:
        raise AssertionError("checked above")
    origin = origin or Origin(files={name: str(file.resolve()) for name, file in present.items()})
    found.save(output, source=origin, force=force)
    if found.settled is not None:
        task.tell_settled(found.settled)
    if not quiet:
        from prune4rel.cli.tables import print_cleaned

        print_cleaned(found, output)
        if decisions is None and (output / "decisions.jsonl").is_file():
            import typer

            kept = output / "decisions.jsonl"
            typer.secho(f"note: {kept} was not used; add --decisions {kept}", err=True, fg="yellow")


def _print_estimate(data: Any, given: dict[str, Any], *, skip_broken: bool) -> None:
    """Say how long it would take, and what memory."""
    import typer

    from prune4rel.cleaning import describe, prepare

    typer.echo(describe(prepare(data, **given, skip_broken=skip_broken)))


def _open(source: Path | None, dataset: str | None, option: list[str] | None) -> tuple[Any, "Origin | None"]:
    """Open what lies at SOURCE; it is known how it can be opened again."""
    if source is None and dataset is None:
        if option:
            raise InputError("--option is for data sets: name a SOURCE, or --dataset")
        return None, None
    from prune4rel.cleaning.write import Origin
    from prune4rel.cli.pairs import read_values
    from prune4rel.steps.data import DataOptions

    name, place = dataset or "arrays", None if source is None else str(source.expanduser().resolve())
    options = read_values(option, "--option")
    given = None if source is None else str(source)
    opened = task.open_dataset(DataOptions(dataset=name, data=given, options=options))
    return opened, Origin(name, place, options, opened)


def _read(name: str, path: Path) -> Any:
    from prune4rel.cleaning.inputs import read_column, read_rows

    if name == "votes":
        return path
    return read_rows(path, name) if name.endswith(("embeddings", "probabilities")) else read_column(path, name)


def _names(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text, one class name a line ({error})") from None
