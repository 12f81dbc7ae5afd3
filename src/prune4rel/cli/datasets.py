"""``prune4rel datasets``: what there is to read, and whether a folder can be read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from prune4rel.cli import app
from prune4rel.cli.tables import AsJson

if TYPE_CHECKING:
    from rich.console import Console

    from prune4rel.data import Dataset, Split

BAR = 30
MOST_BARS = 30
EACH_END = 10
HINT = "One in full: prune4rel datasets NAME. Check a folder: prune4rel datasets NAME --data DIR"


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
    as_json: AsJson = False,
) -> None:
    """List the data sets, show one in full, or check one that lies in a folder."""
    from rich.console import Console

    from prune4rel.cli.flags import open_dataset, read_values
    from prune4rel.cli.tables import print_entry, print_json, print_list
    from prune4rel.data import get, list_datasets
    from prune4rel.data.picture import write_contact_sheet
    from prune4rel.errors import InputError
    from prune4rel.steps.data import DataOptions
    from prune4rel.storage import check_writable

    console = Console(highlight=False)
    if name is None:
        if data is not None:
            raise InputError("which data set lies there? Name it: prune4rel datasets NAME --data DIR")
        if as_json:
            entries = map(get, list_datasets())
            print_json([{"name": one.name, "options": one.options, "summary": one.summary} for one in entries])
            return
        rows = ((one.name, one.summary, ", ".join(one.options)) for one in map(get, list_datasets()))
        print_list(("data set", "what it is", "options"), rows, HINT)
        return
    reader = get(name)
    if data is None:
        origin = {"from": reader.citation, "licence": reader.licence}
        print_entry(reader.name, reader.load, reader.options, about=("looks for", reader.layout), **origin)
        console.print()
        if not reader.embedded:
            return
    if picture is not None:
        check_writable(picture, force=force)
    place, other = (None if path is None else str(path) for path in (data, labels))
    asked = DataOptions(dataset=name, data=place, options=read_values(option, "--option"), labels=other)
    dataset = open_dataset(asked)
    _print_facts(dataset)
    _print_counts(dataset, console)
    if picture is not None:
        count = write_contact_sheet(dataset, picture, force=force)
        console.print(f"\n{count} samples written to {picture}", markup=False, soft_wrap=True)


def _print_facts(dataset: "Dataset") -> None:
    from prune4rel.cli.tables import print_facts

    facts = [("data set", dataset.name), ("classes", f"{dataset.n_classes:,}")]
    for title, split in dataset.splits().items():
        noise = "which labels are wrong is not known"
        if split.noise_rate is not None:
            noise = f"{split.noise_rate:.2%} wrong labels"
        facts.append((title, f"{len(split):,} {_describe(split)}, {noise}"))
    print_facts([*facts, *([] if dataset.test is not None else [("test", "none")])])


def _describe(split: "Split") -> str:
    if split.images is not None:
        return f"images of {split.images.shape[2]} x {split.images.shape[1]}"
    if split.features is not None:
        return f"vectors of {split.features.shape[1]:,} features"
    return "texts" if split.kind == "texts" else "image files"


def _print_counts(dataset: "Dataset", console: "Console") -> None:
    """Draw how many training examples each class was given, and how many of them are wrong."""
    import numpy as np

    from prune4rel.cli.tables import table_of

    train = dataset.train
    counts = np.bincount(train.labels, minlength=dataset.n_classes)
    known = train.clean_labels is not None
    wrong = np.bincount(train.labels, weights=train.labels != train.clean_labels, minlength=len(counts))
    shown = list(range(len(counts)))
    if len(counts) > MOST_BARS:
        by_size = np.argsort(-counts, kind="stable").tolist()
        shown = [*by_size[:EACH_END], *by_size[-EACH_END:]]
    mark = "█" if console.encoding.lower().startswith("utf") else "#"
    rows = []
    for row in shown:
        share = [f"{wrong[row] / max(1, counts[row]):.1%}"] if known else []
        bar = mark * round(BAR * counts[row] / counts.max())
        rows.append((dataset.class_names[row], f"{counts[row]:,}", *share, bar))
    if len(counts) > MOST_BARS:
        rows.insert(EACH_END, ("...", f"({len(counts) - 2 * EACH_END} more)"))
    titles = ("class", "examples", *(["wrong"] if known else []), "")
    console.print()
    console.print(table_of(titles, rows, right=("examples", "wrong")))
