"""Selecting in parts: greedy on every part, then greedy among their picks (GreeDi, Mirzasoleiman et al. 2013).

For graphs that do not fit into memory. The examples are dealt at random into k parts, each part
proposes examples of its own, and a second greedy picks from what was proposed. Every one of these graphs has only the
rows of its candidates.

Where there is room for the rows of k times the picks wanted, this is GreeDi itself: a part proposes as many as
are wanted in all, by what they are worth to all examples. Where it has less, parts propose as many as there is room
for, by what they are worth to the part's own examples: judged by all examples, few proposals of each part would all
speak for the same crowds.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.errors import InputError
from prune4rel.greedy.lazy import Gain, Picks, lazy_greedy
from prune4rel.machine import format_bytes
from prune4rel.neighbours.graph import BYTES_PER_PAIR, Edges, Graph
from prune4rel.progress import Progress

Each = Callable[..., Iterator[Any]]
"""``each(function, calls, *shared, memory=)`` yields what ``function(*call, *shared)`` returns, in any order."""

BYTES_PER_EXAMPLE = 96
"""What a greedy loop keeps of every example, whether it is a candidate or not."""


@dataclass(frozen=True)
class EdgeList:
    """All edges of n examples, gone through again and again; rows of the graph are built when they are asked for.

    Parameters
    ----------
    n
        How many examples there are.
    parts
        Returns the edges i < j, part by part, in the order `Graph.from_upper` wants.
    """

    n: int
    parts: Callable[[], Iterable[Edges]]

    def degrees(self) -> NDArray[np.int64]:
        """(n,) number of neighbours of every example."""
        counts = np.zeros(self.n, dtype=np.int64)
        everyone = np.ones(self.n, dtype=np.bool_)
        for edges in self.parts():
            _count(edges.i, edges.j, everyone, everyone, counts)
        return counts

    def rows(self, some: NDArray[np.bool_], near: NDArray[np.bool_]) -> Graph:
        """Build the graph that has the rows of `some` examples, and in them the neighbours that are `near`."""
        counts = np.zeros(self.n, dtype=np.int64)
        for edges in self.parts():
            _count(edges.i, edges.j, some, near, counts)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        indices = np.empty(indptr[-1], dtype=np.int32)
        weights = np.empty(indptr[-1], dtype=np.float32)
        position = indptr[:-1].copy()
        for edges in self.parts():
            _place(edges.i, edges.j, edges.weight, some, near, position, indices, weights)
        return Graph(indptr, indices, weights)

    def support(self, picks: NDArray[np.int64], confidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) confidence that the picks lend to every example."""
        own = np.zeros(self.n)
        own[picks] = confidence[picks]
        support = own.copy()
        for edges in self.parts():
            _add_support(edges.i, edges.j, edges.weight, own, support)
        return support


def pick_in_parts(
    graph: EdgeList,
    confidence: NDArray[np.float64],
    size: int,
    *,
    each: Each,
    partitions: int,
    budget: int,
    seed: int,
    gain: Gain,
    groups: NDArray[np.int64] | None,
    initial: NDArray[np.int64] | None,
    progress: Progress,
) -> tuple[Picks, dict[str, Any], str]:
    """Pick by `partition_greedy`; returns the picks, what there is to say of the way, and a note.

    Where the whole graph would fit into `budget` bytes after all, the exact picks are made too, to compare with.
    """
    n = graph.n
    degrees = graph.degrees()
    needed = int(degrees.sum()) // 2 * BYTES_PER_PAIR
    room = n if needed <= budget else int(n * budget / needed)
    if room < size:
        raise InputError(
            f"the rows of {size:,} picks have about {format_bytes(needed * size / n)} of edges, more than the "
            f"{format_bytes(budget)} the graph may take; use a higher tau or more memory"
        )
    greedy: dict[str, Any] = {"gain": gain, "groups": groups, "initial": initial, "progress": progress}
    picks, candidates = partition_greedy(
        graph, confidence, size, each=each, partitions=partitions, room=room, seed=seed, **greedy
    )
    facts = {
        "path": "partitions",
        "mean_degree": float(degrees.mean()),
        "isolated": float((degrees == 0).mean()),
        "edges": int(degrees.sum()),
        "partitions": partitions,
        "candidates": candidates,
        "approximate": True,
    }
    note = f"Approximate: picked in {partitions} parts, then among their {candidates:,} candidates"
    if needed <= budget:
        whole = Graph.from_upper(n, list(graph.parts()))
        exact = lazy_greedy(whole, confidence, size, **greedy).objective
        facts |= {"objective_exact": exact, "objective_share": picks.objective / exact if exact else 1.0}
        note += f"; the objective is {facts['objective_share']:.2%} of what exact picks reach"
    return picks, facts, f"{note}."


