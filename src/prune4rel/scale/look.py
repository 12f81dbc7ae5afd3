"""One look at all embeddings on a cluster, then tau, the screen and the estimate, as one machine settles them."""

import hashlib
from pathlib import Path

import numpy as np

from prune4rel.errors import InputError
from prune4rel.neighbours.build import (
    SAMPLE_ROWS,
    SCREEN_ROWS,
    Estimate,
    Neighbourhood,
    find_tau,
    sample_degrees,
    spread_rows,
)
from prune4rel.neighbours.graph import BYTES_PER_PAIR
from prune4rel.neighbours.screen import SCREENINGS, Screening, choose_screen
from prune4rel.neighbours.similarity import Similarity, Threshold
from prune4rel.progress import Progress
from prune4rel.scale.backend import RayBackend, Source
from prune4rel.scale.cluster import Cluster, Job
from prune4rel.scale.layout import Layout
from prune4rel.scale.shards import Shards
from prune4rel.scale.tiles import survey_block


def survey(
    cluster: Cluster, shards: Shards, layout: Layout, progress: Progress, *, allow_zero: bool, more: int = 0
) -> Source:
    """Read all embeddings once, block by block: check them, measure them, and bring a sample home.

    The sample is what settles tau and the screen, and `more` rows where there is use for them.
    """
    n = len(shards)
    shared = cluster.put(shards)
    sampled = np.unique(np.concatenate([spread_rows(n, rows) for rows in (SCREEN_ROWS, SAMPLE_ROWS, more)]))
    home = sampled // layout.block
    jobs = (
        (number, Job(survey_block, (shared, *layout.span(number), sampled[home == number])))
        for number in range(layout.count)
    )
    squares = np.empty(n)
    prints: dict[int, str] = {}
    sample = None
    with progress.task("reading", total=n) as advance:
        for number, found in cluster.each(jobs):
            start, stop = layout.span(number)
            squares[start:stop] = found.squares
            prints[number] = found.sha256
            if sample is None:
                sample = np.empty((len(sampled), shards.shape[1]), dtype=found.sample.dtype)
            sample[home == number] = found.sample
            advance(stop - start)
    if sample is None:
        raise AssertionError("there is at least one block")
    zero = np.flatnonzero(squares == 0)
    if zero.size and not allow_zero:
        raise InputError(
            f"embeddings: {zero.size} rows are all zero, the first is row {zero[0]}; their similarity is undefined. "
            "Remove them, or pass --allow-zero (allow_zero=True) to treat them as isolated",
            "embeddings",
        )
    digest = hashlib.sha256("".join(prints[number] for number in range(layout.count)).encode()).hexdigest()
    return Source(cluster, shards, shared, layout, squares, sampled, sample, digest)


def settle(
    source: Source,
    *,
    device: str,
    tau: float | str,
    similarity: Similarity,
    strict: bool,
    target_degree: float,
    screening: Screening,
    work_dir: str | Path | None,
) -> Neighbourhood:
    """Settle tau and the screen on the sample, as `neighbours.neighbourhood` does, and estimate the graph."""
    if screening not in SCREENINGS:
        raise InputError(f"screening must be one of {', '.join(SCREENINGS)}, not {screening!r}")
    backend = RayBackend(source, device, work_dir=work_dir)
    n = len(source.shards)
    sample = backend.points.unit(spread_rows(n, SCREEN_ROWS))
    rows = spread_rows(n, SAMPLE_ROWS)
    level = find_tau(backend, rows, sample, similarity, target_degree) if isinstance(tau, str) else tau
    threshold = Threshold(level, similarity, strict)
    degrees, seconds_a_pair = sample_degrees(backend, rows, threshold)
    screen = choose_screen(sample, threshold.cosine, screening, check_cost=backend.check_cost, half=backend.half)
    mean_degree = float(degrees.mean())
    estimate = Estimate(
        n=n,
        dim=source.shards.shape[1],
        tau=threshold.tau,
        mean_degree=mean_degree,
        isolated=float((degrees == 0).mean()),
        graph_bytes=round(n * mean_degree / 2 * BYTES_PER_PAIR) + 8 * n,
        seconds=seconds_a_pair * n * n / 2 * max(screen.width / source.shards.shape[1], 0.2),
        screen_width=screen.width,
        sampled_rows=len(degrees),
    )
    return Neighbourhood(threshold, estimate, backend if screen.basis is None else backend.with_screen(screen))
