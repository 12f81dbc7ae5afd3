"""SSP, self-supervised prototypes: an example is as hard as it is far from every prototype."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel.blocks import spans
from prune4rel.engines.engine import Engine
from prune4rel.errors import InputError
from prune4rel.half import widen
from prune4rel.methods.checks import one_of
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best
from prune4rel.signals import Floats, Signals

Direction = Literal["hard", "prototypical"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)

FIT_NUMBERS = 2**28
"""Most numbers that k-means is given at once, 1 GiB of float32; of more rows it sees a random sample."""

GATHERED_ROWS = 8192
SMALLEST_BATCH = 1024
BATCH_ROWS_PER_CLUSTER = 8


@register_method(
    "ssp",
    needs=("ssl_embeddings|embeddings",),
    cost="n·d·clusters multiplications, a few times over",
    citation="Sorscher, Geirhos, Shekhar, Ganguli, Morcos: Beyond Neural Scaling Laws: Beating Power Law Scaling via "
    "Data Pruning. NeurIPS 2022",
    asks=("rows",),
    extends=True,
    in_parts="shares",
    seeded=True,
)
def ssp(signals: Signals, request: Request, *, clusters: int | None = None, direction: Direction = "hard") -> Outcome:
    """Keep the examples far from (or near to) their nearest k-means prototype.

    score = 1 - cosine with the nearest centroid of mini-batch k-means on the normalised `ssl_embeddings`, or on
    the `embeddings` where there are none. The given labels play no part in it.

    Parameters
    ----------
    clusters
        Number of prototypes; by default one a class, or one an example where that is fewer.
    direction
        ``"hard"``: farthest kept; ``"prototypical"``: nearest kept.
    """
    one_of(direction, "direction", DIRECTIONS)
    engine = request.serving(signals)
    name = "ssl_embeddings" if "ssl_embeddings" in engine.present else "embeddings"
    k = resolve_clusters(clusters, signals)
    lengths = np.sqrt(engine.squared_norms(name))
    centroids, seen = prototypes(engine, name, lengths, k, np.random.default_rng(request.seed))
    with threadpool_limits(1, "blas"):
        scores = engine.per_example(prototype_distances, (name, lengths), centroids)
    keep: Literal["highest", "lowest"] = "highest" if direction == "hard" else "lowest"
    outcome = keep_best(scores, signals.labels, request, keep=keep, clusters=k, direction=direction)
    outcome.stats.update(fitted_on=seen, approximate=seen < len(signals))
    return outcome


def prototypes(
    engine: Engine, name: str, lengths: NDArray[np.float64], clusters: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], int]:
    """Fit k-means to the rows of a signal, normalised by their lengths (n,), or to a sample of them.

    Returns (clusters, d) centroids, and how many rows they were fitted on.

    >>> from prune4rel.engines.local import LocalEngine
    >>> engine = LocalEngine(Signals(labels=[0] * 4, embeddings=[[2, 0], [3, 0], [0, 5], [0, 4]]))
    >>> lengths = np.array([2.0, 3.0, 5.0, 4.0])
    >>> centroids, _ = prototypes(engine, "embeddings", lengths, 2, np.random.default_rng(0))
    >>> sorted(centroids.tolist())
    [[0.0, 1.0], [1.0, 0.0]]
    """
    from sklearn.cluster import MiniBatchKMeans  # noqa: PLC0415 - a second that other methods need not spend

    n, width = len(lengths), engine.width(name)
    seen = min(n, max(clusters, FIT_NUMBERS // width))
    sample = np.sort(rng.choice(n, seen, replace=False))
    rows = np.empty((seen, width), dtype=np.float32)
    for start, stop in spans(seen, GATHERED_ROWS):
        part = sample[start:stop]
        rows[start:stop] = _normalised(engine.rows(name, part), lengths[part])
    model = MiniBatchKMeans(
        clusters,
        n_init=3,
        batch_size=max(SMALLEST_BATCH, BATCH_ROWS_PER_CLUSTER * clusters),
        random_state=int(rng.integers(2**31)),
    )
    with threadpool_limits(1):  # several threads add up in any order
        model.fit(rows)
    return model.cluster_centers_.astype(np.float64), seen


def prototype_distances(
    embeddings: Floats, lengths: NDArray[np.float64], centroids: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n,) cosine distance of each embedding to the nearest centroid, 0 to 2, higher is harder.

    Parameters
    ----------
    embeddings
        (n, d); an all-zero one has distance 1.
    lengths
        (n,) their Euclidean norms.
    centroids
        (k, d), of any length.

    Examples
    --------
    >>> prototype_distances(np.array([[2, 0], [0, 3]]), np.array([2.0, 3.0]), np.array([[0.5, 0]]))
    array([0., 1.])
    """
    aims = _normalised(centroids, np.linalg.norm(centroids, axis=1))

    rows = _normalised(embeddings, lengths)
    closest = (rows @ aims.T).argmax(axis=1)
    cosines: NDArray[np.float64] = (rows * aims[closest]).sum(axis=1)
    return np.maximum(0.0, 1 - cosines)


def _normalised(rows: Floats, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m, d) rows of length 1 in double precision; all-zero rows stay."""
    wide = rows if rows.dtype == np.float64 else widen(rows)
    return wide / np.where(lengths > 0, lengths, 1.0)[:, np.newaxis]


def resolve_clusters(clusters: int | None, signals: Signals) -> int:
    """Return the number of clusters: that of the classes unless told."""
    n = len(signals)
    if clusters is None:
        return min(signals.n_classes, n)
    if not isinstance(clusters, int | np.integer) or not 1 <= clusters <= n:
        raise InputError(f"clusters must be a whole number from 1 to the {n} examples there are, not {clusters!r}")
    return int(clusters)
