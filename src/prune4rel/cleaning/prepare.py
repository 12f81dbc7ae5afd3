"""What `clean` was given, checked: labels with numbered classes, rows, probabilities, and how long it will take."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.cleaning.inputs import (
    EMBEDDINGS,
    LABELS,
    SVD_WIDTH,
    Numbered,
    as_rows,
    broken_rows,
    from_frame,
    number_labels,
    number_votes,
)
from prune4rel.data import Dataset
from prune4rel.errors import InputError
from prune4rel.judging.similar import EXACT_WORK, REDUCED
from prune4rel.machine import MULTIPLICATIONS, format_bytes, format_seconds
from prune4rel.signals import Signals
from prune4rel.storage import read_arrays

Floats = NDArray[np.floating[Any]]

LOOKED_AT, RANKED = 16.0, 300.0
"""What neighbours take in cells, for every example: in multiplications of root n rows, and of one row."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is to be judged, checked; row i is the user's row i.

    Parameters
    ----------
    numbered
        Labels.
    rows, probabilities
        (n, d) embeddings, dense or sparse, and (n, C); None where there are none.
    test_rows, test_labels
        (m, d) and (m,) of the test split.
    ids, content
        (n,) names of the examples, and digests of them.
    known
        (n,) False where a row holds NaN or infinity.
    notes
        What the user should know of it.
    """

    numbered: Numbered
    rows: Any
    probabilities: Floats | None
    test_rows: Any
    test_labels: NDArray[np.int64] | None
    ids: NDArray[Any] | None
    content: NDArray[np.str_] | None
    known: NDArray[np.bool_]
    notes: tuple[str, ...]

    @property
    def n(self) -> int:
        """How many labels there are."""
        return len(self.numbered.labels)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.numbered.class_names)


def prepare(
    data: Any = None,
    *,
    embeddings: Any = None,
    labels: Any = None,
    probabilities: Any = None,
    votes: Any = None,
    test_embeddings: Any = None,
    test_labels: Any = None,
    ids: Any = None,
    content: Any = None,
    class_names: Sequence[str] | None = None,
    skip_broken: bool = True,
) -> Prepared:
    """Check what `clean` was given, and number the classes; see there."""
    given: dict[str, Any] = {"embeddings": embeddings, "labels": labels, "probabilities": probabilities, "ids": ids}
    given |= {"test_embeddings": test_embeddings, "test_labels": test_labels, "class_names": class_names}
    if data is not None:
        given = _open(data, given)
    if given["labels"] is None and votes is None:
        raise InputError("no labels: pass labels= (or votes=)", "labels")
    if given["embeddings"] is None and given["probabilities"] is None:
        raise InputError("nothing to judge labels by: pass embeddings=, or out-of-fold probabilities=", "embeddings")
    own_ids = None if given["ids"] is None else np.asarray(given["ids"])
    first = next(given[name] for name in ("embeddings", "probabilities") if given[name] is not None)
    if votes is not None:
        numbered = number_votes(votes, first.shape[0] if hasattr(first, "shape") else len(first), own_ids, class_names)
    else:
        numbered = number_labels(given["labels"], given["class_names"])
    n = len(numbered.labels)
    rows = None if given["embeddings"] is None else as_rows(given["embeddings"], "embeddings", n)
    known, notes = _known(rows, n, skip_broken=skip_broken)
    chances = None
    if given["probabilities"] is not None:
        numbered, chances = _columns(numbered, given["probabilities"], n)
    test = given["test_embeddings"], given["test_labels"]
    digests = None if content is None else np.asarray(content, dtype=np.str_)
    return Prepared(numbered, rows, chances, *_test(*test, rows, numbered), own_ids, digests, known, notes)


def _known(rows: Any, n: int, *, skip_broken: bool) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Return which rows hold numbers, and a note on the others; refuse them unless told."""
    known = np.ones(n, dtype=np.bool_)
    if rows is None or not len(bad := broken_rows(rows)):
        return known, ()
    if not skip_broken:
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise InputError(
            f"embeddings: row {bad[0]}{more} holds NaN, infinity or a number too large for float32; repair it, "
            "or leave such rows out with skip_broken=True (--skip-broken)",
            "embeddings",
        )
    if len(bad) == n:
        raise InputError("embeddings: every row holds NaN or infinity; there is nothing to judge", "embeddings")
    known[bad] = False
    shown = ", ".join(map(str, bad[:5].tolist())) + (", ..." if len(bad) > 5 else "")
    return known, (f"{len(bad):,} rows hold NaN or infinity and were left out: {shown}.",)


