"""A data set that Hugging Face's library saved to disk."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.data.classes import number_together
from prune4rel.data.dataset import Array, Dataset, Split, hold_out
from prune4rel.data.pixels import Pixels, look_of, require_pillow, to_rgb
from prune4rel.data.registry import register_dataset
from prune4rel.errors import InputError, nearest
from prune4rel.machine import available_memory, format_bytes

TEST_SPLITS = ("test", "validation", "val")


@register_dataset("hf", layout="DATA/   a folder that save_to_disk of the library datasets wrote")
def load(
    root: Path,
    *,
    column: str | None = None,
    label: str = "label",
    clean_label: str | None = None,
    image_size: int | None = None,
    test_share: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Hugging Face data set on disk, images or feature vectors (extra: hf).

    Parameters
    ----------
    column
        The images, or the vectors of one length. If left out, the first column of such a type.
    label, clean_label
        The given labels and, if there are any, the true ones: integers, class labels or strings.
    image_size
        Height and width to which every image is scaled and cropped when it is read; if left out, all images have to
        be of one size.
    test_share
        Share of the examples to hold out for testing where there is no split test, validation or val.
    seed
        Of that draw.
    """
    parts = _read(root)
    test_name = next((name for name in TEST_SPLITS if name in parts), None)
    train = parts.get("train")
    if train is None:
        raise InputError(f"{root}: has no split 'train'; it has {', '.join(parts)}")
    chosen = [train] if test_name is None else [train, parts[test_name]]
    column = _find_column(train, root) if column is None else column
    for part in chosen:
        for name in (column, label, *([] if clean_label is None else [clean_label])):
            if name not in part.column_names:
                raise InputError(f"{root}: has no column {name!r}; {nearest(name, part.column_names)}")
    labels, names = _number_labels(chosen, label, clean_label, root)
    content = _read_content(chosen, column, image_size, root)
    splits = [
        Split(labels=given, clean_labels=clean, **examples)
        for (given, clean), examples in zip(labels, content, strict=True)
    ]
    first, second = hold_out(splits[0], test_share, seed, test=splits[1] if len(splits) > 1 else None)
    look = {} if first.images is None else look_of(first.images)
    return Dataset(name="hf", train=first, test=second, class_names=names, **look)


def _read(root: Path) -> dict[str, Any]:
    try:
        library = import_module("datasets")
    except ImportError:
        raise InputError("the data set 'hf' needs the library datasets: pip install 'prune4rel[hf]'") from None
    try:
        found = library.load_from_disk(str(root))
    except (OSError, ValueError) as error:
        raise InputError(f"{root}: not a folder that save_to_disk wrote ({error})") from None
    return dict(found) if isinstance(found, dict) else {"train": found}


def _is_image(feature: Any) -> bool:
    return type(feature).__name__ == "Image"


def _is_vector(feature: Any) -> bool:
    return type(feature).__name__ in ("Sequence", "List", "LargeList") and "float" in str(
        getattr(feature.feature, "dtype", "")
    )


def _find_column(part: Any, root: Path) -> str:
    for name, feature in part.features.items():
        if _is_image(feature) or _is_vector(feature):
            return str(name)
    raise InputError(f"{root}: no column of images or of vectors; name it with column=")


def _number_labels(
    parts: list[Any], label: str, clean_label: str | None, root: Path
) -> tuple[list[tuple[Array, Array | None]], tuple[str, ...]]:
    """Return given and true labels of each part, numbered alike, and the class names."""
    wanted = [label] if clean_label is None else [label, clean_label]
    columns = {f"{name} {n}": np.asarray(part[name][:]) for n, part in enumerate(parts) for name in wanted}
    numbers, names = number_together(columns, str(root), getattr(parts[0].features[label], "names", None))
    pieces = iter(numbers.values())
    return [(next(pieces), None if clean_label is None else next(pieces)) for _ in parts], names


def _read_content(parts: list[Any], column: str, size: int | None, root: Path) -> list[dict[str, Any]]:
    feature = parts[0].features[column]
    if _is_image(feature):
        return [{"images": _decode(part, column, size, root)} for part in parts]
    if _is_vector(feature):
        return [{"features": _stack(part, column, root)} for part in parts]
    raise InputError(f"{root}: column {column!r} holds {feature}; expected images or vectors of floats")


def _stack(part: Any, column: str, root: Path) -> Array:
    try:
        return np.asarray(part[column][:], dtype=np.float32)
    except ValueError:
        raise InputError(f"{root}: the vectors in column {column!r} differ in length") from None


def _decode(part: Any, column: str, size: int | None, root: Path) -> Pixels:
    Image = require_pillow("reading images")
    from PIL import ImageOps  # noqa: PLC0415 - an extra

    width, height = (size, size) if size is not None else to_rgb(part[0][column]).size
    needed = len(part) * width * height * 3
    if needed > available_memory():
        raise InputError(
            f"{root}: {len(part):,} images of {width} x {height} take {format_bytes(needed)}, more than is free; "
            "choose a smaller image_size, or save them as files and use the data set 'folder'"
        )
    part = part.select_columns([column])
    images = np.empty((len(part), height, width, 3), dtype=np.uint8)
    for row in range(len(part)):
        try:
            image = to_rgb(part[row][column])
        except (OSError, AttributeError, ValueError, Image.DecompressionBombError) as error:
            raise InputError(f"{root}: the image in row {row} cannot be read ({error})") from None
        if size is not None:
            image = ImageOps.fit(image, (width, height))
        elif image.size != (width, height):
            raise InputError(
                f"{root}: the image in row {row} is {image.width} x {image.height}, but the first is "
                f"{width} x {height}; pass image_size= to scale all of them to one size"
            )
        images[row] = np.asarray(image)
    return images
