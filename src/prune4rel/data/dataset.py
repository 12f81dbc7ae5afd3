"""`Split` and `Dataset`: examples with labels that may be wrong. Checked once, here, and trusted everywhere else."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.blocks import map_blocks
from prune4rel.data.decode import ImageFile
from prune4rel.errors import InputError

Array = NDArray[Any]
Labels = NDArray[np.int64]
Kind = Literal["images", "files", "features", "texts"]

KINDS: tuple[Kind, ...] = ("images", "files", "features", "texts")

OWN_STREAM = 0x74657374
"""Keeps the draw apart from others that begin with the same seed."""


@dataclass(frozen=True, eq=False)
class Split:
    """Examples that are used together, in one fixed order.

    Exactly one of `images`, `files`, `features` and `texts` is given.

    Parameters
    ----------
    labels
        (n,) given, possibly wrong labels: integers of at least 0, kept as int64.
    clean_labels
        (n,) true labels, where they are known.
    images
        (n, H, W, 3) uint8; may be a memory map.
    files
        n paths, one image file an example, for sets that are read while they are used. Files inside others may be
        among them: whatever has `read_bytes`, and a name as its string.
    features
        (n, d) numbers, kept as float32; may be a memory map. Embeddings, and whatever else is a vector.
    texts
        n strings.
    ids
        (n,) your own names for the examples, integers or strings.
    verified, removed
        (n,) bool: whose label a person has settled, so that it is certain; which examples a person took out.

    Raises
    ------
    InputError
        A `ValueError` that names the array, the row and the remedy.

    Examples
    --------
    >>> split = Split(labels=[0, 1, 1, 0], clean_labels=[0, 1, 0, 0], features=np.eye(4))
    >>> len(split), split.kind, split.noise_rate
    (4, 'features', 0.25)
    >>> split.subset([2, 3]).labels
    array([1, 0])
    """

    labels: Labels
    clean_labels: Labels | None = None
    images: NDArray[np.uint8] | None = None
    files: tuple[ImageFile, ...] | None = None
    features: NDArray[np.float32] | None = None
    texts: tuple[str, ...] | None = None
    ids: Array | None = None
    verified: NDArray[np.bool_] | None = None
    removed: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # the only place where a frozen value is set
        put("labels", check_labels(self.labels, "labels"))
        n = len(self.labels)
        if self.clean_labels is not None:
            put("clean_labels", check_labels(self.clean_labels, "clean_labels"))
            _check_length(self.clean_labels, n, "clean_labels")
        given = [name for name in KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(
                f"give exactly one of images, files, features and texts, not {' and '.join(given) or 'none'}"
            )
        for name in (*given, *(["ids"] if self.ids is not None else [])):
            put(name, CHECKS[name](getattr(self, name)))
            _check_length(getattr(self, name), n, name)
        for name in ("verified", "removed"):
            if getattr(self, name) is not None:
                put(name, np.asarray(getattr(self, name), dtype=np.bool_))
                _check_length(getattr(self, name), n, name)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def kind(self) -> Kind:
        """What an example is: one of `KINDS`."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    @property
    def noise_rate(self) -> float | None:
        """Share of wrong labels, or None where the true ones are not known."""
        return None if self.clean_labels is None else float((self.labels != self.clean_labels).mean())

    def subset(self, indices: ArrayLike) -> Self:
        """Return the examples at `indices` (m,), in that order."""
        rows = np.asarray(indices)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise InputError(
                f"indices: have shape {rows.shape} and type {rows.dtype}; expected (m,) integers", "indices"
            )
        bad = np.flatnonzero((rows < 0) | (rows >= len(self)))
        if bad.size:
            raise InputError(f"indices: {rows[bad[0]]} is not a row of the {len(self)} there are", "indices")
        taken: dict[str, Any] = {}
        for name in ("labels", "clean_labels", *KINDS, "ids", "verified", "removed"):
            part = getattr(self, name)
            if part is not None:
                taken[name] = tuple(part[row] for row in rows) if isinstance(part, tuple) else part[rows]
        return replace(self, **taken)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training split with possibly wrong labels, and what belongs to it.

    Parameters
    ----------
    name
        What to call it.
    train
        The examples to select from and to train on.
    test
        Examples to judge a model by, if there are any.
    class_names
        C names; label c means ``class_names[c]``.
    mean, std
        Three numbers each, of red, green and blue between 0 and 1, to normalise images with; None for other kinds.
    image_size
        Height and width a model gets to see; None for other kinds.
    skip_broken
        Whoever uses it goes on without image files that cannot be read.

    Examples
    --------
    >>> train = Split(labels=[0, 1, 1], features=np.eye(3))
    >>> data = Dataset(name="mine", train=train, class_names=("cat", "dog"))
    >>> data.kind, data.n_classes
    ('features', 2)
    """

    name: str
    train: Split
    test: Split | None = None
    class_names: tuple[str, ...] = ()  # never empty: a default is only needed because `test` has one
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    image_size: int | None = None
    skip_broken: bool = False

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        put("class_names", tuple(map(str, self.class_names)))
        if not self.class_names:
            raise InputError("class_names: is empty; expected one name a class", "class_names")
        for title, split in self.splits().items():
            self._check_split(title, split)
        for name in ("mean", "std"):
            if getattr(self, name) is not None:
                put(name, _check_colour(getattr(self, name), name))
        if self.kind in ("features", "texts"):
            if (self.mean, self.std, self.image_size) != (None, None, None):
                raise InputError(f"mean, std and image_size are for images; leave them out with {self.kind}")
        elif self.mean is None or self.std is None or self.image_size is None:
            raise InputError("mean, std and image_size are needed with images")
        elif min(self.std) <= 0 or self.image_size <= 0:
            raise InputError(f"std and image_size must be above 0, not {self.std} and {self.image_size}")

    def _check_split(self, title: str, split: Split) -> None:
        if split.kind != self.kind:
            raise InputError(f"{title}: holds {split.kind}, but train holds {self.kind}; both need the same", title)
        if split.features is not None and self.train.features is not None:
            width, expected = split.features.shape[1], self.train.features.shape[1]
            if width != expected:
                raise InputError(f"{title}: has {width} features an example, but train has {expected}", title)
        for name in ("labels", "clean_labels"):
            labels = getattr(split, name)
            if labels is not None and labels.max() >= self.n_classes:
                row = int(np.argmax(labels >= self.n_classes))
                raise InputError(
                    f"{title}: {name} row {row} is {labels[row]}, but there are only {self.n_classes} classes; "
                    f"labels must be 0 to {self.n_classes - 1}",
                    name,
                )

    @property
    def kind(self) -> Kind:
        """What an example is: ``"images"`` (in memory), ``"files"`` (images on disk), ``"features"`` or ``"texts"``."""
        return self.train.kind

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def splits(self) -> dict[str, Split]:
        """Return the splits that are there, by name."""
        return {"train": self.train} | ({} if self.test is None else {"test": self.test})


def hold_out(split: Split, share: float, seed: int, *, test: Split | None = None) -> tuple[Split, Split | None]:
    """Cut a share of the examples off, drawn at random; the rest keeps its order.

    The examples cut off get their true labels, where those are known. A share of 0 cuts nothing off. Where there is a
    `test` split already, it stays, and any other share is refused.

    Examples
    --------
    >>> train, test = hold_out(Split(labels=np.arange(8) % 2, features=np.eye(8)), 0.25, seed=0)
    >>> len(train), len(test)
    (6, 2)
    """
    if not 0 <= share < 1:
        raise InputError(f"the share to hold out must be at least 0 and below 1, not {share!r}")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, not {seed!r}")
    if test is not None and share:
        raise InputError("has a test split already; leave test_share out")
    count = round(share * len(split))
    if count == 0:
        return split, test
    if count == len(split):
        raise InputError(f"holding out {share:.0%} of {len(split)} examples leaves none to train on")
    order = np.random.default_rng([seed, OWN_STREAM]).permutation(len(split))
    test = split.subset(np.sort(order[:count]))
    if test.clean_labels is not None:
        test = replace(test, labels=test.clean_labels)
    return split.subset(np.sort(order[count:])), test


def check_labels(value: ArrayLike, name: str) -> Labels:
    """Check that labels are (n,) integers of at least 0, and return them as int64."""
    labels = np.asarray(value)
    if labels.ndim != 1:
        raise InputError(f"{name}: has shape {labels.shape}; expected one label an example, shape (n,)", name)
    if labels.size == 0:
        raise InputError(f"{name}: is empty; there is no example", name)
    if labels.dtype.kind not in "iu":
        raise InputError(f"{name}: has type {labels.dtype}; expected integers, 0 for the first class", name)
    if (bad := np.flatnonzero(labels < 0)).size:
        raise InputError(f"{name}: row {bad[0]} is {labels[bad[0]]}; labels must be 0 or more", name)
    return np.ascontiguousarray(labels, dtype=np.int64)


def _check_length(value: Array | tuple[Any, ...], n: int, name: str) -> None:
    if len(value) != n:
        raise InputError(f"{name}: has {len(value)} rows, but labels has {n}; both need one row an example", name)


def _check_images(value: ArrayLike) -> NDArray[np.uint8]:
    images = np.asanyarray(value)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or 0 in images.shape[1:]:
        raise InputError(
            f"images: have shape {images.shape} and type {images.dtype}; expected (n, height, width, 3) uint8", "images"
        )
    return images


def _check_files(value: Iterable[str | ImageFile]) -> tuple[ImageFile, ...]:
    if isinstance(value, str | Path):
        raise InputError(f"files: expected one path an example, not the single path {value}", "files")
    return tuple(Path(file) if isinstance(file, str | PathLike) else file for file in value)


def _check_features(value: ArrayLike) -> NDArray[np.float32]:
    features = np.asanyarray(value)
    if features.ndim != 2 or features.shape[1] == 0 or features.dtype.kind not in "biuf":
        raise InputError(
            f"features: have shape {features.shape} and type {features.dtype}; expected (n, d) numbers", "features"
        )
    if features.dtype != np.float32:
        with np.errstate(over="ignore"):
            features = features.astype(np.float32)

    def check(start: int, stop: int) -> None:
        bad = np.flatnonzero(~np.isfinite(features[start:stop]).all(axis=1))
        if bad.size:
            raise InputError(
                f"features: row {start + bad[0]} holds NaN, infinity or a number too large for float32; "
                "remove or repair that example",
                "features",
            )

    map_blocks(check, len(features), features.shape[1])
    return features


def _check_texts(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise InputError("texts: expected one text an example, not a single string", "texts")
    texts = tuple(value)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"texts: row {row} is a {type(text).__name__}; expected a string", "texts")
    return texts


def _check_ids(value: ArrayLike) -> Array:
    ids = np.asarray(value)
    if ids.ndim != 1 or ids.dtype.kind not in "iuU":
        raise InputError(f"ids: have shape {ids.shape} and type {ids.dtype}; expected (n,) integers or strings", "ids")
    return ids


CHECKS: dict[str, Callable[[Any], Any]] = {
    "images": _check_images,
    "files": _check_files,
    "features": _check_features,
    "texts": _check_texts,
    "ids": _check_ids,
}


def _check_colour(value: ArrayLike, name: str) -> tuple[float, float, float]:
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise InputError(f"{name}: expected three numbers, for red, green and blue, not {value!r}", name)
    red, green, blue = numbers.tolist()
    return red, green, blue
