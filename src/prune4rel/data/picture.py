"""A contact sheet: sample images of every class with their labels, as one picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.data.dataset import Dataset, Split
from prune4rel.data.decode import BrokenImageError, ImageFile, content_of, open_rgb
from prune4rel.data.pixels import require_pillow
from prune4rel.errors import InputError
from prune4rel.storage import check_writable, write_whole

TILE = 96
GAP = 6
LINE = 13
MOST_CLASSES = 12
A_CLASS = 8
PAPER = (255, 255, 255)
INK = (40, 40, 40)
WRONG = (200, 30, 30)


def choose_samples(split: Split, seed: int = 0) -> list[list[int]]:
    """Choose up to 8 examples of each of up to 12 classes, spread evenly over all classes: one list of rows a class.

    >>> split = Split(labels=[0, 1, 1], features=np.eye(3))
    >>> [len(rows) for rows in choose_samples(split)]
    [1, 2]
    """
    rng = np.random.default_rng(seed)
    classes = np.unique(split.labels)
    shown = classes[np.unique(np.linspace(0, len(classes) - 1, min(len(classes), MOST_CLASSES)).astype(int))]
    samples = []
    for label in shown:
        rows = np.flatnonzero(split.labels == label)
        samples.append(sorted(rng.choice(rows, size=min(A_CLASS, rows.size), replace=False).tolist()))
    return samples


def write_contact_sheet(dataset: Dataset, path: str | Path, *, force: bool = False, seed: int = 0) -> int:
    """Write sample images of the training split, one row a given label, as a PNG.

    Each image bears its given label, and below it in red the true one where that is known to differ. Returns how
    many images are shown.
    """
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise InputError(f"{path}: the picture is written as .png")
    if dataset.kind not in ("images", "files"):
        raise InputError(f"this data set holds {dataset.kind}, not images; there is nothing to show")
    require_pillow("a picture of samples")
    check_writable(path, force=force)
    sheet, count = _draw(dataset, choose_samples(dataset.train, seed))
    write_whole(path, lambda part: sheet.save(part, format="PNG"), force=force)
    return count


def _draw(dataset: Dataset, samples: Sequence[Sequence[int]]) -> tuple[Any, int]:
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - an extra

    split = dataset.train
    lines = 1 if split.clean_labels is None else 2
    step, height = TILE + GAP, TILE + lines * LINE + GAP
    sheet = Image.new("RGB", (GAP + step * max(map(len, samples)), GAP + height * len(samples)), PAPER)
    pen = ImageDraw.Draw(sheet)
    font = ImageFont.load_default()

    def write(left: int, top: int, label: int, colour: tuple[int, int, int]) -> None:
        words = dataset.class_names[label].encode("latin-1", "replace").decode("latin-1")
        while len(words) > 1 and pen.textlength(words, font=font) > TILE:
            words = words[:-1]
        pen.text((left, top), words, fill=colour, font=font)

    for y, rows in enumerate(samples):
        for x, row in enumerate(rows):
            left, top = GAP + x * step, GAP + y * height
            sheet.paste(_tile(split, row), (left, top))
            write(left, top + TILE, int(split.labels[row]), INK)
            if split.clean_labels is not None and split.clean_labels[row] != split.labels[row]:
                write(left, top + TILE + LINE, int(split.clean_labels[row]), WRONG)
    return sheet, sum(map(len, samples))


def _tile(split: Split, row: int) -> Any:
    """Return one example as a square: small ones in whole pixels, large ones scaled down and cropped."""
    from PIL import Image, ImageOps  # noqa: PLC0415 - an extra

    if split.images is not None:
        image = Image.fromarray(np.asarray(split.images[row]))
    elif split.files is not None:
        image = _open(split.files[row])
    else:
        raise AssertionError("what is no image is refused before")
    small = max(image.size) <= TILE
    return ImageOps.fit(image, (TILE, TILE), Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS)


def _open(file: ImageFile) -> Any:
    try:
        return open_rgb(content_of(file), str(file), TILE)
    except (OSError, BrokenImageError) as error:
        raise InputError(f"{file}: cannot be read as an image ({error})") from None
