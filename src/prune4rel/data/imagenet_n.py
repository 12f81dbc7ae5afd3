"""ImageNet-N: ImageNet with labels moved to the next class."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from prune4rel.data.dataset import Dataset, Split
from prune4rel.data.files import (
    check_same_classes,
    is_image,
    leads_back,
    list_classes,
    look_up,
    read_class_folders,
    read_lines,
    require_files,
    require_folder,
)
from prune4rel.data.pixels import IMAGENET_MEAN, IMAGENET_STD
from prune4rel.data.reader import register_dataset
from prune4rel.errors import InputError
from prune4rel.noise import asymmetric
from prune4rel.reading import reading

KAGGLE = Path("ILSVRC") / "Data" / "CLS-LOC"
"""Where the images lie in Kaggle's copy."""

SOLUTION = "LOC_val_solution.csv"
GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
META, SYNSETS = "meta.mat", "synsets.txt"
DEVKIT = Path("ILSVRC2012_devkit_t12") / "data"


@register_dataset(
    "imagenet-n",
    layout="""
    DATA/train/n01440764/*.JPEG ...   one folder a class
    DATA/val/n01440764/*.JPEG ...     the same classes; or
    DATA/val/*.JPEG                   with LOC_val_solution.csv (Kaggle), or ILSVRC2012_validation_ground_truth.txt and
                                      meta.mat (development kit), in DATA, DATA/val or the kit's folder
    """,
    citation="Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015",
    licence="ImageNet: research and education, on request",
)
def load(root: Path, *, noise: float = 0.2, per_class: bool = True, seed: int = 0, image_size: int = 224) -> Dataset:
    """ImageNet with a share of the labels of class c moved to c + 1, by a seed.

    1,281,167 training and 50,000 validation images in 1,000 classes.

    Parameters
    ----------
    noise
        Share of wrong labels in the training split.
    per_class
        That share of every class, as the paper has it; or of the whole, as the official code has it.
    seed
        Of the noise.
    image_size
        Height and width a model gets to see.
    """
    images = root / KAGGLE if (root / KAGGLE).is_dir() else root
    train_folder = require_folder(images / "train", "expected train/ and val/, with one folder a class in each")
    test_folder = require_folder(images / "val", "expected train/ and val/, with one folder a class in each")
    names = list_classes(train_folder)
    train = read_class_folders(train_folder, names, apart=[test_folder])
    if lies_flat(test_folder):
        test = _read_flat(test_folder, names, _places(root, images))
    else:
        check_same_classes(names, list_classes(test_folder), train_folder, test_folder)
        test = read_class_folders(test_folder, names, apart=[train_folder])
    noisy = asymmetric(train.labels, noise, mapping="next", n_classes=len(names), per_class=per_class, seed=seed)
    return Dataset(
        name="imagenet-n",
        train=replace(train, labels=noisy, clean_labels=train.labels),
        test=replace(test, clean_labels=test.labels),
        class_names=names,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        image_size=image_size,
    )


def _places(root: Path, images: Path) -> list[Path]:
    """Folders in which the classes of the validation images may be listed."""
    places = [root, images / "val", root / DEVKIT]
    whole = images.resolve()
    return [*places, whole.parents[len(KAGGLE.parts) - 1]] if whole.match(str(KAGGLE)) else places


def lies_flat(folder: Path) -> bool:
    """Whether images lie in the folder itself, and none of it is sorted by class."""
    items = [item for item in folder.iterdir() if not item.name.startswith(".")]
    return any(is_image(item.name) for item in items) and not any(
        item.is_dir() and not leads_back(item) for item in items
    )


