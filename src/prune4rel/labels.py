"""`Labels`: one table of labels, whoever judged them: given, predicted, how suspicious, what a person decided."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.reading import parse_json, read_bytes, read_record, reading
from prune4rel.storage import (
    FORMULA,
    check_writable,
    from_column,
    read_columns,
    to_json,
    to_table,
    write_parquet,
    write_together,
)

if TYPE_CHECKING:
    from pandas import DataFrame

METADATA_KEY = b"prune4rel.labels"
FORMAT = 1
UNDECIDED = -1
"""In `decided_label`: nobody decided."""

NUMBERS = ("given_label", "predicted_label", "label_score", "is_label_issue", "confidence")
"""Columns that are always there and are read as they are."""

TEXT = ("given_name", "corrected_name", "source", "content")


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of n labels, as arrays whose first axis is the example.

    Parameters
    ----------
    given_label
        (n,) the label that was given, in ``range(C)``.
    predicted_label
        (n,) the label that is believed to be right, in ``range(C)``.
    label_score
        (n,) 0 to 1, how well the given label fits; low is suspicious.
    is_label_issue
        (n,) bool, whether the given label is believed to be wrong.
    confidence
        (n,) 0 to 1, probability that `predicted_label` is right.
    class_names
        C names.
    verified
        (n,) bool, True where a person has settled the label; None where nobody looked.
    removed
        (n,) bool, True where a person has thrown the example out.
    decided_label
        (n,) what a person decided, in ``range(C)``; -1 where nobody did.
    ids
        (n,) names of the examples, integers or strings.
    source
        Who judged, for all or for each (n,): ``"judging"``, ``"training"``, ``"person"``, ``"nobody"``, ...
    content
        (n,) digest of the original example, not of its embedding.
    noise_rate
        Estimated share of given labels that are wrong, 0 to 1.
    noise_matrix
        (C, C) by [true, given]: estimated share of a class's members that were given each label.
    about
        How it was made: options, provenance, intervals, notes. Anything JSON has a word for.

    Raises
    ------
    InputError
        A `ValueError` that names the column, the row and the remedy.

    Examples
    --------
    >>> labels = Labels(
    ...     given_label=[0, 1, 1],
    ...     predicted_label=[0, 0, 1],
    ...     label_score=[0.9, 0.1, 0.8],
    ...     is_label_issue=[False, True, False],
    ...     confidence=[0.9, 0.7, 0.8],
    ...     class_names=("cat", "dog"),
    ... )
    >>> labels.corrected_label, labels.worst_first
    (array([0, 0, 1]), array([1, 2, 0]))
    """

    given_label: NDArray[np.int64]
    predicted_label: NDArray[np.int64]
    label_score: NDArray[np.float64]
    is_label_issue: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    class_names: tuple[str, ...]
    verified: NDArray[np.bool_] | None = None
    removed: NDArray[np.bool_] | None = None
    decided_label: NDArray[np.int64] | None = None
    ids: NDArray[Any] | None = None
    source: NDArray[np.str_] | str = "judging"
    content: NDArray[np.str_] | None = None
    noise_rate: float | None = None
    noise_matrix: NDArray[np.float64] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = tuple(map(str, self.class_names))
        n, C = len(self.given_label), len(names)
        if not C or n == 0:
            raise InputError("labels: there must be at least one class and one label", "given_label")
        source = np.full(n, self.source) if isinstance(self.source, str) else self.source
        checked: dict[str, Any] = {
            "class_names": names,
            "given_label": _check_numbers(self.given_label, "given_label", n, lowest=0, highest=C - 1),
            "predicted_label": _check_numbers(self.predicted_label, "predicted_label", n, lowest=0, highest=C - 1),
            "label_score": _check_shares(self.label_score, "label_score", n),
            "is_label_issue": _check_flags(self.is_label_issue, "is_label_issue", n),
            "confidence": _check_shares(self.confidence, "confidence", n),
            "source": _check_column(source, "source", n, kinds="U"),
        }
        further: dict[str, Callable[[Any], Any]] = {
            "verified": lambda value: _check_flags(value, "verified", n),
            "removed": lambda value: _check_flags(value, "removed", n),
            "decided_label": lambda value: _check_numbers(value, "decided_label", n, lowest=UNDECIDED, highest=C - 1),
            "ids": lambda value: _check_column(value, "ids", n, kinds="iuU"),
            "content": lambda value: _check_column(value, "content", n, kinds="U"),
            "noise_rate": _check_rate,
            "noise_matrix": lambda value: _check_noise_matrix(value, C),
        }
        checked |= {
            name: check(getattr(self, name)) for name, check in further.items() if getattr(self, name) is not None
        }
        for name, value in checked.items():  # the only place where a frozen value is set
            object.__setattr__(self, name, _frozen(value) if isinstance(value, np.ndarray) else value)

    def __len__(self) -> int:
        return len(self.given_label)

    @property
    def corrected_label(self) -> NDArray[np.int64]:
        """(n,) what a person decided; else the prediction where it is an issue that nobody settled; else the given."""
        change = self.is_label_issue if self.verified is None else self.is_label_issue & ~self.verified
        corrected = np.where(change, self.predicted_label, self.given_label)
        if self.decided_label is None:
            return corrected
        return np.where(self.decided_label == UNDECIDED, corrected, self.decided_label)

    @property
    def worst_first(self) -> NDArray[np.int64]:
        """(n,) row numbers, the most suspicious first; ties in their order."""
        return np.argsort(self.label_score, kind="stable")

    def manifest(self) -> dict[str, Any]:
        """Return everything but the columns, as it is saved."""
        return {
            "format": FORMAT,
            "n": len(self),
            "class_names": list(self.class_names),
            "noise_rate": self.noise_rate,
            "noise_matrix": None if self.noise_matrix is None else self.noise_matrix.tolist(),
            "id_type": None if self.ids is None else "string" if self.ids.dtype.kind == "U" else "integer",
            "about": dict(self.about),
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all columns by name, names of classes included, as they are saved."""
        names = np.array(self.class_names)
        corrected = self.corrected_label
        columns: dict[str, NDArray[Any] | None] = {
            "index": np.arange(len(self)),
            "id": self.ids,
            "given_label": self.given_label,
            "given_name": names[self.given_label],
            "predicted_label": self.predicted_label,
            "is_label_issue": self.is_label_issue,
            "label_score": self.label_score,
            "confidence": self.confidence,
            "corrected_label": corrected,
            "corrected_name": names[corrected],
            "verified": self.verified,
            "removed": self.removed,
            "decided_label": self.decided_label,
            "source": np.asarray(self.source),
            "content": self.content,
        }
        return {name: column for name, column in columns.items() if column is not None}

    def to_pandas(self) -> "DataFrame":
        """Return the table as a pandas DataFrame, one row an example."""
        if find_spec("pandas") is None:
            raise InputError("to_pandas needs pandas, which is not installed: pip install pandas")
        return to_table(self.columns()).to_pandas()

    def to_arrow(self) -> pa.Table:
        """Return the table with its manifest, as it is in a Parquet file: such a file can be loaded by itself."""
        return to_table(self.columns()).replace_schema_metadata({METADATA_KEY: to_json(self.manifest())})

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Save as `.parquet` or `.csv`, one row an example, with a JSON manifest beside it.

        The Parquet file carries the manifest, too, so that it can be loaded without the JSON. In the CSV file, text
        that a spreadsheet would take for a formula has an apostrophe before it; `load` takes it off again. Two
        formats of the same labels share their manifest.
        """
        path = Path(path)
        if path.suffix not in (".parquet", ".csv"):
            raise InputError(f"{path}: labels are saved as .parquet or .csv")
        beside, text = path.with_suffix(".json"), to_json(self.manifest(), indent=2) + "\n"
        shared = beside.is_file() and _same(beside, text)
        if not shared:
            check_writable(beside, force=force)

        def write(part: Path) -> None:
            if path.suffix == ".parquet":
                write_parquet(self.to_arrow(), part)
                return
            columns = self.columns()
            plain = {name: _defuse(column) if column.dtype.kind == "U" else column for name, column in columns.items()}
            with part.open("wb") as file:
                pv.write_csv(to_table(plain), file)

        files: dict[Path, Callable[[Path], object]] = {beside: lambda part: part.write_text(text, encoding="utf-8")}
        write_together({**({} if shared else files), path: write}, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote; columns that are not known are passed over."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        if path.suffix not in (".parquet", ".csv"):
            raise InputError(f"{path}: labels are saved as .parquet or .csv")
        table, manifest = _read_csv(path) if path.suffix == ".csv" else _read_parquet(path)
        if missing := [name for name in NUMBERS if name not in table]:
            raise InputError(f"{path}: has no column {missing[0]!r}; it was not written by Labels.save")
        facts = read_record(_Manifest, manifest, path)
        wanted = {"id": "ids"} | {name: name for name in cls.__dataclass_fields__}
        columns: dict[str, Any] = {wanted[name]: column for name, column in table.items() if name in wanted}
        if path.suffix == ".csv":
            columns = {
                name: np.array([text.removeprefix("'") for text in column]) if column.dtype.kind == "U" else column
                for name, column in columns.items()
            }
        matrix = None if facts.noise_matrix is None else facts.noise_matrix
        try:
            with reading(path, "table of labels"):
                return cls(
                    class_names=facts.class_names,
                    noise_matrix=None if matrix is None else np.array(matrix, dtype=np.float64),
                    noise_rate=facts.noise_rate,
                    about=facts.about,
                    **columns,
                )
            raise AssertionError
        except InputError as error:
            raise InputError(f"{path}: {error}", error.field) from None


@dataclass(frozen=True)
class _Manifest:
    """What labels say of themselves besides their table."""

    class_names: tuple[str, ...]
    noise_matrix: tuple[tuple[float, ...], ...] | None
    noise_rate: float | None
    about: dict[str, Any]


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _check_column(value: object, name: str, n: int, *, kinds: str) -> NDArray[Any]:
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in kinds:
        words = {"biu": "integers", "biuf": "numbers", "U": "strings"}.get(kinds, "integers or strings")
        raise InputError(f"{name}: has shape {array.shape} and type {array.dtype}; expected (n,) {words}", name)
    if len(array) != n:
        raise InputError(f"{name}: has {len(array)} rows, but given_label has {n}", name)
    return array


def _check_numbers(value: object, name: str, n: int, *, lowest: int, highest: int) -> NDArray[np.int64]:
    array = _check_column(value, name, n, kinds="biu")
    if (bad := np.flatnonzero((array < lowest) | (array > highest))).size:
        raise InputError(f"{name}: row {bad[0]} is {array[bad[0]]}; expected {lowest} to {highest}", name)
    return array.astype(np.int64, copy=False)


def _check_shares(value: object, name: str, n: int) -> NDArray[np.float64]:
    array = _check_column(value, name, n, kinds="biuf").astype(np.float64, copy=False)
    if (bad := np.flatnonzero(~((array >= 0) & (array <= 1)))).size:
        raise InputError(f"{name}: row {bad[0]} is {array[bad[0]]}; expected 0 to 1", name)
    return array


def _check_flags(value: object, name: str, n: int) -> NDArray[np.bool_]:
    return _check_numbers(value, name, n, lowest=0, highest=1).astype(np.bool_)


def _check_rate(value: float) -> float:
    if not 0 <= value <= 1:
        raise InputError(f"noise_rate: is {value}; expected a share, 0 to 1", "noise_rate")
    return float(value)


def _check_noise_matrix(value: object, n_classes: int) -> NDArray[np.float64]:
    matrix = np.asarray(value, dtype=np.float64)
    if matrix.shape != (n_classes, n_classes) or not (np.isfinite(matrix) & (matrix >= 0)).all():
        raise InputError(
            f"noise_matrix: has shape {matrix.shape}; expected {n_classes} x {n_classes} shares, none negative",
            "noise_matrix",
        )
    return matrix


def _defuse(column: NDArray[np.str_]) -> NDArray[np.str_]:
    loaded = np.logical_or.reduce([np.char.startswith(column, sign) for sign in FORMULA])
    return np.where(loaded, np.char.add("'", column), column) if loaded.any() else column


def _read_parquet(path: Path) -> tuple[dict[str, NDArray[Any]], Any]:
    columns, metadata = read_columns(path)
    text = metadata.get(METADATA_KEY)
    if text is None:
        raise InputError(f"{path}: no labels; it was not written by Labels.save")
    return columns, _check_format(text, path)


def _read_csv(path: Path) -> tuple[dict[str, NDArray[Any]], Any]:
    beside = path.with_suffix(".json")
    if not beside.is_file():
        raise InputError(f"{path}: its manifest {beside.name} is not beside it; keep the two together")
    manifest = _check_format(read_bytes(beside, "manifest of labels"), beside)
    types = dict.fromkeys(TEXT, pa.string())
    if isinstance(manifest, dict) and manifest.get("id_type") == "string":
        types["id"] = pa.string()
    with reading(path, "CSV file"), path.open("rb") as file:
        table = pv.read_csv(
            file,
            parse_options=pv.ParseOptions(newlines_in_values=True),
            convert_options=pv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
        return {
            name: from_column(table.column(name), f"{path}: column {name!r}")
            for name in table.column_names
            if not table.column(name).null_count
        }, manifest
    raise AssertionError


def _same(path: Path, text: str) -> bool:
    try:
        return read_bytes(path, "manifest of labels") == text.encode()
    except InputError:
        return False


def _check_format(text: bytes, path: Path) -> Any:
    manifest = parse_json(text, path)
    with reading(path, "manifest of labels"):
        newer = manifest["format"] > FORMAT
    if newer:
        raise InputError(f"{path}: written by a newer prune4rel (format {manifest['format']}); update to read it")
    return manifest
