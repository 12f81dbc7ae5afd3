"""Which way through the selection fits the memory."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.greedy.lazy import Gain, Picks, lazy_greedy
from prune4rel.greedy.streaming import streaming_greedy
from prune4rel.machine import Clock, format_bytes
from prune4rel.neighbours.build import Neighbourhood, neighbourhood
from prune4rel.neighbours.graph import BYTES_PER_PAIR, Graph, TooManyEdges
from prune4rel.neighbours.similarity import Points
from prune4rel.progress import Progress, patience


def compile_loops(progress: Progress) -> None:
    """Run everything once on next to nothing, so that compiling it does not spoil estimates of time.

    The first run after an installation compiles; later ones find the result on disk.
    """
    with patience(progress, "Compiling the inner loops; this happens once after an installation."):
        _run_loops()


@cache
def _run_loops() -> None:
    corner = Points(np.eye(2, dtype=np.float32), np.ones(2))
    near = neighbourhood(corner, tau=0.0, similarity="shifted-cosine")
    lazy_greedy(near.graph(max_bytes=np.inf, progress=Progress()), np.ones(2), 2, gain="coverage")


def pick_in_memory(
    near: Neighbourhood,
    confidence: NDArray[np.float64],
    size: int,
    *,
    gain: Gain,
    groups: NDArray[np.int64] | None,
    initial: NDArray[np.int64] | None,
    budget: int,
    max_degree: int | None,
    progress: Progress,
    clock: Clock,
) -> tuple[Picks, dict[str, Any]]:
    """Pick over the whole graph where it fits into `budget` bytes, else without it.

    The paper's gain can go on without the graph and gives the same picks; the coverage gain cannot. Returns the
    picks, and what there is to say of the way.
    """
    found = _build_graph(near, len(confidence), budget, max_degree, progress)
    if found is None:
        if gain == "coverage":
            raise InputError(f"{_too_large(near, budget)}, or gain='paper', which can do without the graph")
        progress.say("The graph does not fit the memory; looking up neighbours of the best candidates only.")
        picks = streaming_greedy(
            near.backend,
            near.threshold,
            confidence,
            size,
            groups=groups,
            initial=initial,
            max_edges=max(2**16, budget // 16),
            progress=progress,
        )
        clock.lap("greedy")
        return picks, {"path": "streaming", "degrees_estimated": True, "approximate": False}
    graph, dropped = found
    clock.lap("graph")
    picks = lazy_greedy(graph, confidence, size, gain=gain, groups=groups, initial=initial, progress=progress)
    clock.lap("greedy")
    degrees = graph.degrees
    return picks, {
        "path": "graph",
        "mean_degree": float(degrees.mean()),
        "isolated": float((degrees == 0).mean()),
        "edges": int(graph.indices.size),
        "edges_left_out": dropped,
        "approximate": dropped > 0 or near.backend.approximate,
    }


def _build_graph(
    near: Neighbourhood, n: int, budget: int, max_degree: int | None, progress: Progress
) -> tuple[Graph, int] | None:
    """Build the graph and count the edges left out, or None where it does not fit."""
    if max_degree is not None:
        needed = n * min(max_degree, n - 1) * BYTES_PER_PAIR
        if needed > budget:
            raise InputError(
                f"max_degree={max_degree} may keep edges of up to {format_bytes(needed)}, more than the "
                f"{format_bytes(budget)} the graph may take; use a smaller one, or more memory"
            )
        return near.strongest(max_degree, progress=progress)
    if near.estimate.graph_bytes > budget:
        return None
    try:
        return near.graph(max_bytes=budget, progress=progress), 0
    except TooManyEdges:
        return None


def _too_large(near: Neighbourhood, budget: int) -> str:
    estimate = near.estimate
    return (
        f"the neighbour graph would take about {format_bytes(estimate.graph_bytes)} ({estimate.edges:,} edges, "
        f"{estimate.mean_degree:.0f} an example at tau = {estimate.tau:g}), more than the {format_bytes(budget)} it "
        "may take. Use tau='auto', a higher tau, max_degree=K (approximate), more memory"
    )
