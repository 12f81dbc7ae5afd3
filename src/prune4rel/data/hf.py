"""A data set that Hugging Face's library saved to disk; the library itself is not needed to read it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.data.arrow import class_names_of, read_binary
from prune4rel.data.columns import Columns, Opened
from prune4rel.data.dataset import Dataset, Split
from prune4rel.data.decode import BrokenImageError, content_of, no_warnings, open_rgb
from prune4rel.data.pixels import look_of, require_pillow
from prune4rel.data.reader import register_dataset
from prune4rel.data.table import read_tables
from prune4rel.errors import InputError, nearest
from prune4rel.reading import read_json, read_record

TEST_SPLITS = ("test", "validation", "val")
IN_MEMORY = 2**28
"""Bytes up to which small images of one size are kept in memory; others are read when they are used."""


@register_dataset("hf", layout="DATA/   a folder that save_to_disk of the library datasets wrote")
def load(
    root: Path,
    *,
    column: str | None = None,
    label: str | None = None,
    clean_label: str | None = None,
    id: str | None = None,  # noqa: A002 - the word users say
    image_size: int | None = None,
    test_share: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Hugging Face data set on disk: images, texts or feature vectors.

    Parameters
    ----------
    column
        The images, texts, or vectors of one length; guessed if left out.
    label, clean_label
        The given labels and, if there are any, the true ones: integers, class labels or strings.
    id
        Your own names for the examples.
    image_size
        Height and width a model gets to see of images; if left out, the first image's shorter side.
    test_share
        Share of the examples to hold out for testing where there is no split test, validation or val.
    seed
        Of that draw.
    """
    tables = open_saved(root)
    first = tables.get("train")
    if first is None:
        raise InputError(f"{root}: has no split 'train'; it has {', '.join(tables)}")
    named = {} if column is None else _content(first, column, root)
    given = Columns(label=label, clean_label=clean_label, id=id, **named)
    for name in given.given().values():
        if name not in first.names:
            raise InputError(f"{root}: has no column {name!r}; {nearest(name, first.names)}")
    test = next((name for name in TEST_SPLITS if name in tables), None)
    chosen = {"train": first} | ({} if test is None else {"test": tables[test]})
    dataset, _ = read_tables(chosen, given, name="hf", test_share=test_share, seed=seed)
    return dataset if dataset.kind != "files" else _small_ones_in_memory(dataset, image_size)


def open_saved(root: Path) -> dict[str, Opened]:
    """Open the splits of a saved data set; its files are mapped into memory, not read."""
    whole = root / "dataset_dict.json"
    titles = read_record(_Titles, read_json(whole), whole).splits if whole.is_file() else ("",)
    opened = {}
    for title in titles:
        home = root / Path(title).name
        state = home / "state.json"
        if not state.is_file():
            raise InputError(f"{home}: not a folder that save_to_disk wrote; it has no {state.name}")
        files = [
            home / Path(one.filename).name for one in read_record(_State, _public(read_json(state)), state).data_files
        ]
        if not files:
            raise InputError(f"{state}: names no file of data")
        table = read_binary(files)
        opened[title or "train"] = Opened(table, str(home), home, class_names_of(table.schema))
    if not opened:
        raise InputError(f"{whole}: names no split")
    return opened


@dataclass(frozen=True)
class _Titles:
    """What ``dataset_dict.json`` says."""

    splits: tuple[str, ...]


@dataclass(frozen=True)
class _File:
    """An entry of ``state.json``."""

    filename: str


@dataclass(frozen=True)
class _State:
    """What ``state.json`` says."""

    data_files: tuple[_File, ...]


def _public(values: object) -> object:
    """Return names and values without the underscores that names begin with."""
    return {str(name).lstrip("_"): value for name, value in values.items()} if isinstance(values, dict) else values


def _content(opened: Opened, column: str, root: Path) -> dict[str, str]:
    if column not in opened.names:
        raise InputError(f"{root}: has no column {column!r}; {nearest(column, opened.names)}")
    kind = str(opened.table.schema.field(column).type)
    for start, role in (
        (("struct", "binary"), "image"),
        (("list", "fixed_size_list", "large_list"), "embedding"),
        (("string", "large_string"), "text"),
    ):
        if kind.startswith(start):
            return {role: column}
    raise InputError(f"{root}: column {column!r} holds {kind}; expected images or vectors of floats, or texts")


def _small_ones_in_memory(dataset: Dataset, size: int | None) -> Dataset:
    """Keep small images of one size in memory as they are; all else is read when it is used."""
    require_pillow("reading images")
    files = dataset.train.files or ()
    with no_warnings():
        try:
            width, height = open_rgb(content_of(files[0]), str(files[0])).size
        except (OSError, BrokenImageError) as error:
            raise InputError(f"{files[0]}: the image cannot be read ({error})") from None
        n = sum(len(split) for split in dataset.splits().values())
        if size is None and n * width * height * 3 <= IN_MEMORY:
            found = {title: _decode(split, (width, height)) for title, split in dataset.splits().items()}
            if all(split is not None for split in found.values()):
                train: Any = found["train"]
                return replace(dataset, train=train, test=found.get("test"), **look_of(train.images))
    return replace(dataset, image_size=size or min(width, height))


def _decode(split: Split, size: tuple[int, int]) -> Split | None:
    """Return the split with its images in memory, or None where one is of another size or cannot be read."""
    images = np.empty((len(split), size[1], size[0], 3), dtype=np.uint8)
    for row, file in enumerate(split.files or ()):
        try:
            image = open_rgb(content_of(file), str(file))
        except (OSError, BrokenImageError):
            return None
        if image.size != size:
            return None
        images[row] = np.asarray(image)
    return replace(split, files=None, images=images)
