"""What users have, turned into arrays: columns of any library, votes of several people, sparse rows, broken rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
from numpy.typing import NDArray

from prune4rel.blocks import map_blocks
from prune4rel.data.classes import number_classes
from prune4rel.errors import InputError, nearest
from prune4rel.judging.crowd import Consensus, consensus, consensus_of_table
from prune4rel.reading import reading, whole
from prune4rel.shards import read_whole
from prune4rel.storage import from_column, read_arrays

Floats = NDArray[np.floating[Any]]

LABELS = ("labels", "label", "given_label", "target", "class", "y")
EMBEDDINGS = ("embeddings", "embedding", "features", "vector", "vectors")
"""Names of columns and arrays that are taken for labels and for embeddings, likeliest first."""

EXAMPLES = ("index", "example", "item", "id", "task")
ANNOTATORS = ("annotator", "worker", "rater", "user", "who")
"""Names of columns of a table of votes."""

SVD_WIDTH = 300
"""Leading directions that sparse rows are reduced to where dense ones are needed."""


@dataclass(frozen=True, eq=False)
class Numbered:
    """Labels as class numbers.

    Parameters
    ----------
    labels
        (n,) int64, in ``range(C)``.
    class_names
        C names.
    votes
        What several people's votes came to, where there were several; `labels` are theirs.
    annotators
        Names of these people.
    """

    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    votes: Consensus | None = None
    annotators: tuple[str, ...] = ()


def as_column(value: Any, name: str) -> NDArray[Any]:
    """Turn labels of any library into (n,) or (n, A) integers or strings; missing ones are refused, row and all.

    >>> as_column(pa.chunked_array([["a"], ["b"]]), "labels")
    array(['a', 'b'], dtype='<U1')
    >>> as_column([1.0, None], "labels")
    Traceback (most recent call last):
    prune4rel.errors.InputError: labels: row 1 is missing; give it a label or drop the example
    """
    if isinstance(value, pa.ChunkedArray | pa.Array):
        value = value.to_pylist()
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    array = np.asarray(value)
    if array.dtype.kind == "O":
        array = _of_objects(array, name)
    if array.dtype.kind == "f":
        if (bad := np.argwhere(np.isnan(array))).size:
            raise InputError(f"{name}: row {bad[0][0]} is missing; give it a label or drop the example", name)
        if (bad := np.argwhere(array != np.rint(array))).size:
            where = tuple(bad[0])
            raise InputError(
                f"{name}: row {where[0]} is {array[where]}; labels are whole numbers or names of classes", name
            )
        array = array.astype(np.int64)
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _of_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    flat = array.ravel().tolist()
    for place, each in enumerate(flat):
        if each is None or each != each:  # noqa: PLR0124 - NaN is not itself
            row = place // max(1, array.size // max(1, len(array)))
            raise InputError(f"{name}: row {row} is missing; give it a label or drop the example", name)
    texts = any(isinstance(each, str) for each in flat)
    made = np.array([str(each) for each in flat] if texts else flat)
    if made.dtype.kind not in "biufU" or made.shape != (len(flat),):
        raise InputError(f"{name}: holds {type(flat[0]).__name__}; expected whole numbers or names of classes", name)
    return made.reshape(array.shape)


def number_labels(value: Any, class_names: Sequence[str] | None = None) -> Numbered:
    """Let classes have numbers; several columns are several people's votes, -1 or "" where somebody did not vote.

    >>> number_labels(["cat", "dog", "cat"]).labels
    array([0, 1, 0])
    >>> number_labels([[0, 0, 1], [1, 1, -1]]).labels
    array([0, 1])
    """
    column = as_column(value, "labels")
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim == 1:
        return Numbered(*number_classes(column, "labels", class_names))
    if column.ndim != 2 or column.dtype.kind not in "iuU":
        raise InputError(f"labels: have shape {column.shape}; expected (n,) labels, or (n, A) votes", "labels")
    voted = column != "" if column.dtype.kind == "U" else column != -1
    if not voted.any(axis=1).all():
        row = int(np.argmin(voted.any(axis=1)))
        raise InputError(f"labels: nobody voted on row {row}; drop it, or get a vote", "labels")
    numbers, names = number_classes(column[voted], "labels", class_names)
    votes = np.full(column.shape, -1)
    votes[voted] = numbers
    found = consensus(votes, len(names))
    return Numbered(found.labels, names, found, tuple(f"column {place}" for place in range(column.shape[1])))


def number_votes(table: Any, n: int | None, ids: NDArray[Any] | None, class_names: Sequence[str] | None) -> Numbered:
    """Find labels from a table of votes: one vote a row, with columns for the example, the annotator and the label."""
    votes = as_table(table, "votes")
    columns = {
        what: votes.column(_named(votes, names, f"votes: no column says which {what}"))
        for what, names in (("example", EXAMPLES), ("annotator", ANNOTATORS), ("label", LABELS))
    }
    annotator_names, annotator = np.unique(as_column(columns["annotator"], "votes"), return_inverse=True)
    numbers, names = number_classes(as_column(columns["label"], "votes"), "votes", class_names)
    example = as_column(columns["example"], "votes")
    if ids is not None:
        place = {str(name): row for row, name in enumerate(ids.tolist())}
        missing = [name for name in example.tolist() if str(name) not in place]
        if missing:
            raise InputError(f"votes: no example is called {missing[0]!r}", "votes")
        example, n = np.array([place[str(name)] for name in example.tolist()]), len(ids)
    elif example.dtype.kind not in "iu":
        raise InputError(
            "votes: examples are named, but the examples here have no ids; pass ids, or number them", "votes"
        )
    count = int(example.max()) + 1 if n is None else n
    found = consensus_of_table(
        example, annotator, numbers, n=count, n_annotators=len(annotator_names), n_classes=len(names)
    )
    if not found.votes.all():
        raise InputError(
            f"votes: nobody voted on example {int(np.argmin(found.votes))}; drop it, or get a vote", "votes"
        )
    return Numbered(found.labels, names, found, tuple(map(str, annotator_names.tolist())))


def as_table(value: Any, name: str) -> pa.Table:
    """Turn a DataFrame of any library, an Arrow table, a mapping, or a CSV or Parquet file into an Arrow table."""
    if isinstance(value, str | Path):
        path = Path(value)
        if path.suffix == ".csv":
            with reading(path, "CSV file"):
                return whole(pv.read_csv(path))
        with reading(path, "table"):
            return pa.table({key: pa.array(list(array)) for key, array in read_arrays(path).items()})
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, Mapping):
        return pa.table({str(key): as_column(column, f"{name}: {key}") for key, column in value.items()})
    if hasattr(value, "to_arrow"):
        return value.to_arrow()
    try:
        return pa.Table.from_pandas(value, preserve_index=False)
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{name}: cannot be read as a table ({error})", name) from None


def _named(table: pa.Table, names: Sequence[str], complaint: str) -> str:
    for name in names:
        if name in table.column_names:
            return name
    raise InputError(f"{complaint}; expected a column called {' or '.join(names)}, not {', '.join(table.column_names)}")


def from_frame(
    frame: Any, labels: str | Sequence[str] | None, embeddings: str | Sequence[str] | None
) -> tuple[NDArray[Any], Floats, NDArray[Any] | None]:
    """Take labels, embeddings and ids out of a DataFrame.

    Parameters
    ----------
    frame
        A DataFrame or Arrow table.
    labels
        The column that holds them, or several, which are votes; unless told, one that is called so.
    embeddings
        The column that holds a list of numbers each, or several of one number each; unless told, one that is called
        so, else all columns of numbers that are nothing else.

    Examples
    --------
    >>> table = pa.table({"x": [0.0, 1.0], "y": ["a", "b"], "z": [2.0, 3.0]})
    >>> from_frame(table, "y", None)[1]
    array([[0., 2.],
           [1., 3.]], dtype=float32)
    """
    table = as_table(frame, "data")
    known = table.column_names
    chosen = [labels] if isinstance(labels, str) else list(labels or [_named(table, LABELS, "data: no labels")])
    wanted = [embeddings] if isinstance(embeddings, str) else list(embeddings or [])
    for name in (*chosen, *wanted):
        if name not in known:
            raise InputError(f"data: no column {name!r}; {nearest(name, known)}", "data")
    if not wanted:
        wanted = [name for name in EMBEDDINGS if name in known and name not in chosen][:1] or [
            name
            for name in known
            if name not in (*chosen, "id", "index") and pa.types.is_floating(table.column(name).type)
        ]
    if not wanted:
        raise InputError(
            "data: no column of embeddings; name it, or several columns of numbers: embeddings=. For texts and images "
            "name what makes vectors of them: encoder=",
            "data",
        )
    columns = [as_column(table.column(name), name) for name in chosen]
    ids = as_column(table.column("id"), "id") if "id" in known and "id" not in (*chosen, *wanted) else None
    parts = [_rows_of(table.column(name), f"data: column {name!r}") for name in wanted]
    return (columns[0] if len(columns) == 1 else np.stack(columns, axis=1)), np.concatenate(parts, axis=1), ids


def _rows_of(column: pa.ChunkedArray, where: str) -> Floats:
    """(n, k) numbers of a column; what is missing is NaN, so that its row can be named or left out."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        rows = column.to_pylist()
        widths = {len(row) for row in rows if row is not None}
        if len(widths) != 1:
            raise InputError(f"{where} has rows of {len(widths)} different lengths; one length is needed")
        empty = [float("nan")] * widths.pop()
        return np.array([empty if row is None else row for row in rows], dtype=np.float32)
    if pa.types.is_fixed_size_list(column.type):
        return np.asarray(from_column(column, where), dtype=np.float32)
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise InputError(f"{where} holds {column.type}; expected numbers, or lists of numbers")
    numbers: Floats = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float32)[:, None]
    return numbers


