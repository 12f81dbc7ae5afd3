"""`Signals`: what a warm-up learnt of every example. Checked once, here, and trusted everywhere else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel._compiled import compiled_reduction
from prune4rel.blocks import map_blocks
from prune4rel.errors import InputError
from prune4rel.half import widen
from prune4rel.reading import reading
from prune4rel.storage import read_arrays, write_arrays

Array = NDArray[Any]
Floats = NDArray[np.floating[Any]]

SUM_TOLERANCE = 1e-2
"""How far from 1 a row of probabilities may sum: half precision with a thousand classes stays below it."""


def _signal(about: str, *, check: str = "number") -> Any:
    """Declare a signal: what it is, for the message that it is missing, and what is checked of it."""
    return field(default=None, metadata={"about": about, "check": check})


@dataclass(frozen=True, eq=False)
class Signals:
    """What is known of every example, as arrays whose first axis is the example.

    Parameters
    ----------
    labels
        (n,) given, possibly wrong labels: integers in ``range(C)``, or class names (strings).
    probabilities
        (n, C) class probabilities of a warmed-up model; rows sum to 1.
    embeddings
        (n, d) feature vectors of that model; float16 and float32 are used as they are, memory-mapped
        arrays stay on disk, other types become float32.
    losses, forgetting, grad_norms, el2n, aum, scores
        (n,) further signals that some methods need: cross-entropy per example, number of forgetting events,
        last-layer gradient norm, error norm, area under the margin, a score of your own.
    ssl_embeddings
        (n, e) self-supervised feature vectors.
    known
        (n,) bool, False where an example could not be read, so that it is never picked; all could unless told.
    verified
        (n,) bool, True where a person has settled the label; none unless told.
    ids
        (n,) your own names for the examples, integers or strings; carried into the selection.
    class_names
        C names. Needed with string labels only if the columns of `probabilities` are not in sorted order.

    Raises
    ------
    InputError
        A `ValueError` that names the input, the row and the remedy.

    Examples
    --------
    >>> signals = Signals(labels=["cat", "dog", "cat"], probabilities=[[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    >>> signals.labels, signals.class_names
    (array([0, 1, 0]), ('cat', 'dog'))
    """

    labels: NDArray[np.int64]
    probabilities: Floats | None = _signal("the softmax outputs of a warmed-up model", check="itself")
    embeddings: Floats | None = _signal("the feature vectors of a warmed-up model", check="vector")
    losses: Floats | None = _signal("the cross-entropy of every example")
    forgetting: Floats | None = _signal(
        "how often every example was forgotten during training, infinity where it was never learnt"
    )
    grad_norms: Floats | None = _signal("the last layer's gradient norm of every example, averaged over warm-ups")
    el2n: Floats | None = _signal("the error norm of every example, averaged over warm-ups")
    aum: Floats | None = _signal("the area under the margin of every example")
    scores: Floats | None = _signal("a score of your own for every example")
    ssl_embeddings: Floats | None = _signal("the feature vectors of a self-supervised model", check="vector")
    known: NDArray[np.bool_] | None = _signal("whether an example could be read", check="flag")
    verified: NDArray[np.bool_] | None = _signal("whether a person has settled the label", check="flag")
    ids: Array | None = None
    class_names: tuple[str, ...] | None = None
    squared_norms: Mapping[str, NDArray[np.float64]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # the only place where a frozen value is set
        probabilities = None if self.probabilities is None else _as_array(self.probabilities, "probabilities")
        if probabilities is not None:
            _check_matrix(probabilities, "probabilities")
        labels, names = _check_labels(self.labels, probabilities, self.class_names)
        put("labels", labels)
        put("class_names", names)
        if probabilities is not None:
            _check_length(probabilities, len(labels), "probabilities")
            put("probabilities", _check_probabilities(probabilities))
        squared_norms = {}
        checks = {"vector": _check_embeddings, "number": _check_vector, "flag": _check_flags}
        for name, known in declared_signals().items():
            check = checks.get(known["check"])
            if check is not None and getattr(self, name) is not None:
                array: Array = check(_as_array(getattr(self, name), name), name, len(labels))
                put(name, array)
                if known["check"] == "vector":
                    squared_norms[name] = _squared_norms(array, name)
        put("squared_norms", squared_norms)
        if self.ids is not None:
            put("ids", _check_ids(_as_array(self.ids, "ids"), len(labels)))

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def n_classes(self) -> int:
        """Number of classes: columns of the probabilities, else class names, else the largest label + 1."""
        if self.probabilities is not None:
            return int(self.probabilities.shape[1])
        if self.class_names is not None:
            return len(self.class_names)
        return int(self.labels.max()) + 1

    @cached_property
    def readable_rows(self) -> NDArray[np.int64]:
        """Numbers (k,) of the examples that could be read.

        Signals written before there was `known` tell by an infinite loss that one could not.

        >>> Signals(labels=[0, 1, 0], known=[True, False, True]).readable_rows
        array([0, 2])
        """
        if self.known is not None:
            return np.flatnonzero(self.known)
        return np.arange(len(self)) if self.losses is None else np.flatnonzero(np.isfinite(self.losses))

    def only(self, rows: NDArray[np.int64]) -> "Signals":
        """Return what is known of the examples with these numbers (k,), in that order."""
        arrays = {name: array[rows] for name, array in self.arrays().items() if name != "class_names"}
        return Signals(class_names=self.class_names, **arrays)

    def need(self, name: str) -> Floats:
        """Return a signal that has to be there.

        >>> Signals(labels=[0, 1]).need("losses")
        Traceback (most recent call last):
        prune4rel.errors.InputError: losses: is missing; pass losses=
        """
        array: Floats | None = getattr(self, name)
        if array is None:
            raise InputError(f"{name}: is missing; pass {name}=", name)
        return array

    def arrays(self) -> dict[str, Array]:
        """Return the arrays that are present, by name, as they are saved."""
        present = {f.name: getattr(self, f.name) for f in fields(self) if f.init and f.name != "class_names"}
        arrays = {name: array for name, array in present.items() if array is not None}
        if self.class_names is not None:
            arrays["class_names"] = np.asarray(self.class_names, dtype=np.str_)
        return arrays

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Save as a folder of `.npy` (no suffix), or one `.npz`, `.safetensors` or `.parquet` file."""
        write_arrays(path, self.arrays(), force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote, or what you wrote yourself under the same names."""
        with reading(Path(path), "signals"):
            return cls._from_file(path)
        raise AssertionError

    @classmethod
    def _from_file(cls, path: str | Path) -> Self:
        arrays = read_arrays(path)
        known = {f.name for f in fields(cls) if f.init}
        if unknown := sorted(set(arrays) - known):
            raise InputError(f"{path}: unknown signal {unknown[0]!r}; known are {', '.join(sorted(known))}")
        if "labels" not in arrays:
            raise InputError(f"{path}: no labels in it; it holds {', '.join(arrays)}")
        names = arrays.pop("class_names", None)
        return cls(class_names=None if names is None else tuple(map(str, names)), **arrays)


def _as_array(value: ArrayLike, name: str) -> Array:
    """View anything array-like, torch tensors on any device included, as a NumPy array."""
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        value = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
    try:
        array = np.asanyarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: cannot be read as an array ({error})", name) from None
    if isinstance(array, np.ma.MaskedArray):
        array = _unmasked(array, name)
    if array.dtype.kind not in "biufU":
        raise InputError(f"{name}: has type {array.dtype}; expected numbers" + _OBJECTS * (array.dtype == object), name)
    return array


def _unmasked(array: "np.ma.MaskedArray[Any, Any]", name: str) -> Array:
    masked = np.argwhere(np.ma.getmaskarray(array))
    if masked.size:
        raise InputError(f"{name}: row {masked[0, 0]} has a masked value; fill or drop it", name)
    return np.ma.getdata(array)


_OBJECTS = " (an object array usually comes from rows of different lengths)"


def _check_length(array: Array, n: int, name: str) -> None:
    if len(array) != n:
        raise InputError(f"{name}: has {len(array)} rows, but labels has {n}; both need one row an example", name)


def _check_matrix(array: Array, name: str) -> None:
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"{name}: has shape {array.shape}; expected two dimensions, one row an example", name)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: has type {array.dtype}; expected numbers", name)


def declared_signals() -> dict[str, Mapping[str, str]]:
    """Return what is declared of every signal, by its name: what it is, what is checked.

    >>> declared_signals()["aum"]["about"]
    'the area under the margin of every example'
    """
    return {each.name: each.metadata for each in fields(Signals) if each.metadata}


def _check_labels(
    value: ArrayLike, probabilities: Array | None, class_names: Sequence[str] | None
) -> tuple[NDArray[np.int64], tuple[str, ...] | None]:
    labels = _as_array(value, "labels")
    if labels.ndim != 1:
        raise InputError(f"labels: has shape {labels.shape}; expected one label an example, shape (n,)", "labels")
    if labels.size == 0:
        raise InputError("labels: is empty; there is nothing to select from", "labels")
    names = None if class_names is None else tuple(map(str, class_names))
    if labels.dtype.kind == "U":
        labels, names = _from_names(labels, names)
    if labels.dtype.kind == "f":
        raise InputError("labels: holds floats; convert them to integers with .astype('int64') first", "labels")
    if labels.dtype.kind == "b":
        raise InputError("labels: holds booleans; convert them to integers with .astype('int64') first", "labels")
    top = len(names) if names is not None else None
    if probabilities is not None:
        columns = probabilities.shape[1]
        if top is not None and top != columns:
            raise InputError(
                f"labels: name {top} classes, but probabilities has {columns} columns; "
                "pass class_names with one name a column, in the order of the columns",
                "labels",
            )
        top = columns
    highest = np.iinfo(np.int64).max if top is None else top - 1
    bad = np.flatnonzero((labels < 0) | (labels > highest))
    if bad.size:
        allowed = "0 or more, and below 2^63" if top is None else f"0 to {highest}"
        raise InputError(f"labels: row {bad[0]} is {labels[bad[0]]}; labels must be {allowed}", "labels")
    return np.ascontiguousarray(labels, dtype=np.int64), names


def _from_names(labels: Array, names: tuple[str, ...] | None) -> tuple[Array, tuple[str, ...]]:
    present, numbers = np.unique(labels, return_inverse=True)
    if names is None:
        return numbers.astype(np.int64), tuple(map(str, present))
    position = {name: number for number, name in enumerate(names)}
    for name in present:
        if str(name) not in position:
            row = int(np.flatnonzero(labels == name)[0])
            raise InputError(f"labels: row {row} is {str(name)!r}, which is not among the class names", "labels")
    return np.array([position[str(name)] for name in present], dtype=np.int64)[numbers], names


def _check_probabilities(array: Array) -> Floats:
    if array.dtype.kind != "f":
        array = array.astype(np.float32)

    def check(start: int, stop: int) -> None:
        block = array[start:stop].astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            sums = block.sum(axis=1)
        bad = ~(np.abs(sums - 1) <= SUM_TOLERANCE) | (block < 0).any(axis=1)
        if not bad.any():
            return
        row = int(np.flatnonzero(bad)[0])
        where = f"probabilities: row {start + row}"
        if not np.isfinite(block[row]).all():
            raise InputError(f"{where} holds NaN or infinity; find out why the model produced it", "probabilities")
        wrong = f"sums to {sums[row]:.4g}" if block[row].min() >= 0 else f"holds {block[row].min():.4g}"
        raise InputError(
            f"{where} {wrong}; rows must be non-negative and sum to 1. "
            "If these are logits, apply a softmax over the classes first",
            "probabilities",
        )

    map_blocks(check, len(array), array.shape[1])
    return array


def _check_embeddings(array: Array, name: str, n: int) -> Floats:
    _check_matrix(array, name)
    _check_length(array, n, name)
    if array.dtype not in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
    return np.ascontiguousarray(array) if not array.flags.c_contiguous else array


@compiled_reduction
def _sum_of_squares(block: NDArray[np.float32], out: NDArray[np.float64]) -> None:
    for row in range(block.shape[0]):
        total = 0.0
        for k in range(block.shape[1]):
            total += np.float64(block[row, k]) * np.float64(block[row, k])
        out[row] = total


def _squared_norms(matrix: Floats, name: str) -> NDArray[np.float64]:
    """Squared length of every row in double precision; finds NaN and infinity on the way."""
    squares = np.empty(len(matrix))

    def check(start: int, stop: int) -> None:
        _sum_of_squares(widen(matrix[start:stop]), squares[start:stop])
        bad = np.flatnonzero(~np.isfinite(squares[start:stop]))
        if bad.size:
            raise InputError(
                f"{name}: row {start + bad[0]} holds NaN, infinity or a number too large for float32; "
                "remove or repair that example",
                name,
            )

    map_blocks(check, len(matrix), matrix.shape[1])
    return squares


def _check_vector(array: Array, name: str, n: int) -> Floats:
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise InputError(f"{name}: has shape {array.shape} and type {array.dtype}; expected (n,) numbers", name)
    _check_length(array, n, name)
    array = array.astype(np.float64)
    if (bad := np.flatnonzero(np.isnan(array))).size:
        raise InputError(f"{name}: row {bad[0]} is NaN; remove or repair that example", name)
    return array


def _check_flags(array: Array, name: str, n: int) -> NDArray[np.bool_]:
    if array.ndim != 1 or array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
        raise InputError(
            f"{name}: has shape {array.shape} and type {array.dtype}; expected (n,) of true and false", name
        )
    _check_length(array, n, name)
    return array.astype(np.bool_)


def _check_ids(array: Array, n: int) -> Array:
    if array.ndim != 1 or array.dtype.kind not in "iuU":
        raise InputError(
            f"ids: has shape {array.shape} and type {array.dtype}; expected (n,) integers or strings", "ids"
        )
    _check_length(array, n, "ids")
    return array
