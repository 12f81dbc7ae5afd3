"""From rows and a threshold to a graph: estimate first, then build what fits."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.errors import InputError
from prune4rel.machine import format_bytes, format_seconds
from prune4rel.neighbours.cells import (
    GUESSED_SHARE,
    SHARE,
    CellBackend,
    CpuCells,
    Known,
    cell_count,
    choose_cells,
    nearest_centres,
)
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.graph import BYTES_PER_PAIR, Backend, Edges, Graph, TooManyEdges, strongest
from prune4rel.neighbours.products import fastest
from prune4rel.neighbours.screen import NO_ROUNDING, SCREENINGS, Screening, choose_screen
from prune4rel.neighbours.similarity import Points, Similarity, Threshold, from_cosine
from prune4rel.progress import Progress

SAMPLE_ROWS = 512
SCREEN_ROWS = 2048
SCREEN_SHARE = 16
"""A screen is chosen on one row in so many, so that choosing takes a small part of the work it saves."""

SAMPLE_EDGES = 2**24
TARGET_DEGREE = 20.0
LONG = 600.0
"""Seconds from which on the estimate offers approximate neighbours."""


@dataclass(frozen=True)
class Estimate:
    """What building the graph will take, judged from a sample of rows.

    `mean_degree` and `isolated` (a share) do not count an example as its own neighbour. `found` is the share of the
    neighbours that are looked for where they are likely, 1 where they are looked for everywhere.
    """

    n: int
    dim: int
    tau: float
    mean_degree: float
    isolated: float
    graph_bytes: int
    seconds: float
    screen_width: int
    sampled_rows: int
    approximate_seconds: float = math.inf
    found: float = 1.0

    @property
    def edges(self) -> int:
        """Expected number of directed edges."""
        return round(self.n * self.mean_degree)

    def describe(self) -> str:
        """Say it in one line."""
        return (
            f"{self.n:,} examples x {self.dim}: at tau = {self.tau:g} about {self.mean_degree:.1f} neighbours each "
            f"({self.isolated:.0%} have none), {format_bytes(self.graph_bytes)} for the graph, "
            f"about {format_seconds(self.seconds)} to build it{self._offer()}"
        )

    def _offer(self) -> str:
        """Say that it is a shortcut, or name it where the exact way is long; nobody is put on it unasked."""
        if self.found < 1:
            return f" (approximate: about {self.found:.1%} of the neighbours)"
        if self.seconds < LONG or self.approximate_seconds > self.seconds / 2:
            return ""
        roughly = format_seconds(self.approximate_seconds)
        return f"; --ann (neighbours='approximate') would find about {SHARE:.0%} of the neighbours in roughly {roughly}"


@dataclass(frozen=True)
class Neighbourhood:
    """A threshold applied to rows: knows what the graph will cost, and can build it or parts of it."""

    threshold: Threshold
    estimate: Estimate
    backend: Backend

    def graph(self, *, max_bytes: float, progress: Progress) -> Graph:
        """Build the whole graph; `TooManyEdges` if it outgrows `max_bytes` after all."""
        n = len(self.backend.points)
        with progress.task("neighbours", total=n * (n + 1) / 2) as advance:
            parts = self.backend.upper(self.threshold, max_edges=max_bytes / BYTES_PER_PAIR, advance=advance)
        return Graph.from_upper(n, parts)

    def strongest(self, degree: int, *, progress: Progress, block: int | None = None) -> tuple[Graph, int]:
        """Build the graph of every example's `degree` heaviest edges; also tells how many edges were left out.

        `block` rows are looked up at once; any number gives the same graph.
        """
        n = len(self.backend.points)
        kept: list[Edges] = []
        found = 0
        block = block or int(np.clip(SAMPLE_EDGES / (1 + self.estimate.mean_degree), 1, SAMPLE_ROWS))
        with progress.task("neighbours", total=float(n) * n) as advance:
            for start, stop in spans(n, block):
                rows = np.arange(start, stop)
                edges = self.backend.of(rows, self.threshold, max_edges=np.inf, advance=advance)
                found += edges.i.size
                best = strongest(edges, degree)
                kept.append(Edges(best.i + np.int32(start), best.j, best.weight))
        graph = Graph.from_strongest(n, kept)
        return graph, found - graph.indices.size


def neighbourhood(
    points: Points,
    *,
    tau: float | Literal["auto"],
    similarity: Similarity,
    strict: bool = False,
    target_degree: float = TARGET_DEGREE,
    device: str = "cpu",
    screening: Screening = "auto",
    share: float | None = None,
    seed: int = 0,
) -> Neighbourhood:
    """Look at a sample of rows, settle tau and the screen, and estimate the graph.

    With a `share` the graph will be approximate: about that share of the neighbours is looked for, in cells.
    """
    return neighbourhood_of(
        lambda: _make_backend(points, device, approximate=share is not None),
        tau=tau,
        similarity=similarity,
        strict=strict,
        target_degree=target_degree,
        screening=screening,
        share=share,
        seed=seed,
    )


def neighbourhood_of(
    make_backend: Callable[[], Backend],
    *,
    tau: float | Literal["auto"],
    similarity: Similarity,
    strict: bool,
    target_degree: float,
    screening: Screening,
    share: float | None = None,
    seed: int = 0,
) -> Neighbourhood:
    """Do as `neighbourhood`, with any backend; it is made when the options have been checked."""
    if screening not in SCREENINGS:
        raise InputError(f"screening must be one of {', '.join(SCREENINGS)}, not {screening!r}")
    if not (isinstance(target_degree, int | float | np.number) and target_degree > 0):
        raise InputError(f"target_degree must be above 0, not {target_degree!r}")
    backend = make_backend()
    n, dim = len(backend.points), backend.points.dim
    seen = spread_rows(n, SCREEN_ROWS)
    fewer = min(SCREEN_SHARE * len(seen) // n, len(seen) // SAMPLE_ROWS)
    sample = backend.points.unit(seen[:: max(1, fewer)])
    rows = spread_rows(n, SAMPLE_ROWS)
    if tau == "auto":
        tau, loosely = find_tau(backend, rows, sample, similarity, target_degree)
        threshold = Threshold(tau, similarity, strict)
        looked = loosely.beyond(threshold)
    else:
        threshold = Threshold(tau, similarity, strict)
        looked = sample_near(backend, rows, threshold)
    degrees = np.bincount(looked.edges.i, minlength=len(looked.rows))
    check_cost = backend.check_cost / (1.0 if share is None else GUESSED_SHARE)
    if share is not None and backend.rounding != NO_ROUNDING:
        screening = "none"  # so few products are left that a screen would not pay
    screen = choose_screen(sample, threshold.cosine, screening, check_cost=check_cost, rounding=backend.rounding)
    mean_degree = float(degrees.mean())
    in_cells = cell_count(n) / n * 2 + GUESSED_SHARE
    rate = looked.seconds_a_pair * n * n / 2
    estimate = Estimate(
        n=n,
        dim=dim,
        tau=threshold.tau,
        mean_degree=mean_degree,
        isolated=float((degrees == 0).mean()),
        graph_bytes=round(n * mean_degree / 2 * BYTES_PER_PAIR) + 8 * n,
        seconds=rate * max(screen.width / dim, 0.2),
        screen_width=screen.width,
        sampled_rows=len(degrees),
        approximate_seconds=rate * in_cells,
    )
    if screen.basis is not None:
        backend = backend.with_screen(screen)
    if share is not None:
        backend = _in_cells(backend, Known(looked.rows, looked.edges), share, seed)
        in_cells = len(backend.cells.centres) / n * 2 + backend.cells.looked_at
        estimate = replace(estimate, seconds=rate * in_cells, found=backend.cells.found)
    return Neighbourhood(threshold, estimate, backend)


def check_zero_rows(squares: NDArray[np.float64], *, allow: bool) -> None:
    """Refuse embeddings without a direction, by their squared lengths (n,), unless they may count as isolated."""
    zero = np.flatnonzero(squares == 0)
    if zero.size and not allow:
        words = "row is" if zero.size == 1 else "rows are"
        raise InputError(
            f"embeddings: {zero.size} {words} all zero, the first is row {zero[0]}; their similarity is undefined. "
            "(Images that a warm-up could not read come out so.) Remove them, or pass "
            "--allow-zero (allow_zero=True) to treat them as isolated",
            "embeddings",
        )


def _make_backend(points: Points, device: str, *, approximate: bool) -> Backend:
    if device == "cpu":  # PyTorch prepares products of every new shape, and no two cells are alike
        return CpuBackend(points) if approximate else CpuBackend(points, products=fastest(points))
    from prune4rel.neighbours.cuda import TorchBackend  # noqa: PLC0415 - imports torch

    return TorchBackend.from_points(points, device)


def _in_cells(backend: Backend, known: Known, share: float, seed: int) -> CellBackend:
    if isinstance(backend, CpuBackend):
        return CpuCells(backend, choose_cells(backend.points, known, share, nearest_centres, seed))
    from prune4rel.neighbours.cells_cuda import in_cells  # noqa: PLC0415 - imports torch
    from prune4rel.neighbours.cuda import TorchBackend  # noqa: PLC0415 - imports torch

    if not isinstance(backend, TorchBackend):
        raise TypeError(f"{type(backend).__name__} has no cells")
    return in_cells(backend, known, share, seed)


def spread_rows(n: int, count: int) -> NDArray[np.int64]:
    """Draw at most `count` rows at random, the same ones every time, in ascending order."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(n).choice(n, size=count, replace=False))