def as_rows(value: Any, name: str, n: int | None = None) -> Any:
    """Return (n, d) numbers: an array, or a CSR matrix where the input is sparse."""
    if hasattr(value, "tocsr"):
        rows: Any = value.tocsr().astype(np.float32)
    else:
        if hasattr(value, "detach"):
            value = value.detach().cpu().float().numpy()
        rows = np.asanyarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
        if rows.dtype.kind not in "biuf" or rows.ndim != 2 or 0 in rows.shape:
            raise InputError(f"{name}: has shape {rows.shape} and type {rows.dtype}; expected (n, d) numbers", name)
        if rows.dtype not in (np.float16, np.float32):
            with np.errstate(over="ignore"):
                rows = rows.astype(np.float32)
    if n is not None and rows.shape[0] != n:
        raise InputError(f"{name}: has {rows.shape[0]} rows, but labels has {n}; both need one row an example", name)
    return rows


def broken_rows(rows: Any) -> NDArray[np.int64]:
    """(k,) numbers of the rows that hold NaN or infinity.

    >>> broken_rows(np.array([[0.0, 1.0], [np.nan, 0.0]]))
    array([1])
    """
    if hasattr(rows, "tocsr"):
        return np.unique(rows.nonzero()[0][~np.isfinite(rows.data)]) if rows.nnz else np.empty(0, dtype=np.int64)
    bad = np.zeros(len(rows), dtype=np.bool_)

    def block(start: int, stop: int) -> None:
        bad[start:stop] = ~np.isfinite(rows[start:stop]).all(axis=1)

    map_blocks(block, len(rows), rows.shape[1])
    return np.flatnonzero(bad)


