"""``prune4rel datasets``: what there is to read, and whether a folder can be read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from prune4rel.cli import app

if TYPE_CHECKING:
    from rich.console import Console

    from prune4rel.data import Dataset, Reader, Split

BAR = 30
MOST_BARS = 30
EACH_END = 10


@app.command()
def datasets(
    name: Annotated[str | None, Argument(help="Show this data set in full.")] = None,
    *,
    data: Annotated[Path | None, Option(help="Check the data set in this folder (or file).")] = None,
    option: Annotated[
        list[str] | None, Option(help="An option of the data set as NAME=VALUE, like noise=worst; repeat.")
    ] = None,
    labels: Annotated[Path | None, Option(help="Other labels for the training examples, one each.")] = None,
    picture: Annotated[Path | None, Option(help="Write sample images with their labels as one .png.")] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing picture.")] = False,
) -> None:
    """List the data sets, show one in full, or check one that lies in a folder."""
    from rich.console import Console

    from prune4rel.cli.task import open_dataset
    from prune4rel.data import get
    from prune4rel.data.picture import write_contact_sheet
    from prune4rel.errors import InputError
    from prune4rel.storage import check_writable

    console = Console(highlight=False)
    if name is None:
        if data is not None:
            raise InputError("which data set lies there? Name it: prune4rel datasets NAME --data DIR")
        _print_list(console)
        return
    reader = get(name)
    if data is None:
        _print_reader(reader, console)
        if not reader.embedded:
            return
    if picture is not None:
        check_writable(picture, force=force)
    dataset = open_dataset(name, data, option, labels)
    _print_facts(dataset, console)
    _print_counts(dataset, console)
    if picture is not None:
        count = write_contact_sheet(dataset, picture, force=force)
        console.print(f"\n{count} samples written to {picture}", markup=False, soft_wrap=True)


def _print_list(console: "Console") -> None:
    from rich.table import Table

    from prune4rel.data import get, list_datasets

    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("data set", "what it is", "options"):
        table.add_column(title, overflow="fold")
    for key in list_datasets():
        reader = get(key)
        table.add_row(key, reader.summary, ", ".join(reader.options))
    console.print(table)
    console.print(
        "\nOne in full: prune4rel datasets NAME. Check a folder: prune4rel datasets NAME --data DIR", soft_wrap=True
    )


def _print_reader(reader: "Reader", console: "Console") -> None:
    import inspect

    console.print(reader.name, style="bold")
    console.print((inspect.getdoc(reader.load) or "").partition("Examples\n")[0].strip(), markup=False)
    console.print("\nlooks for", style="bold")
    console.print(reader.layout, markup=False, soft_wrap=True)
    if reader.options:
        shown = ", ".join(f"{key}={value!r}" for key, value in reader.options.items())
        console.print(f"\noptions: {shown}", markup=False)
    if reader.citation:
        console.print(f"from: {reader.citation}", markup=False, soft_wrap=True)
    if reader.licence:
        console.print(f"licence: {reader.licence}", markup=False, soft_wrap=True)
    console.print()


def _print_facts(dataset: "Dataset", console: "Console") -> None:
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    table.add_row("data set", dataset.name)
    table.add_row("classes", f"{dataset.n_classes:,}")
    for title, split in dataset.splits().items():
        noise = "which labels are wrong is not known"
        if split.noise_rate is not None:
            noise = f"{split.noise_rate:.2%} wrong labels"
        table.add_row(title, f"{len(split):,} {_describe(split)}, {noise}")
    if dataset.test is None:
        table.add_row("test", "none")
    console.print(table)


def _describe(split: "Split") -> str:
    if split.images is not None:
        return f"images of {split.images.shape[2]} x {split.images.shape[1]}"
    if split.features is not None:
        return f"vectors of {split.features.shape[1]:,} features"
    return "image files"


def _print_counts(dataset: "Dataset", console: "Console") -> None:
    """Draw how many training examples each class was given, and how many of them are wrong."""
    import numpy as np
    from rich.table import Table

    train = dataset.train
    counts = np.bincount(train.labels, minlength=dataset.n_classes)
    known = train.clean_labels is not None
    wrong = np.bincount(train.labels, weights=train.labels != train.clean_labels, minlength=len(counts))
    rows: list[int | None] = list(range(len(counts)))
    if len(counts) > MOST_BARS:
        by_size = np.argsort(-counts, kind="stable").tolist()
        rows = [*by_size[:EACH_END], None, *by_size[-EACH_END:]]
    mark = "█" if console.encoding.lower().startswith("utf") else "#"
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("class", overflow="fold")
    table.add_column("examples", justify="right")
    if known:
        table.add_column("wrong", justify="right")
    table.add_column("")
    for row in rows:
        if row is None:
            table.add_row("...", f"({len(counts) - 2 * EACH_END} more)")
            continue
        share = [f"{wrong[row] / max(1, counts[row]):.1%}"] if known else []
        bar = mark * round(BAR * counts[row] / counts.max())
        table.add_row(dataset.class_names[row].replace("[", "\\["), f"{counts[row]:,}", *share, bar)
    console.print()
    console.print(table)
