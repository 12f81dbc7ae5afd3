"""``prune4rel select``: arrays in, subset out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from prune4rel.cli import app, flags
from prune4rel.cli.flags import check_names, read_pairs, read_values, takes_options_of
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from prune4rel.signals import Signals

INPUT = "Input"
WHAT = "What to select"
TUNING = "Options of the method prune4rel"
SCALE = "Many machines (inputs may be folders or URLs of shards)"
OUTPUT = "Output"


@app.command()
@takes_options_of("prune4rel", panel=TUNING)
def select(
    *,
    options: dict[str, Any],
    signals: Annotated[
        str | None,
        Option(help="Saved signals: a folder of .npy, .npz, .safetensors or .parquet.", rich_help_panel=INPUT),
    ] = None,
    embeddings: Annotated[str | None, Option(help="(n, d) feature vectors.", rich_help_panel=INPUT)] = None,
    probabilities: Annotated[str | None, Option(help="(n, C) class probabilities.", rich_help_panel=INPUT)] = None,
    labels: Annotated[
        str | None, Option(help="(n,) given labels: integers or class names.", rich_help_panel=INPUT)
    ] = None,
    signal: Annotated[
        list[str] | None,
        Option(help="A further signal as NAME=FILE (losses, aum, ids, ...); repeat.", rich_help_panel=INPUT),
    ] = None,
    class_names: Annotated[
        Path | None,
        Option(help="Text file, one class name a line, in the order of the probabilities.", rich_help_panel=INPUT),
    ] = None,
    decisions: Annotated[Path | None, Option(help=flags.DECISIONS, rich_help_panel=INPUT)] = None,
    method: Annotated[str, Option(help="See `prune4rel methods`.", rich_help_panel=WHAT)] = "prune4rel",
    ratio: Annotated[float | None, Option(help="Share of the examples to keep.", rich_help_panel=WHAT)] = None,
    size: Annotated[int | None, Option(help="Number of examples to keep.", rich_help_panel=WHAT)] = None,
    balanced: Annotated[
        bool, Option("--balanced/--unbalanced", help="Go round the (noisy) classes.", rich_help_panel=WHAT)
    ] = False,
    seed: Annotated[int, Option(help="For methods that draw at random.", rich_help_panel=WHAT)] = 0,
    device: Annotated[str, Option(help="auto, cpu or cuda; never changes the picks.", rich_help_panel=WHAT)] = "auto",
    option: Annotated[
        list[str] | None, Option(help="An option of another method as NAME=VALUE; repeat.", rich_help_panel=WHAT)
    ] = None,
    initial: Annotated[
        Path | None,
        Option(help="Start from these picks: a saved selection, or .npy indices.", rich_help_panel=TUNING),
    ] = None,
    engine: Annotated[
        str, Option(help="local, or ray for a cluster; never changes the picks.", rich_help_panel=SCALE)
    ] = "local",
    ray_address: Annotated[
        str | None, Option(help="Address of a running Ray cluster; else Ray starts here.", rich_help_panel=SCALE)
    ] = None,
    work_dir: Annotated[
        Path | None, Option(help="Keeps finished tiles, so that a run can go on.", rich_help_panel=SCALE)
    ] = None,
    partitions: Annotated[
        int | None, Option(help="Pick in so many parts, then among their picks; approximate.", rich_help_panel=SCALE)
    ] = None,
    ann: Annotated[
        bool, Option("--ann", help="Look for neighbours in likely places only; approximate.", rich_help_panel=SCALE)
    ] = False,
    ann_share: Annotated[
        float | None, Option(help="Share of the neighbours that --ann aims at (0.97).", rich_help_panel=SCALE)
    ] = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="NAME.parquet, or NAME.npy for indices alone.", rich_help_panel=OUTPUT),
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing output.", rich_help_panel=OUTPUT)] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the estimate and stop.", rich_help_panel=OUTPUT)] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress, no summary.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Choose a subset of the training examples.

    Needs, for each example, the given label, and the probabilities and the feature vector a briefly warmed-up
    model gives it:

    prune4rel select --embeddings E.npy --probabilities P.npy --labels y.npy --ratio 0.2 --balanced -o subset.parquet
    """
    from prune4rel.cli.bar import best_progress
    from prune4rel.methods import get
    from prune4rel.progress import Progress
    from prune4rel.storage import check_writable

    files = {"embeddings": embeddings, "probabilities": probabilities, "labels": labels}
    files |= read_pairs(signal, "--signal")
    present = {name: file for name, file in files.items() if file is not None}
    if output is None and not dry_run:
        raise InputError("say where the subset should go: --output NAME.parquet (or --dry-run for an estimate only)")
    if output is not None and not dry_run:
        if output.suffix not in (".parquet", ".npy"):
            raise InputError(f"{output}: a selection is saved as .parquet, or its indices alone as .npy")
        check_writable(output, force=force, keep=[*present.values(), signals, initial, class_names])
    if dry_run and engine == "ray":
        raise InputError("--dry-run looks at the data from this machine; for a cluster there is `prune4rel plan`")
    if initial is not None:
        options["initial"] = _read_initial(initial)
    common = {"ratio": ratio, "size": size, "balanced": balanced, "seed": seed, "device": device}
    scale: dict[str, Any] = {"engine": engine, "ray_address": ray_address, "work_dir": work_dir}
    likely = {"ann": ann, "ann_share": ann_share}
    scale |= {"partitions": partitions, **likely}
    further = read_values(option, "--option")
    check_names(
        f"method {method!r}",
        further,
        [name for name in get(method).options if name != "initial"],
        flags=[*files, *common, *scale, "initial", "method", "signals"],
    )
    options |= further
    try:
        if engine != "ray":
            loaded = _settled(_load(signals, present, class_names), decisions, quiet=quiet)
            if dry_run:
                _estimate(loaded, method, device, options | likely)
                return
            given = {"signals": loaded}
        else:
            given = _refer(signals, present, class_names, decisions)
        progress = Progress() if quiet else best_progress()
        _run(method, given | common | scale | options | {"progress": progress}, output, force, quiet)
    except InputError as error:
        if error.field in present and not str(error).startswith(str(present[error.field])):
            raise InputError(f"{present[error.field]}: {error}", error.field) from None
        raise


