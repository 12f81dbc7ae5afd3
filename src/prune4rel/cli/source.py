"""What several commands share that begin with a SOURCE: its columns, its encoder, and opening it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prune4rel.steps.embed import ENCODER, EncoderOptions
from prune4rel.steps.options import Options, option

if TYPE_CHECKING:
    from prune4rel.data import Dataset
    from prune4rel.encoders import Encoder
    from prune4rel.progress import Progress

COLUMNS = "Columns of a table (guessed and said aloud when left out)"
SOURCE = (
    "A folder of images, one folder a class; a table (.csv, .tsv, .jsonl, .parquet, .arrow); tars; a saved data set."
)


@dataclass(frozen=True)
class ColumnOptions(Options):
    """Which column is what."""

    label_column: str | None = option(None, "The given labels: names or numbers.", panel=COLUMNS)
    text_column: str | None = option(None, "Texts.", panel=COLUMNS)
    path_column: str | None = option(
        None, "Paths of image files, from the table's folder, or file:// URLs.", panel=COLUMNS
    )
    image_column: str | None = option(None, "Images themselves.", panel=COLUMNS)
    embedding_column: str | None = option(None, "Vectors of one length.", panel=COLUMNS)
    id_column: str | None = option(None, "Your own names for the examples.", panel=COLUMNS)
    split_column: str | None = option(None, "train, test or val.", panel=COLUMNS)
    clean_label_column: str | None = option(None, "True labels, to measure with.", panel=COLUMNS)

    @property
    def columns(self) -> dict[str, str | None]:
        """Names of columns by role."""
        return {
            name.removesuffix("_column"): getattr(self, name) for name in self.as_dict() if name.endswith("_column")
        }


@dataclass(frozen=True)
class SourceOptions(ColumnOptions, EncoderOptions):
    """Which column is what, and what makes vectors of the examples."""

    skip_broken: bool = option(False, "Go on without examples that cannot be read.", panel=ENCODER)


@dataclass(frozen=True)
class OpenSource:
    """A source that was opened: ``load_dataset(name, place, **options)`` opens it again."""

    dataset: "Dataset"
    name: str
    place: Path
    options: dict[str, Any]


def open_source(place: Path, options: "SourceOptions", further: dict[str, Any], *, quiet: bool = False) -> OpenSource:
    """Recognise and read what lies at a path; what was guessed is said."""
    from prune4rel.data import read_dataset, recognise

    found = recognise(place, options=further, skip_missing=options.skip_broken, **options.columns)
    if not quiet:
        for line in found.said:
            typer.echo(line, err=True)
    dataset = read_dataset(found.dataset, found.data, None, found.options)
    return OpenSource(dataset, found.dataset, found.data.resolve(), dict(found.options))


def encoder_for(dataset: "Dataset", options: EncoderOptions, device: str, *, quiet: bool = False) -> "Encoder":
    """Open the encoder that was named, or the usual one for this kind of examples, which is said."""
    from prune4rel.encoders import default_encoder

    opened = options.open_encoder(dataset.kind, device)
    if options.encoder is None and not quiet:
        typer.echo(f"encoder: {default_encoder(dataset.kind)} (--encoder names another one)", err=True)
    return opened


def encoded(
    dataset: "Dataset", options: SourceOptions, device: str, progress: "Progress", *, quiet: bool = False
) -> dict[str, Any]:
    """Return the vectors an encoder makes of images or texts, as `clean` takes them; what was left out is told."""
    from prune4rel.cleaning.encode import encoded as encode

    encoder = encoder_for(dataset, options, device, quiet=quiet)
    found, broken = encode(dataset, encoder, skip_broken=options.skip_broken, cache=options.cache, progress=progress)
    tell_broken(broken)
    return found


def tell_encoding(dataset: "Dataset", options: SourceOptions, device: str) -> None:
    """Say how long it would take to encode the examples: what comes then is quick beside it."""
    from prune4rel.encoders.embedding import estimate

    typer.echo(f"{len(dataset.train):,} examples: {estimate(dataset.train, encoder_for(dataset, options, device))}")


def write_all(
    dataset: "Dataset",
    encoder: "Encoder",
    folder: Path,
    options: SourceOptions,
    progress: "Progress",
    *,
    force: bool = False,
) -> dict[str, dict[int, str]]:
    """Write the embeddings of all splits into a folder; returns what could not be read, by split."""
    from prune4rel.data.embeddings import TEST
    from prune4rel.encoders.embedding import ready, write_embeddings

    encoder = ready(encoder, dataset.train)
    return {
        title: write_embeddings(
            split,
            encoder,
            folder if title == "train" else folder / TEST,
            class_names=dataset.class_names,
            skip_broken=options.skip_broken,
            cache=options.cache,
            force=force,
            splits=list(dataset.splits()) if title == "train" else None,
            progress=progress,
        )
        for title, split in dataset.splits().items()
    }


def tell_broken(broken: dict[str, dict[int, str]]) -> None:
    """Name what was left out: all of few, some of many."""
    reasons = [reason for split in broken.values() for reason in split.values()]
    for reason in reasons[:10]:
        typer.secho(f"left out: {reason}", err=True, fg="yellow")
    if len(reasons) > 10:
        typer.secho(f"left out: {len(reasons) - 10} more", err=True, fg="yellow")
