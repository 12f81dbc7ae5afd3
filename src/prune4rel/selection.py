"""`Selection`: which examples, in which order, why, and where the answer came from."""

import csv
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prune4rel.errors import InputError, in_a_line
from prune4rel.provenance import fingerprint
from prune4rel.reading import parse_json, read_record, reading
from prune4rel.storage import (
    check_writable,
    defuse,
    read_columns,
    to_json,
    to_table,
    write_parquet,
    write_together,
    write_whole,
)

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch.utils.data import Dataset, Sampler, Subset

METADATA_KEY, SCORES_KEY = b"prune4rel.selection", b"prune4rel.selection.scores"
FORMAT = 1
SUFFIXES = (".parquet", ".csv", ".txt", ".npy")
"""What a selection is saved as; the first is loaded again."""


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
        """Save it; the suffix says how.

        ``.parquet`` has one row a pick, with a JSON manifest beside it, and is what `load` reads. It also carries the
        manifest, so that it can be loaded without the JSON. A method's score of every example goes into a second
        Parquet file, ``NAME.scores.parquet``.

        For other programs: ``.csv`` has the same rows, ``.txt`` one pick a line (its id, such as the path of an image,
        where there are ids, else its index), ``.npy`` the indices.
        """
        path = Path(path)
        plain_forms = {".npy": self._write_indices, ".csv": self._write_csv, ".txt": self._write_names}
        if (write := plain_forms.get(path.suffix)) is not None:
            write_whole(path, write, force=force)
            return
        check_suffix(path)
        manifest = self.manifest()
        table = self._table()
        scores = None if self.scores is None else to_table({"score": self.scores})
        theirs = "" if self.scores is None else fingerprint(np.asarray(self.scores))
        table = table.replace_schema_metadata({METADATA_KEY: to_json(manifest), SCORES_KEY: theirs})
        companions = [path.with_suffix(".json")] + [_scores_path(path)] * (self.scores is not None)
        for companion in companions:
            check_writable(companion, force=force)
        files: dict[Path, Callable[[Path], object]] = {}
        if scores is not None:
            files[_scores_path(path)] = lambda part: write_parquet(scores, part)
        text = to_json(manifest, indent=2) + "\n"
        files[path.with_suffix(".json")] = lambda part: part.write_text(text, encoding="utf-8")
        files[path] = lambda part: write_parquet(table, part)
        write_together(files, force=force, gone=[_scores_path(path)] if scores is None else ())

    def _write_indices(self, part: Path) -> None:
        with part.open("wb") as file:
            np.save(file, self.indices, allow_pickle=False)

    def _write_csv(self, part: Path) -> None:
        columns = self._table().to_pydict()
        with part.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(columns)
            rows.writerows(map(defuse, row) for row in zip(*columns.values(), strict=True))

    def _write_names(self, part: Path) -> None:
        names = [str(name) for name in (self.indices if self.ids is None else self.ids).tolist()]
        for name in names:
            if len(name.splitlines()) > 1:
                raise InputError(f"the name {in_a_line(name)!r} is longer than a line; save as .csv or .parquet")
        part.write_text("".join(f"{name}\n" for name in names), encoding="utf-8", errors="surrogateescape")

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
        with reading(path, "selection"):
            return cls._from_file(path)
        raise AssertionError

    @classmethod
    def _from_file(cls, path: Path) -> Self:
        column, metadata = read_columns(path)
        text = metadata.get(METADATA_KEY)
        if text is None:
            raise InputError(f"{path}: not a selection; it was not written by Selection.save")
        manifest = parse_json(text, path)
        if isinstance(manifest, dict) and isinstance(manifest.get("format"), int) and manifest["format"] > FORMAT:
            raise InputError(f"{path}: written by a newer prune4rel (format {manifest['format']}); update to read it")
        facts = read_record(_Manifest, manifest, path)
        scores, size = _scores_path(path), len(column["index"]) if "index" in column else 0
        beside = read_columns(scores)[0] if os.path.lexists(scores) else {}
        found = fingerprint(beside["score"]) if "score" in beside else ""
        if metadata.get(SCORES_KEY, found.encode()) != found.encode():
            raise InputError(f"{scores}: are not the scores that {path.name} was written with; select again")
        return cls(
            indices=_whole(column, "index", path, size, facts.n),
            gains=_numbers(column, "gain", path),
            objective=float("nan") if facts.objective is None else facts.objective,
            n=facts.n,
            method=facts.method,
            options=facts.options,
            stats=facts.stats,
            provenance=facts.provenance,
            labels=_whole(column, "label", path, size, 2**31) if "label" in column else None,
            confidence=_numbers(column, "confidence", path) if "confidence" in column else None,
            ids=column.get("id"),
            scores=_numbers(beside, "score", scores) if beside else None,
            notes=facts.notes,
            weights=_numbers(column, "weight", path) if "weight" in column else None,
        )

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(n,) bool, True where an example was picked."""
        found = np.zeros(self.n, dtype=np.bool_)
        found[self.indices] = True
        return found

    def to_pandas(self) -> "DataFrame":
        """Return the picks as a pandas DataFrame: rank, index, id, gain, label, confidence and weight where known."""
        if find_spec("pandas") is None:
            raise InputError("to_pandas needs pandas, which is not installed: pip install pandas")
        return self._table().to_pandas()

    def sampler(self, *, seed: int = 0) -> "Sampler[int]":
        """Return a sampler of PyTorch that draws picks from a data set of all n examples.

        An epoch has as many draws as there are picks. Where the method weighs its picks, they are drawn by their
        `weights`, with repetition; else each comes once, in random order.
        """
        import torch  # noqa: PLC0415 - two seconds that not every user need spend
        from torch.utils.data import SubsetRandomSampler, WeightedRandomSampler  # noqa: PLC0415 - likewise

        generator = torch.Generator().manual_seed(seed)
        if self.weights is None:
            return SubsetRandomSampler(self.indices.tolist(), generator)
        chances = np.zeros(self.n)
        chances[self.indices] = self.weights
        if not chances.any():
            raise InputError("all weights of the picks are 0, so that none can be drawn")
        return WeightedRandomSampler(chances.tolist(), len(self), generator=generator)

    def subset(self, dataset: "Dataset[Any]") -> "Subset[Any]":
        """Restrict a PyTorch dataset of the same n examples to the picks, in pick order."""
        from torch.utils.data import Subset  # noqa: PLC0415 - two seconds that not every user need spend

        length = getattr(dataset, "__len__", lambda: None)()
        if length is not None and length != self.n:
            raise InputError(f"the data set has {length} examples, but the selection was made from {self.n}")
        return Subset(dataset, self.indices.tolist())


@dataclass(frozen=True)
class _Manifest:
    """What a selection says of itself besides its arrays."""

    format: int
    method: str
    n: Annotated[int, (0, 2**48)]
    objective: float | None
    options: dict[str, Any]
    stats: dict[str, Any]
    notes: tuple[str, ...]
    provenance: dict[str, Any]


def _whole(columns: Mapping[str, NDArray[Any]], name: str, path: Path, size: int, n: int) -> NDArray[np.int64]:
    """Return a column of numbers from 0 to n - 1; of those called index, each once."""
    found = columns.get(name)
    if found is None or found.dtype.kind not in "iu" or found.shape != (size,):
        raise InputError(f"{path}: has no column {name!r} of whole numbers; it was not written by Selection.save")
    if size and not 0 <= found.min() <= found.max() < n:
        raise InputError(f"{path}: column {name!r} has numbers that are not from 0 to {n - 1}")
    if name == "index" and len(np.unique(found)) != size:
        raise InputError(f"{path}: column {name!r} has a number twice")
    return found.astype(np.int64, copy=False)


def _numbers(columns: Mapping[str, NDArray[Any]], name: str, path: Path) -> NDArray[np.float64]:
    found = columns.get(name)
    if found is None or found.dtype.kind not in "iuf" or found.ndim != 1:
        raise InputError(f"{path}: has no column {name!r} of numbers; it was not written by Selection.save")
    return found.astype(np.float64, copy=False)


def check_suffix(path: Path) -> None:
    """Refuse a name that does not say how a selection is to be saved."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: a selection is saved as {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")


def _scores_path(path: Path) -> Path:
    return path.with_suffix(".scores.parquet")
