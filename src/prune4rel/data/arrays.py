"""Arrays of your own: images, or features of anything."""

from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.data.classes import number_together
from prune4rel.data.dataset import Array, Dataset, Split, hold_out
from prune4rel.data.pixels import as_rgb, look_of
from prune4rel.data.reader import register_dataset
from prune4rel.errors import InputError, nearest
from prune4rel.storage import read_arrays

PER_EXAMPLE = ("images", "features", "labels", "clean_labels", "ids")
KNOWN = (*PER_EXAMPLE, *(f"test_{name}" for name in PER_EXAMPLE), "class_names", "mean", "std")


@register_dataset(
    "arrays",
    layout="""
    DATA.npz, or a folder of .npy (memory-mapped), or .safetensors, or .parquet (features only), with the arrays
    labels, and images (n, height, width, 3) or features (n, d)
    [, clean_labels, ids, class_names, mean, std, and the same with test_ before: test_labels, test_images, ...];
    or the signals that `prune4rel clean` or `warmup` wrote: their embeddings are the features
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
    arrays = _from_signals(read_arrays(root))
    for name in arrays:
        if name not in KNOWN:
            raise InputError(f"{root}: unknown array {name or '(without a name)'!r}; {nearest(name, KNOWN)}")
    if "labels" not in arrays:
        raise InputError(f"{root}: has no array 'labels'; it holds {', '.join(arrays)}")
    test_arrays = [name for name in arrays if name.startswith("test_")]
    given = {name: arrays[name] for name in KNOWN if name.endswith("labels") and name in arrays}
    class_names = arrays.get("class_names")
    numbers, names = number_together(given, str(root), None if class_names is None else list(map(str, class_names)))
    arrays |= numbers
    try:
        train = _make_split(arrays, "")
        test = _make_split(arrays, "test_") if test_arrays else None
        train, test = hold_out(train, test_share, seed, test=test)
        return Dataset(name="arrays", train=train, test=test, class_names=names, **_look(train, arrays, image_size))
    except InputError as error:
        raise InputError(f"{root}: {error}", error.field) from None


def _from_signals(arrays: dict[str, Array]) -> dict[str, Array]:
    """Take the features out of saved signals: embeddings of the examples that could be read, by their own numbers."""
    if "embeddings" not in arrays or "features" in arrays or "images" in arrays or "labels" not in arrays:
        return arrays
    found = {name: array for name, array in arrays.items() if name in KNOWN}
    found["features"] = arrays["embeddings"]
    known = arrays.get("known")
    if known is None or known.shape != arrays["labels"].shape or known.all():
        return found
    rows = np.flatnonzero(known)
    per_example = {name: array[rows] for name, array in found.items() if name in PER_EXAMPLE}
    return found | {"ids": rows} | per_example


def _make_split(arrays: dict[str, Array], prefix: str) -> Split:
    part: dict[str, Any] = {name: arrays.get(prefix + name) for name in PER_EXAMPLE}
    if part["labels"] is None:
        raise InputError(f"has no array {prefix}labels")
    if part["images"] is not None:
        part["images"] = as_rgb(part["images"], f"{prefix}images")
    return Split(**part)


def _look(train: Split, arrays: dict[str, Array], image_size: int | None) -> dict[str, Any]:
    """Return what a model needs to know of images: how to normalise them and how large they are."""
    own: dict[str, Any] = {name: arrays[name] for name in ("mean", "std") if name in arrays}
    own |= {} if image_size is None else {"image_size": image_size}
    if train.images is not None:
        return look_of(train.images) | own
    if own:
        raise InputError(f"{next(iter(own))} is for images; leave it out with features")
    return {}
