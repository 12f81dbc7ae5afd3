"""Which way through the selection fits the memory."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.greedy.lazy import Gain, Picks, lazy_greedy
from prune4rel.greedy.streaming import streaming_greedy
from prune4rel.machine import Clock, format_bytes
from prune4rel.neighbours.backend import TooManyEdges
from prune4rel.neighbours.build import Neighbourhood, neighbourhood
from prune4rel.neighbours.graph import BYTES_PER_PAIR, Graph
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


@dataclass(frozen=True)
class Plan:
    """One selection: over the whole graph where it fits into `budget` bytes, else without it.

    The paper's gain can go on without the graph and gives the same picks; the coverage gain cannot.
    """

    near: Neighbourhood
    confidence: NDArray[np.float64]
    size: int
    gain: Gain
    groups: NDArray[np.int64] | None
    initial: NDArray[np.int64] | None
    budget: int
    max_degree: int | None

    def run(self, progress: Progress, clock: Clock) -> tuple[Picks, dict[str, Any]]:
        """Pick; returns the picks and what there is to say of the way."""
        found = self._graph(progress)
        if found is None:
            return self._stream(progress, clock)
        graph, dropped = found
        clock.lap("graph")
        picks = lazy_greedy(
            graph,
            self.confidence,
            self.size,
            gain=self.gain,
            groups=self.groups,
            initial=self.initial,
            progress=progress,
        )
        clock.lap("greedy")
        degrees = graph.degrees
        return picks, {
            "path": "graph",
            "mean_degree": float(degrees.mean()),
            "isolated": float((degrees == 0).mean()),
            "edges": int(graph.indices.size),
            "edges_left_out": dropped,
            "approximate": dropped > 0,
        }

    def _graph(self, progress: Progress) -> tuple[Graph, int] | None:
        """Build the graph and count the edges left out, or None where it does not fit."""
        if self.max_degree is not None:
            n = len(self.confidence)
            needed = n * min(self.max_degree, n - 1) * BYTES_PER_PAIR
            if needed > self.budget:
                raise InputError(
                    f"max_degree={self.max_degree} may keep edges of up to {format_bytes(needed)}, more than the "
                    f"{format_bytes(self.budget)} the graph may take; use a smaller one, or more memory"
                )
            return self.near.strongest(self.max_degree, progress=progress)
        if self.near.estimate.graph_bytes > self.budget:
            return None
        try:
            return self.near.graph(max_bytes=self.budget, progress=progress), 0
        except TooManyEdges:
            return None

    def _stream(self, progress: Progress, clock: Clock) -> tuple[Picks, dict[str, Any]]:
        if self.gain == "coverage":
            estimate = self.near.estimate
            raise InputError(
                f"the neighbour graph would take about {format_bytes(estimate.graph_bytes)} "
                f"({estimate.edges:,} edges, {estimate.mean_degree:.0f} an example at tau = {estimate.tau:g}), "
                f"more than the {format_bytes(self.budget)} it may take. Use tau='auto', a higher tau, "
                "max_degree=K (approximate), more memory, or gain='paper', which can do without the graph"
            )
        progress.say("The graph does not fit the memory; looking up neighbours of the best candidates only.")
        picks = streaming_greedy(
            self.near.backend,
            self.near.threshold,
            self.confidence,
            self.size,
            groups=self.groups,
            initial=self.initial,
            max_edges=max(2**16, self.budget // 16),
            progress=progress,
        )
        clock.lap("greedy")
        return picks, {"path": "streaming", "degrees_estimated": True, "approximate": False}
