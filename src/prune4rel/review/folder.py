"""What there is to review: the folder that `prune4rel clean` wrote, opened for looking, and the decisions beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prune4rel.contents import refuse_damage
from prune4rel.data import Dataset
from prune4rel.data.columns import rows_by_split
from prune4rel.data.files import told_outside
from prune4rel.data.reader import read_dataset
from prune4rel.data.source import CLEAN_AGAIN, CLEANED
from prune4rel.data.table import open_parts
from prune4rel.decisions import Decision, DecisionLog, Whereabouts
from prune4rel.decisions.log import KINDS
from prune4rel.errors import InputError, nearest
from prune4rel.labels import Labels
from prune4rel.reading import read_record, read_sealed, reading
from prune4rel.review.order import Neighbours
from prune4rel.storage import read_arrays, read_columns, read_signal

LABELS, NEIGHBOURS, DUPLICATES, SOURCE, SIGNALS = (
    "labels.parquet",
    "neighbours.npz",
    "duplicates.parquet",
    "source.json",
    "signals",
)
DECISIONS = "decisions.jsonl"
MOST_CLASSES_GUESSED = 10
BLOCK = 10_000
"""Rows of probabilities looked at together."""

LONGEST_CELL = 2000
"""Characters shown of one cell of a table."""


@dataclass(frozen=True)
class _Source:
    """Where examples lie, as `prune4rel clean` wrote it down."""

    dataset: str | None = None
    data: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class ReviewFolder:
    """A folder with labels to review; all but the labels is read when it is first asked for.

    Parameters
    ----------
    path
        The folder: ``labels.parquet`` has to be there; what else `prune4rel clean` writes is shown where it is.
    decisions
        The file of decisions; ``decisions.jsonl`` in the folder unless told.
    """

    def __init__(self, path: str | Path, decisions: str | Path | None = None) -> None:
        self.path = Path(path)
        if not (self.path / LABELS).is_file():
            raise InputError(f"{path}: holds no {LABELS}; give the folder that `prune4rel clean` wrote")
        refuse_damage(self.path, CLEANED, CLEAN_AGAIN)
        self.labels = Labels.load(self.path / LABELS)
        where = Whereabouts(
            len(self.labels),
            self.labels.class_names,
            self.labels.given_label,
            self.labels.ids,
            self.labels.content,
        )
        self.log = DecisionLog(self.path / DECISIONS if decisions is None else decisions, where.row_of)

    @cached_property
    def neighbours(self) -> Neighbours | None:
        """(n, k) nearest rows and their similarities, where they are known."""
        if not (self.path / NEIGHBOURS).is_file():
            return None
        found = read_arrays(self.path / NEIGHBOURS)
        try:
            indices, similarities = found["indices"], found["similarities"]
        except KeyError as error:
            raise InputError(f"{self.path / NEIGHBOURS}: holds no {error}; run `prune4rel clean` again") from None
        n = len(self.labels)
        if indices.shape != similarities.shape or len(indices) != n or (indices >= n).any():
            raise InputError(f"{self.path / NEIGHBOURS}: is not about these {n} labels; run `prune4rel clean` again")
        return indices, similarities

    @cached_property
    def _duplicates(self) -> tuple[dict[int, list[int]], dict[int, list[tuple[int, str, str]]]]:
        """Groups of each training row, and members of each group: row, split, kind."""
        groups: dict[int, list[int]] = {}
        members: dict[int, list[tuple[int, str, str]]] = {}
        if (self.path / DUPLICATES).is_file():
            path = self.path / DUPLICATES
            table = read_columns(path, ["group", "index", "split", "kind"])[0]
            with reading(path, "table of copies"):
                rows = list(zip(*(table[name].tolist() for name in ("group", "index", "split", "kind")), strict=True))
                if not all(isinstance(group, int) and isinstance(index, int) for group, index, _, _ in rows):
                    raise ValueError("group and index are whole numbers")
            for group, index, split, kind in rows:
                members.setdefault(group, []).append((index, split, kind))
                if split == "train":
                    groups.setdefault(index, []).append(group)
        return groups, members

    def duplicates_of(self, row: int) -> list[tuple[int, str, str]]:
        """Return other members of a row's duplicate groups: their row, their split, ``"exact"`` or ``"near"``."""
        groups, members = self._duplicates
        found = (each for group in groups.get(row, ()) for each in members[group])
        return [each for each in dict.fromkeys(found) if each[:2] != (row, "train")]

    @cached_property
    def _source(self) -> _Source:
        """What `clean` wrote of where the examples lie."""
        return read_record(_Source, read_sealed(self.path / SOURCE), self.path / SOURCE)

    @cached_property
    def _opened(self) -> tuple[Dataset | None, str]:
        """The data set the labels belong to, and why there is none."""
        if not (self.path / SOURCE).exists():
            return None, f"There is no {SOURCE} that says where the examples lie."
        try:
            source = self._source
            if not source.dataset:
                return None, "These labels were judged from arrays, so that there is nothing to look at."
            with reading(str(source.data), "data set"):
                dataset = read_dataset(source.dataset, source.data, None, source.options)
        except InputError as error:
            return None, f"The examples could not be opened: {error}"
        if len(dataset.train) != len(self.labels):
            told = f"{source.dataset} has {len(dataset.train):,} examples by now, and {len(self.labels):,} were judged"
            return None, f"The examples have changed: {told}."
        return dataset, ""

    @cached_property
    def _table(self) -> pa.Table | None:
        """The columns that say something in words or numbers, row by row, where the examples come from a table."""
        if self.dataset is None or self._source.dataset != "table":
            return None
        options = self._source.options
        try:
            with reading(str(self._source.data), "table"):
                parts = open_parts(Path(str(self._source.data)))
                train = (rows_by_split(parts[""], options.get("split")) if set(parts) == {""} else parts).get("train")
        except InputError:
            return None
        if train is None or train.table.num_rows != len(self.labels):
            return None
        shown = options.get("text")
        bulky = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary)  # vectors and images
        columns = [each.name for each in train.table.schema if not any(kind(each.type) for kind in bulky)]
        plain = [name for name in columns if name != shown]
        return train.table.select(plain)

    def cells_of(self, row: int) -> list[tuple[str, str]]:
        """Return what the row of the user's own table says besides the text or picture: column and value."""
        if self._table is None:
            return []
        try:
            with reading(str(self._source.data), "table"):
                (values,) = self._table.slice(row, 1).to_pylist()
        except InputError:
            return []
        return [(name, "" if value is None else str(value)[:LONGEST_CELL]) for name, value in values.items()]

    @property
    def dataset(self) -> Dataset | None:
        """The data set the labels belong to, if it can be opened."""
        return self._opened[0]

    @property
    def kind(self) -> str:
        """``"pictures"``, ``"texts"`` or ``"rows"``: what there is to show of an example."""
        kind = "features" if self.dataset is None else self.dataset.kind
        return {"images": "pictures", "files": "pictures", "texts": "texts"}.get(kind, "rows")

    @property
    def outside(self) -> str:
        """What a person should know of where the examples lie; empty where they lie beside what lists them."""
        return "" if self.dataset is None else told_outside(self.dataset.train.files or (), self._source.data)

    @property
    def trouble(self) -> str:
        """Why there is nothing to show of the examples; empty where there is."""
        return self._opened[1]

    @cached_property
    def probabilities(self) -> NDArray[np.floating[Any]] | None:
        """(n, C) how likely each class is, where signals are there."""
        found = read_signal(self.path / SIGNALS, "probabilities")
        wanted = len(self.labels), len(self.labels.class_names)
        return found if found is not None and found.shape == wanted else None

    @cached_property
    def suggested(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(n,) class that a person is asked about, and (n,) how sure it is.

        It is the predicted one. But where the prediction leaves a label as given although another class is likelier,
        as `clean` does where few labels look wrong, a person gets to see the likelier one.
        """
        label, sure = self.labels.predicted_label.copy(), self.labels.confidence.copy()
        if self.probabilities is not None:
            unlikely = np.flatnonzero((label == self.labels.given_label) & (self.labels.label_score < 0.5))
            for rows in np.array_split(unlikely, len(unlikely) // BLOCK + 1):
                some = np.asarray(self.probabilities[rows], dtype=np.float64)
                best = some.argmax(axis=1)
                there = some[np.arange(len(rows)), best]
                other = there > self.labels.label_score[rows]
                label[rows[other]], sure[rows[other]] = best[other], there[other]
        return label, sure

    def likeliest(self, row: int) -> list[int]:
        """Return the classes most likely to be right, the likeliest first; at most ten."""
        if self.probabilities is None:
            best = [int(self.suggested[0][row]), int(self.labels.given_label[row])]
            return list(dict.fromkeys(best))
        order = np.argsort(-self.probabilities[row], kind="stable")[:MOST_CLASSES_GUESSED]
        return [int(label) for label in order]

    def decision(self, row: int, what: str, label: str | None, who: str, *, bulk: bool = False) -> Decision:
        """Make the decision on a row that the log takes, or refuse one that says nothing."""
        labels = self.labels
        if not 0 <= row < len(labels):
            raise InputError(f"there is no row {row} among {len(labels)}")
        if what not in KINDS:
            raise InputError(f"{what!r} is no decision; {nearest(what, KINDS)}")
        if what == "label" and label not in labels.class_names:
            raise InputError(f"{label!r} is no class here; {nearest(str(label), labels.class_names)}")
        name = None if labels.ids is None else labels.ids[row].item()
        return Decision(
            index=row,
            what=what,  # type: ignore[arg-type]
            label=label if what == "label" else None,
            given=labels.class_names[labels.given_label[row]],
            id=name,
            content=None if labels.content is None else str(labels.content[row]) or None,
            who=who,
            bulk=bulk,
        )
