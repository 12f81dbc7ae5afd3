"""What decisions come to for the examples of a table, of signals or of a data set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.decisions.log import Decision
from prune4rel.decisions.refusals import MisfitError, Refusals
from prune4rel.decisions.sheets import read_decisions
from prune4rel.errors import InputError, nearest
from prune4rel.labels import UNDECIDED, Labels
from prune4rel.signals import Signals

Digests = Sequence[str] | NDArray[Any]
CANNOT_TELL, REMOVED = -2, -3
"""Codes of what an example came to where that is no class."""


@dataclass(frozen=True, eq=False)
class Settled:
    """What decisions come to for n examples.

    Parameters
    ----------
    verified, removed
        (n,) bool: whose label a person has settled; what a person took out.
    decided_label
        (n,) int64, the class a person decided; -1 where nobody did.
    unsure
        (n,) bool, where a person could not tell.
    refused
        Of decisions that could not be used: how many, why, and which.
    notes
        What else there is to say: damaged lines.
    """

    verified: NDArray[np.bool_]
    removed: NDArray[np.bool_]
    decided_label: NDArray[np.int64]
    unsure: NDArray[np.bool_]
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """One line about all of it."""
        told = f"{int(self.verified.sum()):,} labels settled, {int(self.removed.sum()):,} examples removed"
        return told + (f", {int(self.unsure.sum()):,} that nobody could tell" if self.unsure.any() else "")


def settle(
    decisions: Iterable[Decision],
    n: int,
    class_names: Sequence[str] | None = None,
    *,
    given_label: NDArray[np.int64] | None = None,
    ids: NDArray[Any] | None = None,
    content: Digests | None = None,
    notes: tuple[str, ...] = (),
) -> Settled:
    """Bring decisions to n examples, each known by its id and its content, else by its row.

    Parameters
    ----------
    decisions
        In the order they were made: a later one on the same example wins.
    n, class_names
        How many examples there are, and what their classes are called; their numbers, where they have no names.
    given_label
        (n,) labels as given. Where an example is known by its row alone, its given label has to be as it was.
    ids, content
        (n,) names of the examples, and digests of them; these may be worked out where they are asked for.
    notes
        Are handed on.

    Examples
    --------
    >>> asked = [Decision(index=0, id="b", what="label", label="cat"), Decision(index=5, id="x", what="remove")]
    >>> found = settle(asked, 2, ["cat", "dog"], ids=np.array(["a", "b"]))
    >>> found.decided_label, found.refused
    (array([-1,  0]), ("1 decision: no example is called 'x'",))
    """
    known = Whereabouts(n, class_names, given_label, ids, content)
    state = np.full(n, UNDECIDED, dtype=np.int64)
    refused = Refusals()
    numbers = None if class_names is None else {str(name): number for number, name in enumerate(class_names)}
    for each in decisions:
        try:
            row = known.row_of(each)
            state[row] = _code(each, numbers, None if given_label is None else int(given_label[row]))
        except InputError as error:
            refused.add(error)
    return Settled(
        verified=state >= 0,
        removed=state == REMOVED,
        decided_label=np.where(state >= 0, state, UNDECIDED),
        unsure=state == CANNOT_TELL,
        refused=refused.lines,
        notes=notes,
    )


class Whereabouts:
    """Finds the example a decision is about: by id, by digest, by row; parameters are those of `settle`."""

    def __init__(
        self,
        n: int,
        class_names: Sequence[str] | None,
        given_label: NDArray[np.int64] | None,
        ids: NDArray[Any] | None,
        content: Digests | None,
    ) -> None:
        self.n, self.class_names, self.given_label, self.content = n, class_names, given_label, content
        self.places = None if ids is None else {str(name): row for row, name in enumerate(ids.tolist())}

    @cached_property
    def _digests(self) -> dict[str, int]:
        values = () if self.content is None else self.content
        return {str(value): row for row, value in reversed(list(enumerate(values)))}

    def row_of(self, decision: Decision) -> int:
        """Return the row of the example a decision is about, or say why there is none."""
        named = self.places is not None and decision.id is not None
        digest = None if self.content is None else decision.content
        row = self.places.get(str(decision.id)) if self.places is not None and named else decision.index
        if named and row is None:
            raise MisfitError("no example is called ", repr(decision.id))
        if row is None or row < 0:
            raise MisfitError("", repr(decision.id), " is decided by name, but the examples here have none")
        if digest is not None and (row >= self.n or self._content_of(row) != digest):
            moved = None if named else self._digests.get(digest)
            if moved is None:
                name = repr(decision.id) if named else str(row)
                raise MisfitError("example ", name, " has changed since it was decided")
            return moved
        if row >= self.n:
            raise MisfitError("there is no row ", str(row), f" among {self.n}")
        if digest is None and not named and decision.given is not None and self.given_label is not None:
            given = int(self.given_label[row])
            if decision.given != (str(given) if self.class_names is None else str(self.class_names[given])):
                reason = "when it was decided and is not now, and there is neither an id nor a digest to know it by"
                raise MisfitError("example ", str(row), f" was given {decision.given!r} {reason}")
        return row

    def _content_of(self, row: int) -> str | None:
        return None if self.content is None else str(self.content[row])


def _code(decision: Decision, numbers: Mapping[str, int] | None, given: int | None) -> int:
    if decision.what != "label":
        return CANNOT_TELL if decision.what == "unsure" else REMOVED
    if decision.label is None:
        if given is None:
            raise InputError("what keeps its label needs to be told which: add the column label or given")
        return given
    label = str(decision.label)
    if numbers is not None:
        if label not in numbers:
            raise InputError(f"{label!r} is no class here; {nearest(label, numbers)}")
        return numbers[label]
    if not label.isdecimal():
        raise InputError(f"{label!r} is no number, and the classes here have no names")
    return int(label)


def settle_from(
    path: str | Path,
    n: int,
    class_names: Sequence[str] | None = None,
    *,
    given_label: NDArray[np.int64] | None = None,
    ids: NDArray[Any] | None = None,
    content: Digests | None = None,
) -> Settled:
    """Read a file of decisions and bring them to n examples, as `settle` does; refuse one of which nothing fits."""
    decisions, notes = read_decisions(path)
    found = settle(decisions, n, class_names, given_label=given_label, ids=ids, content=content, notes=notes)
    if decisions and found.refused and not (found.verified | found.removed | found.unsure).any():
        raise InputError(f"{path}: none of its decisions is about these examples: {found.refused[0]}", "decisions")
    return found


def digests_beside(signals: str | Path, n: int) -> Digests | None:
    """Return digests of n original examples, where `prune4rel clean` wrote a table of labels beside its signals."""
    path = Path(signals).parent / "labels.parquet"
    if Path(signals).name != "signals" or not path.is_file():
        return None
    labels = Labels.load(path)
    return labels.content if len(labels) == n else None


def settle_labels(labels: Labels, settled: Settled) -> Labels:
    """Write what was decided into a table of labels; whatever stood there from earlier decisions is replaced.

    Examples
    --------
    >>> labels = Labels(
    ...     given_label=[0, 1],
    ...     predicted_label=[1, 1],
    ...     label_score=[0.1, 0.9],
    ...     is_label_issue=[True, False],
    ...     confidence=[0.9, 0.9],
    ...     class_names=("cat", "dog"),
    ... )
    >>> settled = settle([Decision(index=0, what="label", label="cat")], 2, labels.class_names)
    >>> settle_labels(labels, settled).corrected_label
    array([0, 1])
    """
    return replace(labels, verified=settled.verified, removed=settled.removed, decided_label=settled.decided_label)


def settle_signals(signals: Signals, settled: Settled) -> Signals:
    """Make what a person settled certain: labels as decided, sure of them, and nothing of what was removed.

    A settled example has its decided label, probability 1 for it, loss 0, and is `verified`. A removed one is no
    longer `known`, so that it is never picked.

    Examples
    --------
    >>> signals = Signals(labels=[0, 1], probabilities=[[0.4, 0.6], [0.3, 0.7]])
    >>> after = settle_signals(signals, settle([Decision(index=0, what="label", label="1")], 2))
    >>> after.labels, after.probabilities[0], after.verified
    (array([1, 1]), array([0., 1.]), array([ True, False]))
    """
    if len(settled.verified) != len(signals):
        raise InputError(f"decisions are for {len(settled.verified)} examples, but the signals have {len(signals)}")
    rows = np.flatnonzero(settled.verified)
    arrays = {name: array for name, array in signals.arrays().items() if name != "class_names"}
    labels = signals.labels.copy()
    labels[rows] = settled.decided_label[rows]
    arrays["labels"] = labels
    if signals.probabilities is not None:
        probabilities = np.array(signals.probabilities)
        beyond = settled.decided_label[rows] >= probabilities.shape[1]
        if beyond.any():
            raise InputError(f"decided label {settled.decided_label[rows][beyond][0]} is no class of the probabilities")
        probabilities[rows] = 0
        probabilities[rows, labels[rows]] = 1
        arrays["probabilities"] = probabilities
    for name in ("losses", "el2n", "grad_norms"):
        if name in arrays:
            arrays[name] = np.where(settled.verified, 0.0, arrays[name])
    before = np.zeros(len(signals), dtype=np.bool_) if signals.verified is None else signals.verified
    arrays["verified"] = before | settled.verified
    if settled.removed.any():
        known = np.zeros(len(signals), dtype=np.bool_)
        known[signals.readable_rows] = True
        arrays["known"] = known & ~settled.removed
    return Signals(class_names=signals.class_names, **arrays)
