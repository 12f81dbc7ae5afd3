"""Selecting in parts: greedy on every part, then greedy among their picks (GreeDi, Mirzasoleiman et al. 2013).

For graphs whose edges do not fit into the driver's memory. The examples are dealt at random into k parts, each part
proposes examples of its own, and a second greedy picks from what was proposed. Every one of these graphs has only the
rows of its candidates.

Where the driver has room for the rows of k times the picks wanted, this is GreeDi itself: a part proposes as many as
are wanted in all, by what they are worth to all examples. Where it has less, parts propose as many as there is room
for, by what they are worth to the part's own examples: judged by all examples, few proposals of each part would all
speak for the same crowds.
"""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled
from prune4rel.engines.ray.backend import RayBackend
from prune4rel.engines.ray.cluster import Cluster, Task
from prune4rel.engines.ray.kept import TileStore
from prune4rel.engines.ray.layout import Layout
from prune4rel.errors import InputError
from prune4rel.greedy import Picks, lazy_greedy
from prune4rel.greedy.lazy import Gain
from prune4rel.greedy.plan import Plan
from prune4rel.machine import Clock, format_bytes
from prune4rel.methods.registry import Request
from prune4rel.neighbours.graph import BYTES_PER_PAIR, Edges, Graph
from prune4rel.progress import Progress

BYTES_PER_EXAMPLE = 96
"""What a greedy loop keeps of every example, whether it is a candidate or not."""


@dataclass(frozen=True)
class TiledGraph:
    """All edges, packed in tiles; rows of it are unpacked when they are asked for."""

    kept: TileStore
    layout: Layout

    def parts(self) -> Iterator[Edges]:
        """Edges i < j, tile by tile, in the order `Graph.from_upper` wants."""
        for tile in sorted(self.layout.order(2)):
            edges = self.kept.get(tile)
            if edges is None:
                raise AssertionError(f"tile {tile} was kept and is gone")
            yield edges

    def degrees(self) -> NDArray[np.int64]:
        """(n,) number of neighbours of every example."""
        counts = np.zeros(self.layout.n, dtype=np.int64)
        everyone = np.ones(self.layout.n, dtype=np.bool_)
        for edges in self.parts():
            _count(edges.i, edges.j, everyone, everyone, counts)
        return counts

    def rows(self, some: NDArray[np.bool_], near: NDArray[np.bool_]) -> Graph:
        """Build the graph that has the rows of `some` examples, and in them the neighbours that are `near`."""
        n = self.layout.n
        counts = np.zeros(n, dtype=np.int64)
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
        lent = np.zeros(self.layout.n)
        lent[picks] = confidence[picks]
        support = lent.copy()
        for edges in self.parts():
            _lend(edges.i, edges.j, edges.weight, lent, support)
        return support


def pick_in_parts(
    cluster: Cluster, plan: Plan, request: Request, clock: Clock, partitions: int
) -> tuple[Picks, dict[str, Any]]:
    """Pick by `partition_greedy` what `plan` asks for; tiles stay on disk.

    Where the whole graph would fit the plan's memory after all, the exact picks are made too, to compare with.
    """
    backend = cast("RayBackend", plan.near.backend)
    layout = backend.source.layout
    with tempfile.TemporaryDirectory() as spare:
        with request.progress.task("neighbours", total=layout.n * (layout.n + 1) / 2) as advance:
            kept = backend.tiles(
                plan.near.threshold, max_edges=math.inf, advance=advance, work_dir=backend.work_dir or spare
            )
        clock.lap("graph")
        graph = TiledGraph(kept, layout)
        greedy: dict[str, Any] = {
            "gain": plan.gain,
            "groups": plan.groups,
            "initial": plan.initial,
            "progress": request.progress,
        }
        degrees = graph.degrees()
        needed = int(degrees.sum()) // 2 * BYTES_PER_PAIR
        room = layout.n if needed <= plan.budget else int(layout.n * plan.budget / needed)
        if room < plan.size:
            raise InputError(
                f"the rows of {plan.size:,} picks have about {format_bytes(needed * plan.size / layout.n)} of edges, "
                f"more than the {format_bytes(plan.budget)} the graph may take; use a higher tau or more memory"
            )
        picks, candidates = partition_greedy(
            cluster, graph, plan.confidence, plan.size, partitions=partitions, room=room, seed=request.seed, **greedy
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
        if needed <= plan.budget:
            whole = Graph.from_upper(layout.n, list(graph.parts()))
            exact = lazy_greedy(whole, plan.confidence, plan.size, **greedy).objective
            facts |= {"objective_exact": exact, "objective_share": picks.objective / exact if exact else 1.0}
            note += f"; the objective is {facts['objective_share']:.2%} of what exact picks reach"
        clock.lap("greedy")
    return picks, facts | {"note": f"{note}."}


def partition_greedy(
    cluster: Cluster,
    graph: TiledGraph,
    confidence: NDArray[np.float64],
    size: int,
    *,
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
    shared = cluster.put((confidence, groups))
    everyone = np.ones(n, dtype=np.bool_)
    pairs = int(graph.degrees().sum()) // 2
    classic = partitions * min(size, -(-n // partitions)) <= room

    def jobs() -> Iterator[tuple[int, Task]]:
        for part in range(partitions):
            members = part_of == part
            wanted = min(size if classic else room // partitions, int(members.sum()))
            near = cluster.put(graph.rows(members, everyone if classic else members))
            yield part, Task(pick_part, (near, members, shared, wanted, gain))

    candidates = np.zeros(n, dtype=np.bool_)
    with progress.task("picking in parts", total=partitions) as advance:
        for _, proposed in cluster.each(jobs(), memory=BYTES_PER_EXAMPLE * n + BYTES_PER_PAIR * pairs / partitions):
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
    shared: tuple[NDArray[np.float64], NDArray[np.int64] | None],
    size: int,
    gain: Gain,
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
def _lend(
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    weight: NDArray[np.float32],
    lent: NDArray[np.float64],
    support: NDArray[np.float64],
) -> None:
    for e in range(i.size):
        support[j[e]] += np.float64(weight[e]) * lent[i[e]]
        support[i[e]] += np.float64(weight[e]) * lent[j[e]]
