"""Noise makers: true labels in, labels with an exact share of wrong ones out. Pure functions, fixed by their seed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import ArrayLike, NDArray

from prune4rel.blocks import rows_per_block, spans
from prune4rel.errors import InputError, nearest

Labels = NDArray[np.int64]

KINDS: Mapping[str, str] = {
    "symmetric": "to any other class",
    "symmetric-inclusive": "to any class, the own one included",
    "asymmetric-next": "class c to c + 1, the last to the first",
    "asymmetric-cifar10": "truck to automobile, bird to airplane, deer to horse, cat and dog to each other",
    "asymmetric-cifar10-official": "five pairs of CIFAR-10 classes to each other, as in the official code",
    "asymmetric-cifar100": "to the next class of the same CIFAR-100 superclass",
    "pair-flip": "the same as asymmetric-next, by its other name",
    "instance": "by what the example looks like; needs features",
}
"""Names of all kinds of noise, and where a wrong label goes."""

OWN_STREAM = 0x6E6F697365

CIFAR10_STANDARD = (0, 1, 0, 5, 7, 3, 6, 7, 8, 1)
"""Where each class of CIFAR-10 goes; classes that go to themselves keep their labels."""

CIFAR10_OFFICIAL = (2, 9, 0, 5, 7, 3, 8, 4, 6, 1)

# fmt: off
CIFAR100_SUPERCLASSES = (
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15, 0, 11, 1, 10,
    12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12, 12, 16,
    12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14,
    13,
)
# fmt: on
"""Superclass of every class of CIFAR-100."""


def symmetric(
    labels: ArrayLike,
    rate: float,
    *,
    include_own: bool = False,
    n_classes: int | None = None,
    per_class: bool = True,
    seed: int = 0,
) -> Labels:
    """Move a share of the labels to classes drawn evenly.

    Parameters
    ----------
    labels
        (n,) integers of at least 0.
    rate
        Share that is drawn anew, 0 to 1.
    include_own
        Draw from all classes, so that about rate * (C - 1) / C of the labels end up wrong, rather than from the
        others only.
    n_classes
        C; the largest label + 1 if left out.
    per_class
        Draw the exact share of every class, rather than of the whole.
    seed
        Same seed, same noise.

    Returns
    -------
    ndarray
        (n,) int64.

    Examples
    --------
    >>> clean = np.repeat(np.arange(4), 10)
    >>> noisy = symmetric(clean, 0.3)
    >>> np.bincount(clean[noisy != clean]).tolist()
    [3, 3, 3, 3]
    """
    clean, classes = _check(labels, rate, n_classes)
    if classes < 2 and not include_own:
        raise InputError("symmetric noise needs at least two classes to move labels between")
    rng = default_rng(_check_seed(seed))
    rows = _draw(clean, rate, rng, per_class=per_class)
    noisy = clean.copy()
    if include_own:
        noisy[rows] = rng.integers(0, classes, size=len(rows))
    else:
        noisy[rows] = (clean[rows] + rng.integers(1, classes, size=len(rows))) % classes
    return noisy


def asymmetric(
    labels: ArrayLike,
    rate: float,
    *,
    mapping: str | ArrayLike = "next",
    n_classes: int | None = None,
    per_class: bool = True,
    seed: int = 0,
) -> Labels:
    """Move a share of the labels of each class to the one class it is mistaken for.

    Parameters
    ----------
    labels
        (n,) integers of at least 0.
    rate
        Share of the labels to move, 0 to 1, of the classes that are mistaken at all.
    mapping
        ``"next"``, ``"cifar10"``, ``"cifar10-official"``, ``"cifar100"``, or (C,) integers: where each class goes.
        A class that goes to itself keeps its labels.
    n_classes, per_class, seed
        As for `symmetric`.

    Examples
    --------
    >>> clean = np.repeat(np.arange(3), 10)
    >>> asymmetric(clean, 0.2, mapping=[0, 2, 1]).reshape(3, 10).sum(axis=1)
    array([ 0, 12, 18])
    """
    clean, classes = _check(labels, rate, n_classes)
    goal = resolve_mapping(mapping, classes)
    if n_classes is not None and goal[:classes].max() >= classes:
        raise InputError(f"the mapping {mapping!r} is for {len(goal)} classes, but there are only {classes}")
    rng = default_rng(_check_seed(seed))
    movable = np.flatnonzero(goal[clean] != clean)
    rows = movable[_draw(clean[movable], rate, rng, per_class=per_class)]
    noisy = clean.copy()
    noisy[rows] = goal[clean[rows]]
    return noisy


def pair_flip(
    labels: ArrayLike, rate: float, *, n_classes: int | None = None, per_class: bool = True, seed: int = 0
) -> Labels:
    """Move a share of the labels of each class c to c + 1, and of the last class to the first.

    >>> pair_flip(np.repeat(np.arange(3), 10), 0.2).reshape(3, 10).sum(axis=1)
    array([ 2, 12, 16])
    """
    return asymmetric(labels, rate, mapping="next", n_classes=n_classes, per_class=per_class, seed=seed)


def instance_dependent(
    labels: ArrayLike,
    rate: float,
    *,
    features: ArrayLike,
    spread: float = 0.1,
    n_classes: int | None = None,
    per_class: bool = True,
    seed: int = 0,
) -> Labels:
    """Move labels depending on the example: how likely, and to which class.

    Example i has a flip rate q_i, drawn from a normal distribution around `rate` cut to 0..1. For each class y a
    matrix W_y is drawn from N(0, 1); the wrong class follows softmax(x_i W_y) with y left out. Which examples flip
    is drawn by sequential Poisson sampling with inclusion probabilities proportional to q_i, so that the counts are
    exact.

    Parameters
    ----------
    labels
        (n,) integers of at least 0.
    rate
        Share of wrong labels, 0 to 1.
    features
        (n, ...) numbers, what the noise depends on; bytes (uint8) are divided by 255. The longer the vectors, the
        surer their wrong class.
    spread
        Standard deviation of the flip rates.
    n_classes, per_class, seed
        As for `symmetric`.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(40, 5))
    >>> clean = np.repeat(np.arange(4), 10)
    >>> noisy = instance_dependent(clean, 0.3, features=x)
    >>> np.bincount(clean[noisy != clean]).tolist()
    [3, 3, 3, 3]
    """
    clean, classes = _check(labels, rate, n_classes)
    if classes < 2:
        raise InputError("instance-dependent noise needs at least two classes to move labels between")
    if not 0 <= spread <= 1:
        raise InputError(f"spread must lie between 0 and 1, not {spread!r}")
    examples = _check_features(features, len(clean))
    first, *of_class = SeedSequence(_check_seed(seed)).spawn(1 + classes)
    rng = default_rng(first)
    rates = _truncated_normal(rate, spread, len(clean), rng)
    with np.errstate(divide="ignore", invalid="ignore"):
        rank = rng.random(len(clean)) / rates
    flipped = _draw(clean, rate, rng, per_class=per_class, rank=rank)
    noisy = clean.copy()
    for label in np.unique(clean[flipped]).tolist():
        rows = flipped[clean[flipped] == label]
        noisy[rows] = _mistake(examples, rows, label, classes, default_rng(of_class[label]))
    return noisy


def make_noise(
    labels: ArrayLike,
    kind: str,
    rate: float,
    *,
    features: ArrayLike | None = None,
    n_classes: int | None = None,
    per_class: bool = True,
    seed: int = 0,
) -> Labels:
    """Make noise of a kind that is given by name, one of `KINDS`.

    >>> make_noise([0, 0, 1, 1], "pair-flip", 0.5)
    array([1, 0, 0, 1])
    """
    if kind not in KINDS:
        raise InputError(f"unknown kind of noise {kind!r}; {nearest(kind, KINDS)}")
    if kind == "instance":
        if features is None:
            raise InputError("noise of the kind 'instance' needs features (--features FILE): what it depends on")
        return instance_dependent(labels, rate, features=features, n_classes=n_classes, per_class=per_class, seed=seed)
    if kind == "pair-flip":
        return pair_flip(labels, rate, n_classes=n_classes, per_class=per_class, seed=seed)
    if kind.startswith("symmetric"):
        include_own = kind == "symmetric-inclusive"
        return symmetric(labels, rate, include_own=include_own, n_classes=n_classes, per_class=per_class, seed=seed)
    mapping = kind.removeprefix("asymmetric-")
    return asymmetric(labels, rate, mapping=mapping, n_classes=n_classes, per_class=per_class, seed=seed)


def _check(labels: ArrayLike, rate: float, n_classes: int | None) -> tuple[Labels, int]:
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.size == 0:
        raise InputError(f"labels: have shape {array.shape} and type {array.dtype}; expected (n,) integers", "labels")
    if not (isinstance(rate, int | float) and 0 <= rate <= 1):
        raise InputError(f"rate must lie between 0 and 1, not {rate!r}")
    classes = int(array.max()) + 1 if n_classes is None else n_classes
    if (bad := np.flatnonzero((array < 0) | (array >= classes))).size:
        raise InputError(f"labels: row {bad[0]} is {array[bad[0]]}; labels must be 0 to {classes - 1}", "labels")
    return array.astype(np.int64), classes


def _check_seed(seed: int) -> list[int]:
    """Return a seed of noise's own: with the bare number, a random subset of the same seed would mirror the noise."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, not {seed!r}")
    return [int(seed), OWN_STREAM]


