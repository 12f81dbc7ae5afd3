"""WebVision: images found by web search, labelled by what was searched for."""

from pathlib import Path

import numpy as np

from prune4rel.data.dataset import Dataset, Split
from prune4rel.data.files import first_existing, join_all, read_labelled_paths, read_lines, require_files
from prune4rel.data.pixels import IMAGENET_MEAN, IMAGENET_STD
from prune4rel.data.reader import register_dataset
from prune4rel.errors import InputError

ALL_CLASSES = 1000
MINI = 50


@register_dataset(
    "webvision",
    layout="""
    DATA/info/train_filelist_google.txt   lines of "google/q0001/NAME.jpg 0"
    DATA/info/val_filelist.txt            lines of "NAME.jpg 0"
    DATA/info/synsets.txt                 class names, one a line (may be missing)
    DATA/google/q0001/*.jpg ...
    DATA/val_images_256/*.jpg             or val_images/
    """,
    citation="Li et al., WebVision Database: Visual Learning and Understanding from Web Data, 2017",
    licence="non-commercial research",
)
def load(root: Path, *, classes: int = MINI, image_size: int = 224) -> Dataset:
    """WebVision 1.0, the part from Google, first 50 classes ("mini").

    65,944 training and 2,500 validation images. Which training labels are wrong is not known.

    Parameters
    ----------
    classes
        How many of the 1,000 classes, from the first.
    image_size
        Height and width a model gets to see.
    """
    if not (isinstance(classes, int) and 1 <= classes <= ALL_CLASSES):
        raise InputError(f"classes must be a whole number from 1 to {ALL_CLASSES}, not {classes!r}")
    train = _read_split(root / "info" / "train_filelist_google.txt", root, classes)
    what = "unpack val_images_256.tar (or val_images.tar) there"
    test_images = first_existing([root / "val_images_256", root / "val_images"], what)
    test = _read_split(root / "info" / "val_filelist.txt", test_images, classes)
    return Dataset(
        name="webvision",
        train=train,
        test=Split(labels=test.labels, clean_labels=test.labels, files=test.files),
        class_names=_read_names(root / "info" / "synsets.txt", classes),
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        image_size=image_size,
    )


def _read_split(path: Path, images: Path, classes: int) -> Split:
    names, labels = read_labelled_paths(path, ALL_CLASSES, "it is in WebVision's info.tar")
    rows = np.flatnonzero(labels < classes)
    if not rows.size:
        raise InputError(f"{path}: has no image of the first {classes} classes")
    files = join_all(images, [names[row] for row in rows])
    require_files(files, path)
    return Split(labels=labels[rows], files=files)


def _read_names(path: Path, classes: int) -> tuple[str, ...]:
    if not path.is_file():
        return tuple(map(str, range(classes)))
    lines = read_lines(path)
    if len(lines) < classes:
        raise InputError(f"{path}: names {len(lines)} classes; expected at least {classes}")
    return tuple(line.strip().partition(" ")[2].partition(",")[0] or line.strip() for line in lines[:classes])
