"""`Selection`: which examples, in which order, why, and where the answer came from."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.provenance import fingerprint
from prune4rel.storage import check_writable, to_json, to_table, write_together, write_whole

if TYPE_CHECKING:
    from torch.utils.data import Dataset, Subset

METADATA_KEY, DIGESTS_KEY = b"prune4rel.selection", b"prune4rel.sha256"
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Selection:
    """A subset of n examples.

    Parameters
    ----------
    indices
        (s,) int64, in the order they were picked.
    gains
        (s,) float64, what each pick was worth when it was made; higher is better. Never increasing, except
        between classes where they are balanced, and at the end of given initial picks.
    objective
        Value of the method's objective for the whole subset; NaN where the method has none.
    n
        Number of examples selected from.
    method, options
        How it was made; options are resolved, so that they reproduce the result.
    stats
        What happened: mean degree, share of isolated examples, class counts, timings, ...
    provenance
        Versions and fingerprints of the inputs.
    labels, confidence, ids
        (s,) of the picked examples, where known.
    weights
        (s,) float64, by which each pick's loss is to be multiplied, where the method says so; 0 or more.
    scores
        (n,) the score of every example by which the method ranks, where it has one.
    notes
        What the user should know, in sentences.
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    objective: float
    n: int
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    labels: NDArray[np.int64] | None = None
    confidence: NDArray[np.float64] | None = None
    ids: NDArray[Any] | None = None
    scores: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()
    weights: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"Selection({self.method!r}, {len(self)} of {self.n}, objective={self.objective:.6g})"

    @property
    def approximate(self) -> bool:
        """Whether a shortcut was taken that may change the picks."""
        return bool(self.stats.get("approximate", False))

    def manifest(self) -> dict[str, Any]:
        """Return everything but the arrays, as it is saved."""
        return {
            "format": FORMAT,
            "method": self.method,
            "n": self.n,
            "size": len(self),
            "objective": None if np.isnan(self.objective) else self.objective,
            "options": dict(self.options),
            "stats": dict(self.stats),
            "notes": list(self.notes),
            "provenance": dict(self.provenance),
        }

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Save as Parquet, one row a pick, with a JSON manifest beside it; `.npy` holds the indices alone.

        The Parquet file also carries the manifest, so it can be loaded without the JSON. A method's score of
        every example goes into a second Parquet file, ``NAME.scores.parquet``.
        """
        path = Path(path)
        if path.suffix == ".npy":
            write_whole(path, lambda part: _save_npy(part, self.indices), force=force)
            return
        if path.suffix != ".parquet":
            raise InputError(f"{path}: a selection is saved as .parquet, or its indices alone as .npy")
        manifest = self.manifest()
        table = self._table()
        digests = {name: fingerprint(_array(table, name)) for name in table.column_names}
        scores = None if self.scores is None else to_table({"score": self.scores})
        if scores is not None:
            digests["score"] = fingerprint(_array(scores, "score"))
        table = table.replace_schema_metadata({METADATA_KEY: to_json(manifest), DIGESTS_KEY: to_json(digests)})
        companions = [path.with_suffix(".json")] + [_scores_path(path)] * (self.scores is not None)
        for companion in companions:
            check_writable(companion, force=force)
        files: dict[Path, Callable[[Path], object]] = {}
        if scores is not None:
            files[_scores_path(path)] = lambda part: pq.write_table(scores, part)
        text = to_json(manifest, indent=2) + "\n"
        files[path.with_suffix(".json")] = lambda part: part.write_text(text, encoding="utf-8")
        files[path] = lambda part: pq.write_table(table, part)
        write_together(files, force=force, gone=[_scores_path(path)] if scores is None else ())

    def _table(self) -> pa.Table:
        columns: dict[str, NDArray[Any]] = {"rank": np.arange(len(self)), "index": self.indices}
        if self.ids is not None:
            columns["id"] = self.ids
        columns["gain"] = self.gains
        if self.labels is not None:
            columns["label"] = self.labels
        if self.confidence is not None:
            columns["confidence"] = self.confidence
        if self.weights is not None:
            columns["weight"] = self.weights
        return to_table(columns)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote as Parquet."""
        path = Path(path)
        if not path.exists():
            raise InputError(f"{path}: no such file")
        try:
            table = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path}: not a readable Parquet file ({error})") from None
        text = (table.schema.metadata or {}).get(METADATA_KEY)
        if text is None:
            raise InputError(f"{path}: not a selection; it was not written by Selection.save")
        manifest = json.loads(text)
        if manifest["format"] > FORMAT:
            raise InputError(f"{path}: written by a newer prune4rel (format {manifest['format']}); update to read it")
        column = {name: _array(table, name) for name in table.column_names}
        scores = _scores_path(path)
        beside = {"score": _array(pq.read_table(scores), "score")} if scores.exists() else {}
        _check_digests(path, (table.schema.metadata or {}).get(DIGESTS_KEY), column | beside)
        return cls(
            indices=column["index"],
            gains=column["gain"],
            objective=float("nan") if manifest["objective"] is None else manifest["objective"],
            n=manifest["n"],
            method=manifest["method"],
            options=manifest["options"],
            stats=manifest["stats"],
            provenance=manifest["provenance"],
            labels=column.get("label"),
            confidence=column.get("confidence"),
            ids=column.get("id"),
            scores=beside.get("score"),
            notes=tuple(manifest["notes"]),
            weights=column.get("weight"),
        )

    def subset(self, dataset: "Dataset[Any]") -> "Subset[Any]":
        """Restrict a PyTorch dataset of the same n examples to the picks, in pick order."""
        from torch.utils.data import Subset  # noqa: PLC0415 - two seconds that not every user need spend

        length = getattr(dataset, "__len__", lambda: None)()
        if length is not None and length != self.n:
            raise InputError(f"the data set has {length} examples, but the selection was made from {self.n}")
        return Subset(dataset, self.indices.tolist())


def _array(table: pa.Table, name: str) -> NDArray[Any]:
    column = table.column(name)
    array: NDArray[Any] = column.to_numpy()
    return array.astype(np.str_) if array.dtype == object else array


def _check_digests(path: Path, text: bytes | None, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Compare what was read with what was written; files from before there were digests have none."""
    wanted = {} if text is None else json.loads(text)
    for name, digest in wanted.items():
        if name not in arrays or fingerprint(arrays[name]) != digest:
            place = _scores_path(path) if name == "score" else path
            raise InputError(f"{place}: its {name}s are not those that were written; select again")
    if wanted and "score" in arrays and "score" not in wanted:
        raise InputError(f"{_scores_path(path)}: belongs to another selection than {path.name}; select again")


def _save_npy(part: Path, indices: NDArray[np.int64]) -> None:
    with part.open("wb") as file:
        np.save(file, indices, allow_pickle=False)


def _scores_path(path: Path) -> Path:
    return path.with_suffix(".scores.parquet")