def _test(test_rows: Any, test_labels: Any, rows: Any, numbered: Numbered) -> tuple[Any, NDArray[np.int64] | None]:
    """Check the test split."""
    if test_rows is None:
        return None, None
    found = as_rows(test_rows, "test_embeddings")
    if rows is None or found.shape[1] != rows.shape[1]:
        raise InputError("test_embeddings: have another width than embeddings", "test_embeddings")
    if len(broken_rows(found)):
        raise InputError(f"test_embeddings: row {broken_rows(found)[0]} holds NaN or infinity", "test_embeddings")
    return found, None if test_labels is None else number_labels(test_labels, numbered.class_names).labels


def _open(data: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Take what is needed out of a file, a data set, signals or a DataFrame; what was passed besides wins."""
    if isinstance(data, str | Path):
        arrays = read_arrays(data)
        found: dict[str, Any] = {name: arrays.get(name) for name in given}
        for name, others in (("labels", LABELS), ("embeddings", EMBEDDINGS), ("test_embeddings", ("test_features",))):
            found[name] = next((arrays[other] for other in (name, *others) if other in arrays), None)
        if found["class_names"] is not None:
            found["class_names"] = tuple(map(str, found["class_names"]))
    elif isinstance(data, Signals):
        found = {name: getattr(data, name, None) for name in given}
    elif isinstance(data, Dataset):
        if data.train.features is None:
            raise InputError(f"data: holds {data.kind}; say what makes vectors of them: encoder=NAME", "data")
        found = {"embeddings": data.train.features, "labels": data.train.labels, "ids": data.train.ids}
        found |= {"class_names": data.class_names}
        if data.test is not None:
            found |= {"test_embeddings": data.test.features, "test_labels": data.test.labels}
    else:
        columns = {name: given[name] for name in ("labels", "embeddings")}
        for name, value in columns.items():
            if value is not None and not _names_columns(value):
                raise InputError(f"{name}: with a table it is the name of a column, or several", name)
        column, rows, ids = from_frame(data, columns["labels"], columns["embeddings"])
        return given | {"labels": column, "embeddings": rows} | ({"ids": ids} if given["ids"] is None else {})
    return {name: found.get(name) if given[name] is None else given[name] for name in given}


def _names_columns(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(each, str) for each in value))


def _columns(numbered: Numbered, value: Any, n: int) -> tuple[Numbered, Floats]:
    """Check probabilities; classes that nobody was given have columns, too."""
    C = as_rows(value, "probabilities", n).shape[1]
    names = numbered.class_names
    if len(names) < C and names == tuple(map(str, range(len(names)))):
        names = tuple(map(str, range(C)))
    signals = Signals(labels=numbered.labels, probabilities=value, class_names=names)
    return replace(numbered, class_names=names), signals.need("probabilities")


def as_flags(value: ArrayLike | None, name: str, n: int) -> NDArray[np.bool_] | None:
    """Check (n,) flags, where there are any."""
    if value is None:
        return None
    array = np.asarray(value)
    if array.shape != (n,) or array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
        raise InputError(f"{name}: has shape {array.shape} and type {array.dtype}; expected ({n},) true or false", name)
    return array.astype(np.bool_)


def describe(task: Prepared) -> str:
    """Say how many labels there are, and about how long and how much memory judging them takes."""
    n, C = task.n, task.n_classes
    dim = 0 if task.rows is None else min(task.rows.shape[1], SVD_WIDTH if hasattr(task.rows, "tocsr") else np.inf)
    seconds, size = estimate(n, int(dim), C)
    return f"{n:,} labels, {C:,} classes: about {format_seconds(seconds)} and {format_bytes(size)} of memory"


def estimate(n: int, dim: int, n_classes: int) -> tuple[float, float]:
    """Return roughly how many seconds and bytes cleaning takes on two cores.

    >>> seconds, size = estimate(50_000, 512, 10)
    >>> 1 < seconds < 60, size > 2 * 50_000 * 512 * 4
    (True, True)
    """
    everybody = n * n / 2 * dim
    if everybody > EXACT_WORK:
        everybody = LOOKED_AT * n**1.5 * min(dim, REDUCED) + RANKED * n * dim
    work = everybody + 6 * n * dim * dim + 2000.0 * n * n_classes
    return 0.5 + work / MULTIPLICATIONS, 3.0 * 4 * n * dim + 8.0 * n * (6 * n_classes + 60)
