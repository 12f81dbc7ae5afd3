"""What to show next: by doubt, by what a decision is worth to others, by suspicion, by chance, or as they lie."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError, nearest
from prune4rel.greedy import lazy_greedy
from prune4rel.labels import Labels
from prune4rel.neighbours.graph import Edges, Graph

Rows = NDArray[np.int64]
Neighbours = tuple[NDArray[np.int64], NDArray[np.float32]]
"""(n, k) nearest rows, and (n, k) their similarities; -1 where there are fewer."""

MOST_WORTH = 20_000
"""Examples that are ordered by worth; nobody decides more between two looks by a model."""

DOUBTFUL = 0.1
"""Doubt from which a label may be helped by a neighbour's decision."""

TOLD = 0.3
"""How much of its doubt an example lends to its neighbours. See ``benchmarks/reviewing.py orders``."""


def by_suspicion(labels: Labels, decided: NDArray[np.bool_], neighbours: Neighbours | None, seed: int) -> Rows:
    """Lowest label score first."""
    del decided, neighbours, seed
    return labels.worst_first


def by_doubt(labels: Labels, decided: NDArray[np.bool_], neighbours: Neighbours | None, seed: int) -> Rows:
    """Those first whose corrected label is the least sure: there a person adds the most to what is known already."""
    del decided, neighbours, seed
    return np.argsort(-doubts(labels), kind="stable")


def by_chance(labels: Labels, decided: NDArray[np.bool_], neighbours: Neighbours | None, seed: int) -> Rows:
    """In an order drawn at random: what is decided is an honest sample of all."""
    del decided, neighbours
    return np.random.default_rng(seed).permutation(len(labels))


def by_row(labels: Labels, decided: NDArray[np.bool_], neighbours: Neighbours | None, seed: int) -> Rows:
    """As they lie."""
    del decided, neighbours, seed
    return np.arange(len(labels))


def by_worth(labels: Labels, decided: NDArray[np.bool_], neighbours: Neighbours | None, seed: int) -> Rows:
    """First whose settling helps the most doubtful labels: its own, and those of its neighbours.

    The objective that picks subsets, on the doubtful examples: each lends part of its doubt to its doubtful neighbours,
    with diminishing returns, so that neighbours of what was shown already come later. The others follow by doubt.
    """
    doubt, rest = doubts(labels), by_doubt(labels, decided, neighbours, seed)
    if neighbours is None:
        return rest
    some = np.sort(rest[~decided[rest] & (doubt[rest] >= DOUBTFUL)][:MOST_WORTH])
    if not some.size:
        return rest
    settled = np.flatnonzero(decided)
    graph = _graph_among(np.concatenate([settled, some]), neighbours)
    own = np.concatenate([np.ones(len(settled)), doubt[some]])
    start = np.arange(len(settled))
    picks = lazy_greedy(graph, own, len(own), gain="coverage", initial=start).indices[len(settled) :]
    first = some[picks - len(settled)]
    shown = np.zeros(len(labels), dtype=np.bool_)
    shown[first] = True
    return np.concatenate([first, rest[~shown[rest]]])


def doubts(labels: Labels) -> NDArray[np.float64]:
    """(n,) probability that the corrected label is wrong, by what judged it."""
    return np.where(labels.is_label_issue, 1 - labels.confidence, 1 - labels.label_score)


def _graph_among(rows: Rows, neighbours: Neighbours) -> Graph:
    """Make the symmetric graph of neighbours among some rows, numbered by their places there."""
    indices, similarities = neighbours
    place = np.full(len(indices), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    near, weight = indices[rows], similarities[rows]
    to = np.where(near >= 0, place[near], -1)
    keep = (to >= 0) & (to != np.arange(len(rows))[:, None]) & (weight > 0)
    i = np.repeat(np.arange(len(rows)), near.shape[1]).reshape(near.shape)[keep]
    edges = Edges(
        i.astype(np.int32), to[keep].astype(np.int32), (TOLD * np.minimum(weight[keep], 1)).astype(np.float32)
    )
    return Graph.from_strongest(len(rows), [edges])


ORDERS: dict[str, Callable[[Labels, NDArray[np.bool_], Neighbours | None, int], Rows]] = {
    "doubt": by_doubt,
    "worth": by_worth,
    "suspicion": by_suspicion,
    "random": by_chance,
    "row": by_row,
}


def check_order(order: str) -> None:
    """Refuse an order that there is not."""
    if order not in ORDERS:
        raise InputError(f"unknown order {order!r}; {nearest(order, ORDERS)}")


def order_rows(
    order: str, labels: Labels, decided: NDArray[np.bool_], neighbours: Neighbours | None = None, *, seed: int = 0
) -> Rows:
    """Return all rows (n,) in an order, what is to be shown first in front.

    Parameters
    ----------
    order
        One of `ORDERS`.
    labels
        What was judged.
    decided
        (n,) bool, what somebody decided already.
    neighbours
        (n, k) nearest rows and their similarities, for ``"worth"``; without them it goes by doubt alone.
    seed
        For ``"random"``.

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
    >>> order_rows("suspicion", labels, np.zeros(3, bool)), order_rows("worth", labels, np.zeros(3, bool))
    (array([1, 2, 0]), array([1, 2, 0]))
    """
    check_order(order)
    return ORDERS[order](labels, decided, neighbours, seed)