class Sampled(NamedTuple):
    """The neighbours of some rows, as `Backend.of` finds them; which rows, and how long a pair of rows took."""

    edges: Edges
    rows: NDArray[np.int64]
    seconds_a_pair: float

    def beyond(self, threshold: Threshold) -> "Sampled":
        """Keep those that are neighbours by a higher threshold than the one they were found by, a shifted cosine.

        Weights are in single precision: a pair within 2^-24 of tau may be counted on the wrong side.
        """
        weight = self.edges.weight.astype(np.float64)
        similarity = weight if threshold.shifted else 2 * weight - 1
        inside = similarity > threshold.tau if threshold.strict else similarity >= threshold.tau
        return self._replace(edges=self.edges.at(inside))


def sample_near(backend: Backend, rows: NDArray[np.int64], threshold: Threshold) -> Sampled:
    """Find the neighbours of some rows; of fewer of them where they have very many."""
    while True:
        begin = time.perf_counter()
        try:
            edges = backend.of(rows, threshold, max_edges=SAMPLE_EDGES if len(rows) > 1 else np.inf)
        except TooManyEdges:
            rows = rows[:: max(2, len(rows) // 8)]
            continue
        spent = time.perf_counter() - begin
        return Sampled(edges, rows, spent / (len(rows) * len(backend.points)))


def find_tau(
    backend: Backend,
    rows: NDArray[np.int64],
    sample: NDArray[np.float32],
    similarity: Similarity,
    target_degree: float,
) -> tuple[float, Sampled]:
    """Find the threshold at which some rows have `target_degree` neighbours on average; also these, and more of them.

    Canonical similarities decide, so every backend finds the same tau. It is rounded down to six digits, to be
    quoted and used again.
    """
    n = len(backend.points)
    if n == 1:
        return 1.0, sample_near(backend, rows, Threshold(1.0))
    target = min(target_degree, max(1.0, (n - 1) / 10))
    products = sample @ sample.T
    cosines = products[np.triu_indices(len(sample), 1)]
    share = 2 * target / (n - 1)
    while True:
        place = max(0, round((1 - share) * (cosines.size - 1)))
        guess = np.partition(cosines, place)[place] if share < 1 else -1.0
        loose = Threshold(float(np.clip(from_cosine(guess, "shifted-cosine") - 1e-6, 0, 1)))
        looked = sample_near(backend, rows, loose)
        found = looked.edges.weight
        wanted = max(1, round(target * len(looked.rows)))
        if found.size >= wanted or guess <= -1:
            break
        share *= 4
    if found.size == 0:
        return 1.0, looked
    shifted = float(np.partition(found, -min(wanted, found.size))[-min(wanted, found.size)])
    value = shifted if similarity == "shifted-cosine" else 2 * shifted - 1
    return float(np.floor(np.clip(value, 0, 1) * 1e6) / 1e6), looked
