"""Several people labelled each example: one label from their votes, and how good each of them is."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.errors import InputError, nearest

Way = Literal["auto", "votes", "dawid-skene"]
WAYS: tuple[str, ...] = get_args(Way)

MISSING = -1
MOST_ENTRIES = 5e7
"""Of all annotators' confusions together: beyond that votes are counted."""

ROUNDS = 50
SETTLED = 1e-6
HIDDEN = 0.2
"""Share of the votes that are hidden to see which way foretells them better."""

PRIOR = 10.0
"""Votes by the average annotator that everyone's own are mixed with: who voted little counts as average."""

SMOOTH = 0.1
"""Of a vote, by which every count is raised so that nothing is impossible."""


@dataclass(frozen=True, eq=False)
class Consensus:
    """What votes come to.

    Parameters
    ----------
    labels
        (n,) the likeliest class of each example.
    probabilities
        (n, C) of each class; rows sum to 1.
    agreement
        (n,) share of an example's votes that are for its label; 0 where nobody voted.
    votes
        (n,) how many people voted.
    quality
        (A,) each annotator's estimated share of right votes, 0 to 1, higher is better.
    cast
        (A,) how often each voted.
    confusion
        (A, C, C) by [annotator, true, voted], rows sum to 1.
    way
        ``"votes"`` or ``"dawid-skene"``.
    """

    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    agreement: NDArray[np.float64]
    votes: NDArray[np.int64]
    quality: NDArray[np.float64]
    cast: NDArray[np.int64]
    confusion: NDArray[np.float64]
    way: str


@dataclass(frozen=True)
class _Votes:
    """(v,) whose vote on what for which class."""

    example: NDArray[np.int64]
    annotator: NDArray[np.int64]
    label: NDArray[np.int64]
    n: int
    n_annotators: int
    n_classes: int

    def only(self, some: NDArray[np.bool_]) -> "_Votes":
        example, annotator, label = self.example[some], self.annotator[some], self.label[some]
        return _Votes(example, annotator, label, self.n, self.n_annotators, self.n_classes)


def consensus(votes: ArrayLike, n_classes: int, *, way: Way = "auto", seed: int = 0) -> Consensus:
    """Find one label for each example from the votes of several people.

    Parameters
    ----------
    votes
        (n, A) what each annotator voted, in ``range(n_classes)``; -1 where somebody did not.
    n_classes
        C.
    way
        ``"votes"`` counts them. ``"dawid-skene"`` weighs them by how often each annotator takes which class for which,
        estimated together with the labels (Dawid and Skene, 1979; annotators with few votes count as average).
        ``"auto"`` takes the one that foretells hidden votes better.
    seed
        Of the draw of hidden votes.

    Examples
    --------
    >>> found = consensus([[0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0], [0, -1, 1]], 2, way="dawid-skene")
    >>> found.labels, int(found.quality.argmin())
    (array([0, 1, 1, 0, 0]), 2)
    """
    return _agreed(_from_columns(votes, n_classes), way, seed)


def consensus_of_table(
    example: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    *,
    n: int,
    n_annotators: int,
    n_classes: int,
    way: Way = "auto",
    seed: int = 0,
) -> Consensus:
    """Do what `consensus` does from a table of votes, one a row: (v,) whose vote on what for which class.

    >>> found = consensus_of_table([0, 0, 1], [0, 1, 0], [1, 1, 0], n=3, n_annotators=2, n_classes=2)
    >>> found.labels[:2], found.votes
    (array([1, 0]), array([2, 1, 0]))
    """
    columns: list[NDArray[np.int64]] = []
    for name, values, top in (
        ("example", example, n),
        ("annotator", annotator, n_annotators),
        ("label", label, n_classes),
    ):
        column = np.asarray(values)
        if column.ndim != 1 or column.dtype.kind not in "iu":
            raise InputError(f"votes: {name} has shape {column.shape} and type {column.dtype}; expected (v,) integers")
        if (bad := np.flatnonzero((column < 0) | (column >= top))).size:
            raise InputError(f"votes: row {bad[0]} has {name} {column[bad[0]]}; expected 0 to {top - 1}", "votes")
        columns.append(column.astype(np.int64))
    if len({len(column) for column in columns}) > 1 or not len(columns[0]):
        raise InputError("votes: example, annotator and label must have as many rows, and at least one", "votes")
    return _agreed(_Votes(columns[0], columns[1], columns[2], n, n_annotators, n_classes), way, seed)


