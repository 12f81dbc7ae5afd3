"""Arrays of your own: images, or features of anything."""

from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.data.classes import number_classes
from prune4rel.data.dataset import Array, Dataset, Split, hold_out
from prune4rel.data.pixels import as_rgb, measure_colours
from prune4rel.data.registry import register_dataset
from prune4rel.errors import InputError, nearest
from prune4rel.storage import read_arrays

PER_EXAMPLE = ("images", "features", "labels", "clean_labels", "ids")
KNOWN = (*PER_EXAMPLE, *(f"test_{name}" for name in PER_EXAMPLE), "class_names", "mean", "std")


@register_dataset(
    "arrays",
    layout="""
    DATA.npz, or a folder of .npy (memory-mapped), or .safetensors, or .parquet (features only), with the arrays
    labels, and images (n, height, width, 3) or features (n, d)
    [, clean_labels, ids, class_names, mean, std, and the same with test_ before: test_labels, test_images, ...]
    """,
)
def load(root: Path, *, image_size: int | None = None, test_share: float = 0.0, seed: int = 0) -> Dataset:
    """Your own arrays: images, or features of text, tables or anything else.

    Labels are integers, 0 for the first class, or class names. Images may be grey, RGB or RGBA, of 8 or 16 bits.

    Parameters
    ----------
    image_size
        Height and width a model gets to see; the images' own if left out.
    test_share
        Share of the examples to hold out for testing where there are no test arrays.
    seed
        Of that draw.
    """
    arrays = read_arrays(root)
    for name in arrays:
        if name not in KNOWN:
            raise InputError(f"{root}: unknown array {name or '(without a name)'!r}; {nearest(name, KNOWN)}")
    if "labels" not in arrays:
        raise InputError(f"{root}: has no array 'labels'; it holds {', '.join(arrays)}")
    test_arrays = [name for name in arrays if name.startswith("test_")]
    if test_arrays and test_share:
        raise InputError(f"{root}: has the test array {test_arrays[0]} already; leave test_share out")
    arrays, names = _number_labels(arrays, root)
    try:
        train = _make_split(arrays, "")
        test = _make_split(arrays, "test_") if test_arrays else None
        if test is None:
            train, test = hold_out(train, test_share, seed)
        return Dataset(name="arrays", train=train, test=test, class_names=names, **_look(train, arrays, image_size))
    except InputError as error:
        raise InputError(f"{root}: {error}", error.field) from None


def _number_labels(arrays: dict[str, Array], root: Path) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Replace labels that are names by numbers, in all label arrays alike; return the arrays and the class names."""
    given = arrays.get("class_names")
    present = [name for name in KNOWN if name.endswith("labels") and name in arrays]
    if len({arrays[name].dtype.kind == "U" for name in present}) > 1:
        raise InputError(f"{root}: some of {', '.join(present)} hold numbers and some hold names; use the same for all")
    for name in present:
        if arrays[name].ndim != 1:
            raise InputError(f"{root}: {name} has shape {arrays[name].shape}; expected one label an example")
    names = None if given is None else tuple(map(str, given.tolist()))
    joined = np.concatenate([arrays[name] for name in present])
    numbers, names = number_classes(joined, f"{root}: labels", names)
    ends = np.cumsum([len(arrays[name]) for name in present])
    return arrays | dict(zip(present, np.split(numbers, ends[:-1]), strict=True)), names


def _make_split(arrays: dict[str, Array], prefix: str) -> Split:
    part: dict[str, Any] = {name: arrays.get(prefix + name) for name in PER_EXAMPLE}
    if part["labels"] is None:
        raise InputError(f"has no array {prefix}labels")
    if part["images"] is not None:
        part["images"] = as_rgb(part["images"], f"{prefix}images")
    return Split(**part)


def _look(train: Split, arrays: dict[str, Array], image_size: int | None) -> dict[str, Any]:
    """Return what a model needs to know of images: how to normalise them and how large they are."""
    if train.images is None:
        for name in ("mean", "std"):
            if name in arrays:
                raise InputError(f"{name} is for images; leave it out with features")
        if image_size is not None:
            raise InputError("image_size is for images; leave it out with features")
        return {}
    mean, std = measure_colours(train.images)
    return {
        "mean": arrays.get("mean", mean),
        "std": arrays.get("std", std),
        "image_size": min(train.images.shape[1:3]) if image_size is None else image_size,
    }