def _check_features(features: ArrayLike, n: int) -> NDArray[Any]:
    array = np.asanyarray(features)
    if array.ndim < 2 or array.dtype.kind not in "biuf" or array.size == 0:
        raise InputError(
            f"features: have shape {array.shape} and type {array.dtype}; expected (n, d) numbers", "features"
        )
    if len(array) != n:
        raise InputError(
            f"features: has {len(array)} rows, but labels has {n}; both need one row an example", "features"
        )
    return array


def _draw(
    labels: Labels, rate: float, rng: Generator, *, per_class: bool, rank: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Return which rows to move, in order: of each class (or of all) the exact share with the lowest rank."""
    rank = rng.random(len(labels)) if rank is None else rank
    group = labels if per_class else np.zeros_like(labels)
    sizes = np.bincount(group)
    order = np.lexsort((rank, group))
    place = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[place < share_out(sizes, rate)[group[order]]])


def share_out(sizes: ArrayLike, rate: float) -> NDArray[np.int64]:
    """Round a share of every size so that the sum is the rounded share of all; largest remainders first.

    >>> share_out([10, 10, 5], 0.25)
    array([3, 2, 1])
    """
    exact = rate * np.asarray(sizes, dtype=np.float64)
    counts = np.floor(exact).astype(np.int64)
    missing = round(float(exact.sum())) - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts


def _truncated_normal(mean: float, spread: float, n: int, rng: Generator) -> NDArray[np.float64]:
    values = rng.normal(mean, spread, size=n)
    while (outside := np.flatnonzero((values < 0) | (values > 1))).size:
        values[outside] = rng.normal(mean, spread, size=outside.size)
    return values


def _mistake(examples: NDArray[Any], rows: NDArray[np.int64], label: int, classes: int, rng: Generator) -> Labels:
    """Draw the wrong class of some examples of one class."""
    width = int(np.prod(examples.shape[1:]))
    weights = rng.standard_normal((width, classes), dtype=np.float32)
    scale = np.float32(1 / 255 if examples.dtype == np.uint8 else 1)
    goal = np.empty(len(rows), dtype=np.int64)
    for start, stop in spans(len(rows), rows_per_block(width)):
        block = examples[rows[start:stop]].reshape(stop - start, width).astype(np.float32) * scale
        logits = block @ weights
        if (bad := np.flatnonzero(~np.isfinite(logits).all(axis=1))).size:
            row = rows[start + bad[0]]
            raise InputError(f"features: row {row} holds NaN, infinity or numbers too large; repair it", "features")
        logits[:, label] = -np.inf
        goal[start:stop] = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    return goal


def resolve_mapping(mapping: str | ArrayLike, n_classes: int) -> Labels:
    """Return where each of C classes goes, (C,), for a mapping that is given by name or as numbers.

    >>> resolve_mapping("next", 4)
    array([1, 2, 3, 0])
    """
    if isinstance(mapping, str):
        if mapping == "next":
            return np.roll(np.arange(n_classes), -1)
        named = {"cifar10": CIFAR10_STANDARD, "cifar10-official": CIFAR10_OFFICIAL, "cifar100": _next_in_superclass()}
        if mapping not in named:
            raise InputError(f"unknown mapping {mapping!r}; {nearest(mapping, ['next', *named])}")
        goal = np.array(named[mapping], dtype=np.int64)
    else:
        goal = np.asarray(mapping)
    if goal.ndim != 1 or goal.dtype.kind not in "iu" or goal.min() < 0 or goal.max() >= len(goal):
        raise InputError("a mapping needs one whole number a class, from 0 to the number of classes - 1")
    if len(goal) < n_classes:
        raise InputError(f"there are {n_classes} classes, but the mapping {mapping!r} has only {len(goal)}")
    return goal.astype(np.int64)


def _next_in_superclass() -> Labels:
    superclass = np.array(CIFAR100_SUPERCLASSES)
    goal = np.empty(len(superclass), dtype=np.int64)
    for group in range(superclass.max() + 1):
        members = np.flatnonzero(superclass == group)
        goal[members] = np.roll(members, -1)
    return goal