def _load(signals: str | None, files: dict[str, str], class_names: Path | None) -> "Signals":
    from prune4rel.signals import Signals
    from prune4rel.storage import read_array

    given = _refer(signals, files, class_names)
    if "signals" in given:
        return Signals.load(given["signals"])
    names = given.pop("class_names")
    return Signals(class_names=names, **{name: read_array(file, name) for name, file in given.items()})


def _settled(signals: "Signals", decisions: Path | None, *, quiet: bool) -> "Signals":
    """Make what a person settled certain, and take out what a person removed."""
    from prune4rel.decisions import settle_from, settle_signals

    if decisions is None:
        return signals
    found = settle_from(decisions, len(signals), signals.class_names, given_label=signals.labels, ids=signals.ids)
    if not quiet:
        flags.tell_settled(found)
    return settle_signals(signals, found)


def _refer(
    signals: str | None, files: dict[str, str], class_names: Path | None, decisions: Path | None = None
) -> dict[str, Any]:
    """Name what there is to select from, nothing of it read but the class names."""
    from prune4rel.signals import Signals

    if decisions is not None:
        raise InputError("--decisions changes signals that are read here; with --engine ray leave it out")
    if signals is not None:
        if files:
            raise InputError(
                f"pass either --signals or single arrays, not both (got --signals and --{next(iter(files))})"
            )
        return {"signals": signals}
    if "labels" not in files:
        raise InputError("no labels: pass --labels FILE, or --signals PATH")
    known = {name for name, field in Signals.__dataclass_fields__.items() if field.init}
    for name in files:
        if name not in known:
            raise InputError(f"--signal: unknown signal {name!r}; known are {', '.join(sorted(known))}")
    return {"class_names": None if class_names is None else _read_names(class_names), **files}


def _read_names(path: Path) -> tuple[str, ...]:
    from prune4rel.reading import read_text

    return tuple(read_text(path, "text file in UTF-8 of class names, one a line").removesuffix("\n").split("\n"))


def _run(method: str, given: dict[str, Any], output: Path | None, force: bool, quiet: bool) -> None:
    import prune4rel as p4r
    from prune4rel.cli.tables import print_selection

    chosen = p4r.select(method, **given)
    if output is None:
        raise AssertionError("checked above")
    chosen.save(output, force=force)
    if not quiet:
        print_selection(chosen, output)


def _estimate(signals: "Signals", method: str, device: str, options: dict[str, Any]) -> None:
    import typer

    from prune4rel.machine import memory_budget
    from prune4rel.methods import get
    from prune4rel.methods.run import estimate

    initial = options.pop("initial", None)
    del initial  # it changes nothing here
    found = estimate(method, signals, device=device, **options)
    if found is None:
        typer.echo(f"{method}: {get(method).cost}")
        return
    fits = found.graph_bytes <= memory_budget(options.get("memory"))
    typer.echo(found.describe())
    typer.echo("The graph fits the memory." if fits else "The graph does NOT fit the memory (see --memory).")


def _read_initial(path: Path | None) -> Any:
    from prune4rel.selection import Selection
    from prune4rel.storage import read_array

    if path is None:
        return None
    return Selection.load(path).indices if path.suffix == ".parquet" else read_array(path, "initial")