def partition_greedy(
    graph: EdgeList,
    confidence: NDArray[np.float64],
    size: int,
    *,
    each: Each,
    partitions: int,
    room: int,
    gain: Gain,
    groups: NDArray[np.int64] | None,
    initial: NDArray[np.int64] | None,
    seed: int,
    progress: Progress,
) -> tuple[Picks, int]:
    """Pick as `lazy_greedy` does, nearly; returns the picks and how many candidates they were chosen from.

    Parameters
    ----------
    graph
        All edges.
    each
        Runs the first round, anywhere.
    partitions
        Number of parts of the first round.
    room
        For how many candidates the second round has memory, at least `size`.
    seed
        Deals the examples to the parts.

    Other parameters are those of `lazy_greedy`.
    """
    n = len(confidence)
    part_of = np.random.default_rng(seed).permutation(n) % partitions
    everyone = np.ones(n, dtype=np.bool_)
    pairs = int(graph.degrees().sum()) // 2
    classic = partitions * min(size, -(-n // partitions)) <= room

    def calls() -> Iterator[tuple[Any, ...]]:
        for part in range(partitions):
            members = part_of == part
            wanted = min(size if classic else room // partitions, int(members.sum()))
            yield graph.rows(members, everyone if classic else members), members, wanted, gain

    candidates = np.zeros(n, dtype=np.bool_)
    with progress.task("picking in parts", total=partitions) as advance:
        memory = BYTES_PER_EXAMPLE * n + BYTES_PER_PAIR * pairs / partitions
        for proposed in each(pick_part, calls(), (confidence, groups), memory=memory):
            candidates[proposed] = True
            advance(1)
    if initial is not None:
        candidates[initial] = True
    masked = np.where(candidates, confidence, 0.0)
    picks = lazy_greedy(
        graph.rows(candidates, everyone), masked, size, gain=gain, groups=groups, initial=initial, progress=progress
    )
    return Picks(picks.indices, picks.gains, graph.support(picks.indices, confidence)), int(candidates.sum())


def pick_part(
    graph: Graph,
    members: NDArray[np.bool_],
    size: int,
    gain: Gain,
    shared: tuple[NDArray[np.float64], NDArray[np.int64] | None],
) -> NDArray[np.int64]:
    """Pick up to `size` of the members by what they are worth to the examples in their rows.

    Others count as examples without confidence: they are covered, and come last if at all; then they are left out.
    """
    confidence, groups = shared
    masked = np.where(members, confidence, 0.0)
    chosen = lazy_greedy(graph, masked, size, gain=gain, groups=groups).indices
    mine: NDArray[np.int64] = chosen[members[chosen]]
    return mine


@compiled
def _count(
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    some: NDArray[np.bool_],
    near: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> None:
    for e in range(i.size):
        if some[i[e]] and near[j[e]]:
            counts[i[e]] += 1
        if some[j[e]] and near[i[e]]:
            counts[j[e]] += 1


@compiled
def _place(
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    weight: NDArray[np.float32],
    some: NDArray[np.bool_],
    near: NDArray[np.bool_],
    position: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
) -> None:
    for e in range(i.size):
        a, b = i[e], j[e]
        if some[a] and near[b]:
            indices[position[a]] = b
            weights[position[a]] = weight[e]
            position[a] += 1
        if some[b] and near[a]:
            indices[position[b]] = a
            weights[position[b]] = weight[e]
            position[b] += 1


@compiled
def _add_support(
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    weight: NDArray[np.float32],
    own: NDArray[np.float64],
    support: NDArray[np.float64],
) -> None:
    for e in range(i.size):
        support[j[e]] += np.float64(weight[e]) * own[i[e]]
        support[i[e]] += np.float64(weight[e]) * own[j[e]]