def _read_flat(folder: Path, names: Sequence[str], places: Sequence[Path]) -> Split:
    """Read the images of one folder, sorted by name, and their classes from the first list that is found.

    Parameters
    ----------
    folder
        Where the images lie.
    names
        The classes (WordNet ids), in order.
    places
        Folders to look for the list in: Kaggle's ``LOC_val_solution.csv``, which names a class for each image; or
        ``ILSVRC2012_validation_ground_truth.txt`` of the development kit, one class number an image in the order of
        their names, with the kit's ``meta.mat`` or a ``synsets.txt`` that names class k in line k.
    """
    numbers = {name: number for number, name in enumerate(names)}
    images = sorted(item for item in folder.iterdir() if is_image(item.name))
    if found := _find(SOLUTION, places):
        classes = _read_solution(found)
        require_files([folder / f"{stem}{images[0].suffix}" for stem in classes], found)
    elif found := _find(GROUND_TRUTH, places):
        classes = _read_ground_truth(found, [image.stem for image in images], places)
    else:
        looked = ", ".join(str(place) for place in places)
        raise InputError(
            f"{folder}: the images lie here directly. Sort them into one folder a class, or put {SOLUTION} (from "
            f"Kaggle) or {GROUND_TRUTH} with {META} (from the development kit) into one of {looked}"
        )
    stems = [image.stem for image in images]
    labels = look_up(stems, {stem: _number(classes[stem], numbers, found) for stem in classes}, folder, found)
    return Split(labels=labels, files=tuple(images))


def _find(name: str, places: Sequence[Path]) -> Path | None:
    return next((place / name for place in places if (place / name).is_file()), None)


def _number(wnid: str, numbers: Mapping[str, int], listed_in: Path) -> int:
    if wnid not in numbers:
        raise InputError(f"{listed_in}: has images of the class {wnid!r}, which the training images have not")
    return numbers[wnid]


def _read_solution(path: Path) -> dict[str, str]:
    """Class of every image, by its name without suffix; lines of "image,class box class box ..."."""
    lines = read_lines(path)
    with reading(path, "CSV file"):
        rows = list(csv.reader(lines))
    if [name.strip() for name in rows[0]] != ["ImageId", "PredictionString"]:
        raise InputError(f"{path}: begins with {','.join(rows[0])!r}; expected 'ImageId,PredictionString'")
    classes = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != 2 or not row[1].split():
            raise InputError(f"{path}: line {number} is {','.join(row)[:80]!r}; expected an image, a comma and a class")
        classes[row[0].strip()] = row[1].split()[0]
    return classes


def _read_ground_truth(path: Path, stems: Sequence[str], places: Sequence[Path]) -> dict[str, str]:
    """Class of every image; line k is the number of the class of image k."""
    lines = [line.strip() for line in read_lines(path)]
    if len(lines) != len(stems):
        raise InputError(f"{path}: has {len(lines)} lines, but there are {len(stems)} images; expected one a line")
    wnids = _read_synsets(path, places)
    for number, line in enumerate(lines, start=1):
        if not line.isdecimal() or int(line) not in wnids:
            raise InputError(f"{path}: line {number} is {line[:80]!r}; expected the number of a class")
    return {stem: wnids[int(line)] for stem, line in zip(stems, lines, strict=True)}


def _read_synsets(truth: Path, places: Sequence[Path]) -> dict[int, str]:
    """Class names by the development kit's numbers, from 1."""
    if found := _find(META, places):
        return _read_meta(found)
    found = _find(SYNSETS, places)
    if found is None:
        raise InputError(
            f"{truth}: numbers its classes as {META} of the development kit does; put that file beside it, or a "
            f"{SYNSETS} that names class k in line k"
        )
    names = [line.split()[0] for line in read_lines(found)]
    if len(names) > 1 and names == sorted(names):
        raise InputError(
            f"{found}: is sorted by name, but {truth.name} goes by the numbers of the development kit, which are in "
            f"another order; use its {META}"
        )
    return dict(enumerate(names, start=1))


def _read_meta(path: Path) -> dict[int, str]:
    from scipy.io import loadmat  # noqa: PLC0415 - only for this file

    try:
        synsets = np.atleast_1d(loadmat(path, squeeze_me=True)["synsets"])
        return {int(entry["ILSVRC2012_ID"]): str(entry["WNID"]) for entry in synsets}
    except (ValueError, KeyError, IndexError, TypeError, OSError, NotImplementedError) as error:
        raise InputError(f"{path}: not the {META} of ImageNet's development kit ({error})") from None