def as_dense(rows: Any, other: Any = None, seed: int = 0) -> tuple[Floats, Floats | None]:
    """Return rows, and those of another split, as arrays; sparse ones in their leading directions (SVD).

    A sparse matrix with few columns is only written out.
    """
    if not hasattr(rows, "tocsr"):
        return rows, other
    if rows.shape[1] <= SVD_WIDTH or min(rows.shape) <= SVD_WIDTH + 1:
        return np.asarray(rows.todense()), None if other is None else np.asarray(other.todense())
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415 - only for sparse rows

    found = TruncatedSVD(SVD_WIDTH, random_state=seed).fit(rows)
    return found.transform(rows).astype(np.float32), None if other is None else found.transform(other).astype(
        np.float32
    )


def read_rows(path: str | Path, name: str) -> Any:
    """Read (n, d) numbers from a file of arrays, a text file, or a sparse matrix that SciPy saved."""
    arrays = read_arrays(path) if Path(path).suffix == ".npz" else {}
    if {"data", "indices", "indptr", "shape"} <= set(arrays):
        from scipy.sparse import csr_matrix  # noqa: PLC0415 - only for sparse rows

        try:
            return csr_matrix(
                (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(map(int, arrays["shape"]))
            )
        except (ValueError, TypeError) as error:
            raise InputError(f"{path}: not a sparse matrix in compressed rows ({error})", name) from None
    return read_whole(path, name)
