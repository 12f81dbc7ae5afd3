"""Methods that rank by a score, shard by shard with Ray Data: the driver sees scores, never probabilities."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.engines.ray.cluster import Cluster, Task, run_here
from prune4rel.engines.ray.embedded import embedded_on_ray
from prune4rel.engines.ray.layout import Layout
from prune4rel.engines.ray.sources import Sources
from prune4rel.engines.ray.store import in_memory, readable_by_tasks
from prune4rel.engines.ray.tiles import checked, one_thread
from prune4rel.methods.ccs import aum_of
from prune4rel.methods.prune4rel import confidence_of
from prune4rel.methods.ranking import keep_best
from prune4rel.methods.registry import Method, Outcome, Request, get
from prune4rel.provenance import fingerprint, fingerprint_of_parts
from prune4rel.shards import Shards
from prune4rel.signals import VECTORS, Signals

ROW_BY_ROW = {"small-loss", "margin", "entropy", "least-confidence", "el2n", "grand"}
"""Methods whose score of an example depends on that example alone."""

ON_THE_DRIVER = {"uniform", "forgetting", "top-score", "bottom-score"}
"""Methods that need no more than one number an example."""

EMBEDDED = {"moderate", "ssp"}
"""Methods that look at all embeddings more than once."""

SCORED = ROW_BY_ROW | ON_THE_DRIVER | EMBEDDED | {"ccs"}
PIECE_BYTES = 64 * 2**20


class _Confidence(NamedTuple):
    values: NDArray[np.float64]
    sha256: str


def confidences(cluster: Cluster, sources: Sources, kind: str) -> tuple[NDArray[np.float64], str]:
    """(n,) confidence in every example, and a fingerprint of the probabilities."""
    shards = sources.long["probabilities"]
    layout = layout_of([shards])
    here = in_memory(shards)
    rows = shards if here else cluster.put(shards)
    spans = map(layout.span, range(layout.count))
    jobs = (
        (number, Task(block_confidence, (rows, start, stop, sources.labels[start:stop], kind)))
        for number, (start, stop) in enumerate(spans)
    )
    values = np.empty(len(sources))
    prints: dict[int, str] = {}
    for number, found in run_here(jobs) if here else cluster.each(jobs):
        values[slice(*layout.span(number))] = found.values
        prints[number] = found.sha256
    return values, fingerprint_of_parts(prints[number] for number in range(layout.count))


def block_confidence(shards: Shards, start: int, stop: int, labels: NDArray[np.int64], kind: str) -> _Confidence:
    """Check a block of probabilities and compute its confidences."""
    rows = shards.read(start, stop)
    signals = checked(start, labels=labels, probabilities=rows)
    return _Confidence(confidence_of(signals, kind), fingerprint(rows))


def layout_of(arrays: list[Shards]) -> Layout:
    """Cut the examples so that a block of all arrays together stays small."""
    row = sum(max(1, shards.nbytes // len(shards)) for shards in arrays)
    return Layout(len(arrays[0]), max(1, min(len(arrays[0]), PIECE_BYTES // row)))


def score_on_ray(
    cluster: Cluster, sources: Sources, method: Method, request: Request, options: Mapping[str, Any]
) -> tuple[Outcome, dict[str, str]]:
    """Run a method that ranks by a score; scores are computed where the shards are, and ranked here.

    Returns the method's answer and fingerprints of the arrays that were read.
    """
    small = sources.small
    if method.name in ON_THE_DRIVER or _has_numbers(method, small):
        return method.run(small, request, **options), {}
    if method.name in EMBEDDED:
        return embedded_on_ray(cluster, sources, method, request, options), {}
    used = {name: shards for name, shards in sources.long.items() if name in _words(method)}
    scores, keep, prints = _scores(cluster, sources, used, method.name)
    if method.name == "ccs":
        return method.run(Signals(labels=small.labels, aum=scores), request, **options), prints
    return keep_best(scores, small.labels, request, keep=keep), prints


def _words(method: Method) -> set[str]:
    return {name for need in method.needs for name in need.split("|")}


def _has_numbers(method: Method, small: Signals) -> bool:
    """Whether every need of the method is met by a signal that is one number an example."""
    there = {name for name in VECTORS if getattr(small, name) is not None}
    return all(there & set(need.split("|")) for need in method.needs)


def _scores(
    cluster: Cluster, sources: Sources, used: Mapping[str, Shards], method: str
) -> tuple[NDArray[np.float64], Literal["highest", "lowest"], dict[str, str]]:
    layout = layout_of(list(used.values()))
    readable = {name: readable_by_tasks(cluster, shards) for name, shards in used.items()}
    score = _BlockScores(method, layout, readable, cluster.put(sources.labels))
    values = np.empty(len(sources))
    prints: dict[int, dict[str, str]] = {}
    keep: Literal["highest", "lowest"] = "highest"
    with _quiet_data() as data:
        blocks = data.range(layout.count, override_num_blocks=layout.count)
        try:
            for row in blocks.map_batches(score, batch_size=1, num_cpus=1).iter_rows():
                number = int(row["number"])
                values[slice(*layout.span(number))] = np.frombuffer(row["scores"])
                prints[number] = {name: row[name] for name in used}
                keep = row["keep"]
        except cluster.ray.exceptions.RayError as error:
            raise cluster.explained(error) from None
    every = range(layout.count)
    return values, keep, {name: fingerprint_of_parts(prints[number][name] for number in every) for name in used}


class _BlockScores:
    """Scores of the examples of one block, as a stage of Ray Data."""

    def __init__(self, method: str, layout: Layout, used: dict[str, Shards], labels: Any) -> None:
        self.method = method
        self.layout = layout
        self.used = used
        self.labels = labels
        self.__name__ = f"score {method}"

    def __call__(self, batch: dict[str, NDArray[np.int64]]) -> dict[str, Any]:
        import ray  # noqa: PLC0415 - this runs on workers, where Ray is at work already

        one_thread()
        number = int(batch["id"][0])
        start, stop = self.layout.span(number)
        arrays = {name: shards.read(start, stop) for name, shards in self.used.items()}
        signals = checked(start, labels=ray.get(self.labels)[start:stop], **arrays)
        scores, keep = block_scores(self.method, signals)
        columns = {"number": number, "scores": scores.tobytes(), "keep": keep}
        columns |= {name: fingerprint(array) for name, array in arrays.items()}
        return {name: np.array([value], dtype=object) for name, value in columns.items()}


def block_scores(method: str, signals: Signals) -> tuple[NDArray[np.float64], str]:
    """(m,) scores that a method gives to some examples, and whether it keeps the highest or the lowest.

    >>> scores, keep = block_scores("entropy", Signals(labels=[0, 1], probabilities=[[1.0, 0.0], [0.5, 0.5]]))
    >>> scores.round(3), keep
    (array([0.   , 0.693]), 'highest')
    """
    if method == "ccs":
        return aum_of(signals), "highest"
    outcome = get(method).run(signals, Request(size=len(signals)))
    if outcome.scores is None:
        raise AssertionError(f"{method} ranks by a score")
    return outcome.scores, outcome.stats["keep"]


@contextmanager
def _quiet_data() -> Iterator[Any]:
    """Ray Data without its bars and logs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Ray Data warns of its own default settings
        import ray.data  # noqa: PLC0415 - a second, for those who need it

        context = ray.data.DataContext.get_current()
    wanted = {"enable_progress_bars": False, "print_on_execution_start": False, "raise_original_map_exception": True}
    before = {name: getattr(context, name) for name in wanted if hasattr(context, name)}
    log = logging.getLogger("ray.data")
    level = log.level
    log.setLevel(logging.CRITICAL)
    for name in before:
        setattr(context, name, wanted[name])
    try:
        yield ray.data
    finally:
        log.setLevel(level)
        for name, value in before.items():
            setattr(context, name, value)
