"""Tables: CSV, TSV, JSON lines, Parquet or Arrow, with a column of texts, of paths, of images or of vectors."""

from pathlib import Path
from typing import Any

from prune4rel.data.arrow import SUFFIXES, open_table, read_binary
from prune4rel.data.arrow import class_names_of as class_names_in
from prune4rel.data.columns import SPLITS, Columns, Opened, find_columns, rows_by_split, splits_of, vector_columns
from prune4rel.data.dataset import Dataset, Split, hold_out
from prune4rel.data.pixels import IMAGENET_MEAN, IMAGENET_STD
from prune4rel.data.reader import register_dataset
from prune4rel.errors import InputError, nearest

PHOTO_SIZE = 224


@register_dataset(
    "table",
    layout="""
    DATA.csv, .tsv, .jsonl, .parquet or .arrow, or a folder of .parquet or .arrow parts, with a column of labels and
    one of texts, of paths (relative to the table), of images or of vectors [, true labels, ids, splits]
    """,
)
def load(
    root: Path,
    *,
    label: str | None = None,
    clean_label: str | None = None,
    text: str | None = None,
    path: str | None = None,
    image: str | None = None,
    embedding: str | None = None,
    id: str | None = None,  # noqa: A002 - the word users say
    split: str | None = None,
    image_size: int | None = None,
    test_share: float = 0.0,
    seed: int = 0,
    skip_missing: bool = False,
) -> Dataset:
    """Table of your own: texts, image files, images or vectors, one a row.

    Parameters
    ----------
    label, clean_label
        Column of the given labels and, if there are any, of the true ones: names or numbers.
    text, path, image, embedding
        Column of the examples; one of them. Vectors may also be one column a number: ``embedding="f*"`` takes all
        whose names begin with f, ``"*"`` all columns of numbers that are nothing else.
    id
        Column of your own names for the examples.
    split
        Column that says train, test or val.
    image_size
        Height and width a model gets to see of images; 224 unless told.
    test_share
        Share of the examples to hold out for testing where there is no test split.
    seed
        Of that draw.
    skip_missing
        Do not look whether all files are there; those that are not cannot be read later.

    Columns that are not named are guessed: ``prune4rel datasets table --data FILE`` tells how.
    """
    given = Columns(label, clean_label, text, path, image, embedding, id, split)
    dataset, _ = read_tables(
        open_parts(root), given, image_size=image_size, test_share=test_share, seed=seed, skip_missing=skip_missing
    )
    return dataset


def open_parts(root: Path) -> dict[str, Opened]:
    """Open a table, or a folder of parts: by split where the names of the parts, or of the folders, say so."""
    if root.is_file():
        return {"": open_table(root)}
    files = [file for file in sorted(root.rglob("*")) if file.suffix in (".parquet", ".arrow") and file.is_file()]
    files = [file for file in files if not file.name.startswith((".", "_", "cache-"))]
    if not files:
        raise InputError(f"{root}: no .parquet or .arrow file in this folder")
    groups: dict[str, list[Path]] = {}
    for file in files:
        words = (file.name.split("-")[0].split(".")[0].lower(), file.parent.name.lower() if file.parent != root else "")
        title = next((SPLITS[word] for word in words if word in SPLITS), "")
        groups.setdefault(title, []).append(file)
    if "" in groups and len(groups) > 1:
        raise InputError(
            f"{root}: some parts are named by a split ({groups[next(t for t in groups if t)][0].name}) and some are "
            f"not ({groups[''][0].name}); name the file or one folder"
        )
    opened = {}
    for title, parts in groups.items():
        table = read_binary(parts)
        if table.num_rows == 0:
            raise InputError(f"{root}: its parts have no rows")
        opened[title] = Opened(
            table, str(parts[0] if len(parts) == 1 else root), parts[0].parent, class_names_in(table.schema)
        )
    return opened


def read_tables(
    tables: dict[str, Opened],
    given: Columns,
    *,
    name: str = "table",
    image_size: int | None = None,
    test_share: float = 0.0,
    seed: int = 0,
    skip_missing: bool = False,
) -> tuple[Dataset, list[str]]:
    """Turn opened tables, by split, into a data set; also tells in words which columns were guessed."""
    first = tables.get("train") or next(iter(tables.values()))
    pictures = {each.name for each in first.table.schema if str(each.type).startswith(("struct", "binary"))}
    if given.image is None and given.path is not None and given.path in pictures:
        given = Columns(**{**given.given(), "image": given.path, "path": None})
    columns, said = find_columns(first, given)
    tables = _by_split(tables, columns)
    used = [title for title in ("train", *(["test"] if "test" in tables else ["val"])) if title in tables]
    splits, class_names = splits_of({title: tables[title] for title in used}, columns, skip_missing=skip_missing)
    train, test = splits["train"], splits.get("test", splits.get("val"))
    try:
        train, test = hold_out(train, test_share, seed, test=test)
    except InputError as error:
        raise InputError(f"{first.where}: {error}") from None
    look: dict[str, Any] = {}
    if train.kind == "files":
        look = {"mean": IMAGENET_MEAN, "std": IMAGENET_STD, "image_size": image_size or PHOTO_SIZE}
    elif image_size is not None:
        raise InputError("image_size is for images; leave it out with texts and vectors", "image_size")
    return Dataset(name=name, train=train, test=test, class_names=class_names, **look), said


def _by_split(tables: dict[str, Opened], columns: Columns) -> dict[str, Opened]:
    """Return the tables by split, all with the columns that are needed; there is something to train on."""
    first = next(iter(tables.values()))
    if set(tables) == {""}:
        tables = rows_by_split(first, columns.split)
    for opened in tables.values():
        role, content = columns.content()
        needed = vector_columns(first, columns) if role == "embedding" else [content]
        for wanted in (columns.label or "", *needed):
            if wanted not in opened.names:
                raise InputError(f"{opened.where}: has no column {wanted!r}; {nearest(wanted, opened.names)}")
    if "train" not in tables:
        if columns.split is not None:
            raise InputError(f"{first.where}: no row has the split 'train'")
        raise InputError(f"{first.where}: has no split 'train'; it has {', '.join(tables)}")
    return tables


def read_table(path: Path) -> tuple[dict[str, Split], tuple[str, ...]]:
    """Read a table of image files, with the columns path and label, into its splits, by name, and the class names.

    Paths are relative to the table's folder, or absolute. Without a column `split` everything is ``"train"``.
    """
    opened = open_table(path)
    for name in ("path", "label"):
        if name not in opened.names:
            raise InputError(f"{path}: has no column {name!r}; {nearest(name, opened.names)}")
    split, clean = (
        ("split" if "split" in opened.names else None),
        ("clean_label" if "clean_label" in opened.names else None),
    )
    tables = rows_by_split(opened, split)
    splits, names = splits_of(tables, Columns(label="label", clean_label=clean, path="path", split=split))
    if "train" not in splits:
        raise InputError(f"{path}: no row has the split 'train'")
    return splits, names


__all__ = ["SUFFIXES", "load", "open_parts", "read_table", "read_tables"]
