"""One look at all embeddings on a cluster, then tau, the screen and the estimate, as one machine settles them."""

import hashlib
from pathlib import Path
from typing import Literal

import numpy as np

from prune4rel.neighbours import build
from prune4rel.neighbours.build import SAMPLE_ROWS, SCREEN_ROWS, Neighbourhood, check_zero_rows, spread_rows
from prune4rel.neighbours.screen import Screening
from prune4rel.neighbours.similarity import Similarity
from prune4rel.progress import Progress
from prune4rel.scale.backend import RayBackend, Source
from prune4rel.scale.cluster import Cluster, Job
from prune4rel.scale.layout import Layout
from prune4rel.scale.shards import Shards
from prune4rel.scale.store import blocks_in_store
from prune4rel.scale.tiles import survey_block


def survey(
    cluster: Cluster, shards: Shards, layout: Layout, progress: Progress, *, allow_zero: bool, more: int = 0
) -> Source:
    """Read all embeddings once, block by block: check them, measure them, and bring a sample home.

    The sample is what settles tau and the screen, and `more` rows where there is use for them.
    """
    n = len(shards)
    blocks = blocks_in_store(cluster, shards, layout)
    sampled = np.unique(np.concatenate([spread_rows(n, rows) for rows in (SCREEN_ROWS, SAMPLE_ROWS, more)]))
    home = sampled // layout.block
    jobs = ((number, Job(survey_block, (blocks[number], sampled[home == number]))) for number in range(layout.count))
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
    check_zero_rows(squares, allow=allow_zero)
    digest = hashlib.sha256("".join(prints[number] for number in range(layout.count)).encode()).hexdigest()
    return Source(cluster, shards, layout, blocks, squares, sampled, sample, digest)


def settle(
    source: Source,
    *,
    device: str,
    tau: float | Literal["auto"],
    similarity: Similarity,
    strict: bool,
    target_degree: float,
    screening: Screening,
    work_dir: str | Path | None,
) -> Neighbourhood:
    """Settle tau and the screen on the sample, as one machine does on all rows, and estimate the graph."""
    return build.settle(
        lambda: RayBackend(source, device, work_dir=work_dir),
        tau=tau,
        similarity=similarity,
        strict=strict,
        target_degree=target_degree,
        screening=screening,
    )
