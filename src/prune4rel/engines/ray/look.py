"""One look at all embeddings on a cluster, then tau, the screen and the estimate, as one machine settles them."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.engines.ray.backend import RayBackend, Source
from prune4rel.engines.ray.cluster import Cluster, Task
from prune4rel.engines.ray.layout import Layout
from prune4rel.engines.ray.store import StoreCache, blocks_in_store, in_memory
from prune4rel.engines.ray.tiles import Block, Floats, Survey, load_block, pick_rows, survey_block
from prune4rel.neighbours import build
from prune4rel.neighbours.build import SAMPLE_ROWS, SCREEN_ROWS, Neighbourhood, check_zero_rows, spread_rows
from prune4rel.neighbours.screen import Screening
from prune4rel.neighbours.similarity import Similarity
from prune4rel.progress import Advance, Progress
from prune4rel.provenance import Fingerprints, fingerprint_of_parts
from prune4rel.shards import Shards


def survey(
    cluster: Cluster, shards: Shards, layout: Layout, progress: Progress, *, allow_zero: bool, more: int = 0
) -> Source:
    """Look at all embeddings once: check them, measure them, and bring a sample home.

    The sample is what settles tau and the screen, and `more` rows where there is use for them.
    """
    n = len(shards)
    sampled = np.unique(np.concatenate([spread_rows(n, rows) for rows in (SCREEN_ROWS, SAMPLE_ROWS, more)]))
    whole = load_block(shards, 0, n) if in_memory(shards) else None
    blocks = blocks_in_store(cluster, shards, layout, whole)
    with progress.task("reading", total=n) as advance:
        seen = _by_tasks(cluster, blocks, layout, sampled, advance) if whole is None else _here(whole, sampled, advance)
    check_zero_rows(seen.squares, allow=allow_zero)
    return Source(cluster, shards, layout, blocks, whole, seen.squares, sampled, seen.sample, seen.sha256)


class _Seen(NamedTuple):
    squares: NDArray[np.float64]
    sample: Floats
    sha256: Callable[[], str]


def _here(whole: Block, sampled: NDArray[np.int64], advance: Advance) -> _Seen:
    prints = Fingerprints({"rows": whole.rows})
    advance(len(whole.rows))
    return _Seen(whole.squares, pick_rows(whole, sampled), lambda: prints.result()["rows"])


def _by_tasks(
    cluster: Cluster, blocks: StoreCache, layout: Layout, sampled: NDArray[np.int64], advance: Advance
) -> _Seen:
    home = sampled // layout.block
    tasks = ((number, Task(survey_block, (blocks[number], sampled[home == number]))) for number in range(layout.count))
    found: dict[int, Survey] = {}
    for number, seen in cluster.each(tasks):
        found[number] = seen
        advance(len(seen.squares))
    squares, samples, prints = zip(*(found[number] for number in range(layout.count)), strict=True)
    digest = fingerprint_of_parts(prints)
    return _Seen(np.concatenate(squares), np.concatenate(samples), lambda: digest)


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
    with source.blocks.filling(source.layout.count):
        return build.settle(
            lambda: RayBackend(source, device, work_dir=work_dir),
            tau=tau,
            similarity=similarity,
            strict=strict,
            target_degree=target_degree,
            screening=screening,
        )