def _agreed(cast: _Votes, way: Way, seed: int) -> Consensus:
    if way not in WAYS:
        raise InputError(f"way: unknown {way!r}; {nearest(way, WAYS)}", "way")
    if cast.n_annotators * cast.n_classes**2 > MOST_ENTRIES:
        if way == "dawid-skene":
            raise InputError("way: so many annotators and classes are too many for dawid-skene; use votes", "way")
        way = "votes"
    if way == "auto":
        way = _better_way(cast, seed)
    shares = _estimate(cast, way)
    confusion = _confusion(cast, shares, way)
    known = np.bincount(cast.annotator, minlength=cast.n_annotators)
    labels = shares.argmax(axis=1)
    per_example = np.bincount(cast.example, minlength=cast.n)
    agree = np.bincount(cast.example, cast.label == labels[cast.example], minlength=cast.n)
    right = np.bincount(cast.annotator, shares[cast.example, cast.label], minlength=cast.n_annotators)
    return Consensus(
        labels=labels,
        probabilities=shares,
        agreement=agree / np.maximum(1, per_example),
        votes=per_example,
        quality=right / np.maximum(1, known),
        cast=known,
        confusion=confusion,
        way=way,
    )


def _from_columns(votes: ArrayLike, n_classes: int) -> _Votes:
    table = np.asarray(votes)
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "iu":
        raise InputError(
            f"votes: have shape {table.shape} and type {table.dtype}; expected (n, A) integers, "
            "one column an annotator",
            "votes",
        )
    if (bad := np.argwhere((table < MISSING) | (table >= n_classes))).size:
        row, column = bad[0]
        raise InputError(
            f"votes: row {row} has {table[row, column]} in column {column}; expected 0 to {n_classes - 1}, "
            "or -1 for none",
            "votes",
        )
    example, annotator = np.nonzero(table != MISSING)
    if not len(example):
        raise InputError("votes: nobody voted", "votes")
    label = table[example, annotator].astype(np.int64)
    return _Votes(example, annotator, label, len(table), table.shape[1], n_classes)


def _better_way(cast: _Votes, seed: int) -> Way:
    """Hide some votes; return the way whose labels and confusions make them likelier."""
    hidden = np.random.default_rng([seed, cast.n]).random(len(cast.example)) < HIDDEN
    shown, asked = cast.only(~hidden), cast.only(hidden)
    likelihood = {}
    for way in ("votes", "dawid-skene"):
        shares = _estimate(shown, way)
        expected = np.einsum(
            "vc,vc->v", shares[asked.example], _confusion(shown, shares, way)[asked.annotator, :, asked.label]
        )
        likelihood[way] = float(np.log(np.maximum(expected, 1e-12)).sum())
    return "dawid-skene" if likelihood["dawid-skene"] > likelihood["votes"] else "votes"


def _estimate(cast: _Votes, way: str) -> NDArray[np.float64]:
    """(n, C) how likely each class is for each example."""
    counts = np.zeros((cast.n, cast.n_classes))
    np.add.at(counts, (cast.example, cast.label), 1.0)
    frequency = counts.sum(axis=0) / counts.sum()
    shares: NDArray[np.float64] = (counts + SMOOTH * frequency) / (counts.sum(axis=1, keepdims=True) + SMOOTH)
    if way == "votes":
        return shares
    for _ in range(ROUNDS):
        before = shares
        prior = np.log(np.maximum(shares.mean(axis=0), 1e-300))
        logs = np.tile(prior, (cast.n, 1))
        np.add.at(logs, cast.example, np.log(_confusion(cast, shares, way))[cast.annotator, :, cast.label])
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        if np.abs(shares - before).max() < SETTLED:
            break
    return shares


def _confusion(cast: _Votes, shares: NDArray[np.float64], way: str) -> NDArray[np.float64]:
    """Return (A, C, C) what each takes for what: all alike by counted votes, else each mixed with the average."""
    C = cast.n_classes
    pooled = np.zeros((C, C))
    np.add.at(pooled.T, cast.label, shares[cast.example])
    average = pooled + SMOOTH / C + SMOOTH * np.eye(C)
    average /= average.sum(axis=1, keepdims=True)
    if way == "votes":
        return np.broadcast_to(average, (cast.n_annotators, C, C))
    seen = np.zeros((cast.n_annotators, C, C))
    np.add.at(seen.transpose(0, 2, 1), (cast.annotator, cast.label), shares[cast.example])
    seen += PRIOR * average
    seen /= seen.sum(axis=2, keepdims=True)
    return seen
