"""A folder of your own images."""

from pathlib import Path

from prune4rel.data.dataset import Dataset, Split, hold_out
from prune4rel.data.files import check_same_classes, list_classes, read_class_folders
from prune4rel.data.pixels import IMAGENET_MEAN, IMAGENET_STD
from prune4rel.data.reader import register_dataset
from prune4rel.data.table import read_table
from prune4rel.errors import InputError

SUFFIXES = (".csv", ".parquet")
TEST_FOLDERS = ("test", "val", "valid", "validation")
USUAL_TABLES = ("labels.csv", "labels.parquet")


@register_dataset(
    "folder",
    layout="""
    DATA/train/CLASS/*.jpg, DATA/test/CLASS/*.jpg   (test may be called val or be missing)
    or DATA/CLASS/*.jpg
    or DATA/labels.csv (or .parquet) with the columns path, label [, clean_label, split]
    """,
)
def load(
    root: Path, *, table: str | None = None, image_size: int = 224, test_share: float = 0.0, seed: int = 0
) -> Dataset:
    """Your own images: one folder a class, or a table of paths and labels.

    Parameters
    ----------
    table
        Name of the CSV or Parquet file in the folder, if it is not called labels.csv or labels.parquet and is not
        the only one. Its paths are relative to the folder it lies in. `label` and `clean_label` are class names or
        numbers; `split` is train, test or val.
    image_size
        Height and width a model gets to see.
    test_share
        Share of the training images to hold out for testing where there is no test split.
    seed
        Of that draw.
    """
    path = _find_table(root, table)
    splits, names = _read_folders(root) if path is None else read_table(path)
    train, test = splits["train"], splits.get("test", splits.get("val"))
    try:
        train, test = hold_out(train, test_share, seed, test=test)
    except InputError as error:
        raise InputError(f"{root}: {error}") from None
    return Dataset(
        name="folder",
        train=train,
        test=test,
        class_names=names,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        image_size=image_size,
    )


def _find_table(root: Path, table: str | None) -> Path | None:
    """Return the table to read: the one that is named, else the usual one, else the only one, else none."""
    if root.is_file():
        if table is not None:
            raise InputError(f"{root}: is a file already; leave table out")
        chosen: Path | None = root
    elif table is not None:
        chosen = root / table
    else:
        tables = sorted(file for file in root.iterdir() if file.suffix in SUFFIXES)
        usual = [file for file in tables if file.name in USUAL_TABLES]
        if usual:
            chosen = usual[0]
        elif not tables or (root / "train").is_dir():
            chosen = None
        elif len(tables) == 1:
            chosen = tables[0]
        else:
            found = ", ".join(file.name for file in tables)
            raise InputError(f"{root}: which of {found} lists the images? Pass table= (--option table=NAME)")
    if chosen is not None and chosen.suffix not in SUFFIXES:
        raise InputError(f"{chosen}: a table of images is a .csv or .parquet file")
    return chosen


def _read_folders(root: Path) -> tuple[dict[str, Split], tuple[str, ...]]:
    if not (root / "train").is_dir():
        names = list_classes(root)
        return {"train": read_class_folders(root, names, relative_to=root)}, names
    names, train = list_classes(root / "train"), root / "train"
    others = [root / title for title in TEST_FOLDERS if (root / title).is_dir()]
    splits = {"train": read_class_folders(train, names, relative_to=root, apart=others)}
    for test in others[:1]:
        check_same_classes(names, list_classes(test), train, test)
        splits["test"] = read_class_folders(test, names, relative_to=root, apart=[train])
    return splits, names
