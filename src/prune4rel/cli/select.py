"""``prune4rel select``: arrays in, subset out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from prune4rel.cli import app, flags
from prune4rel.cli.flags import check_names, read_pairs, read_values, takes, takes_options_of
from prune4rel.cli.source import SOURCE, SourceOptions
from prune4rel.errors import InputError
from prune4rel.steps.embed import ENCODER

if TYPE_CHECKING:
    from prune4rel.progress import Progress
    from prune4rel.signals import Signals

INPUT = "Input"
WHAT = "What to select"
TUNING = "Options of the method prune4rel"
SCALE = "Many machines (inputs may be folders or URLs of shards)"
OUTPUT = "Output"


@app.command()
@takes_options_of("prune4rel", panel=TUNING)
@takes(SourceOptions, without=("image_size",))
def select(
    source: Annotated[
        Path | None,
        Argument(help=f"{SOURCE} Its labels are judged first, as `clean` does; or what `clean` wrote. Or arrays:"),
    ] = None,
    *,
    given: dict[str, Any],
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
    image_size: Annotated[
        int | None,
        Option(help="Height and width an encoder gets to see; its own unless told.", rich_help_panel=ENCODER),
    ] = None,
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
        Option(
            "--output", "-o", help="NAME.parquet, .csv, .txt (ids or paths) or .npy (indices).", rich_help_panel=OUTPUT
        ),
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing output.", rich_help_panel=OUTPUT)] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the estimate and stop.", rich_help_panel=OUTPUT)] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress, no summary.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Choose a subset of the training examples.

    Of images, texts or vectors, whose labels are judged first: prune4rel select photos/ --ratio 0.2 -o picks.txt

    Of arrays: the given label of each example, and the probabilities and the feature vector that a briefly warmed-up
    model gives it:

    prune4rel select --embeddings E.npy --probabilities P.npy --labels y.npy --ratio 0.2 --balanced -o subset.parquet
    """
    from prune4rel.cli.bar import best_progress
    from prune4rel.methods import get
    from prune4rel.progress import Progress
    from prune4rel.selection import check_suffix
    from prune4rel.storage import check_writable

    files = {"embeddings": embeddings, "probabilities": probabilities, "labels": labels}
    files |= read_pairs(signal, "--signal")
    present = {name: file for name, file in files.items() if file is not None}
    if output is None and not dry_run:
        raise InputError("say where the subset should go: --output NAME.parquet (or --dry-run for an estimate only)")
    if output is not None:
        check_suffix(output)
        inputs = [*present.values(), signals, initial, class_names, source]
        check_writable(output, force=force or dry_run, keep=inputs)
    if (ratio is None) == (size is None) and not dry_run:
        raise InputError("give either --ratio or --size, and only one of them")
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
    progress = Progress() if quiet else best_progress()
    asked = SourceOptions(**given, image_size=image_size)
    others = {**present, "--signals": signals, "--class-names": class_names, "--engine ray": engine == "ray" or None}
    _check_source(source, asked, [name for name, value in others.items() if value is not None])
    judged = None
    if source is not None:
        judged = _judged(source, asked, decisions, seed=seed, device=device, dry_run=dry_run, progress=progress)
        if judged is None:
            return
    with flags.naming(present):
        if engine == "ray":
            what = _refer(signals, present, class_names, decisions)
        else:
            what = {
                "signals": judged or _settled(_load(signals, present, class_names), decisions, signals, quiet=quiet)
            }
        if dry_run:
            _estimate(what["signals"], method, device, options | likely)
            return
        _run(method, what | common | scale | options | {"progress": progress}, output, force, quiet)


def _check_source(source: Path | None, asked: SourceOptions, others: list[str]) -> None:
    """Let a source stand alone, and let nothing that is about a source stand without one."""
    if source is None and (asked.about_encoder or any(asked.columns.values())):
        raise InputError("columns and encoders are for a SOURCE; name one")
    if source is not None and others:
        raise InputError(f"a SOURCE stands alone; leave it or {others[0]} out")


def _judged(
    source: Path,
    options: SourceOptions,
    decisions: Path | None,
    *,
    seed: int,
    device: str,
    dry_run: bool,
    progress: "Progress",
) -> "Signals | None":
    """Return what judging says of the labels of a source; None where there is only an estimate of encoding to tell."""
    from prune4rel.cleaning import clean
    from prune4rel.cli.source import encoded, open_source, tell_encoding
    from prune4rel.data.source import signals_of_cleaned
    from prune4rel.progress import Progress
    from prune4rel.signals import Signals

    quiet = type(progress) is Progress
    if (judged := signals_of_cleaned(source)) is not None:
        return _settled(Signals.load(judged), decisions, judged, quiet=quiet)
    dataset = open_source(source, options, {}, quiet=quiet).dataset
    judging: dict[str, Any] = {"decisions": decisions, "seed": seed, "device": device, "progress": progress}
    if dataset.kind == "features":
        if options.about_encoder:
            raise InputError("--encoder and what belongs to it are for images and texts; leave them out", "encoder")
        return clean(dataset, skip_broken=options.skip_broken, **judging).signals
    if dry_run:
        tell_encoding(dataset, options, device)
        return None
    arrays = encoded(dataset, options, device, progress, quiet=quiet)
    return clean(**arrays, skip_broken=options.skip_broken, **judging).signals


def _load(signals: str | None, files: dict[str, str], class_names: Path | None) -> "Signals":
    from prune4rel.shards import read_whole
    from prune4rel.signals import Signals

    given = _refer(signals, files, class_names)
    if "signals" in given:
        return Signals.load(given["signals"])
    names = given.pop("class_names")
    return Signals(class_names=names, **{name: read_whole(file, name) for name, file in given.items()})


def _settled(signals: "Signals", decisions: Path | None, path: str | Path | None, *, quiet: bool) -> "Signals":
    """Make what a person settled certain, and take out what a person removed."""
    from prune4rel.decisions import digests_beside, settle_from, settle_signals

    if decisions is None:
        return signals
    content = None if path is None else digests_beside(path, len(signals))
    found = settle_from(
        decisions, len(signals), signals.class_names, given_label=signals.labels, ids=signals.ids, content=content
    )
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
        raise InputError("no labels: name a SOURCE, or pass --labels FILE, or --signals PATH")
    known = {name for name, field in Signals.__dataclass_fields__.items() if field.init}
    for name in files:
        if name not in known:
            raise InputError(f"--signal: unknown signal {name!r}; known are {', '.join(sorted(known))}")
    return {"class_names": flags.read_names(class_names), **files}


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

    options.pop("initial", None)  # it changes nothing here
    found = estimate(method, signals, device=device, **options)
    if found is None:
        typer.echo(f"{method}: {get(method).cost}")
        return
    fits = found.graph_bytes <= memory_budget(options.get("memory"))
    typer.echo(found.describe())
    typer.echo("The graph fits the memory." if fits else "The graph does NOT fit the memory (see --memory).")


def _read_initial(path: Path) -> Any:
    from prune4rel.selection import Selection
    from prune4rel.storage import read_array

    return Selection.load(path).indices if path.suffix == ".parquet" else read_array(path, "initial")
