"""Embeddings as heads take them: centred, of unit length, in at most a few hundred directions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from prune4rel.judging.rows import Floats, for_each_block, total
from prune4rel.progress import Advance, no_advance

DIRECTIONS = 300
"""Most directions that are kept: beyond them heads gain nothing and cost grows with the square."""

DENSE_WIDTH = 4096
"""Sparse embeddings wider than this are not centred, and their directions are found by random projections."""

NARROW = 20
"""Embeddings narrower than this say something by their length, too: a coordinate keeps it that is the same for all."""

LENGTHS = 20_000
"""Rows by which it is settled how long rows usually are."""

POWER_ITERATIONS = 4
OVERSAMPLING = 16
TINY = 1e-12
NEGLIGIBLE = 1e-7
"""Share of the largest variance below which float32 products know nothing of a direction."""


class Directions(NamedTuple):
    """(d,) centre, and (d, p) orthonormal directions, by falling variance, with their (p,) variances.

    Where `level` is above 0 it was put beside every row before that was brought to unit length, and directions have
    d + 1 entries.
    """

    centre: Floats
    level: float
    axes: Floats
    variances: Floats


def features_of(embeddings: Any, directions: int = DIRECTIONS, *, advance: Advance = no_advance) -> NDArray[np.float32]:
    """(n, p) float32: embeddings minus their mean, at unit length, in their leading directions.

    Parameters
    ----------
    embeddings
        (n, d) numbers, dense or a SciPy sparse matrix in compressed rows.
    directions
        Most directions; no more than d, and none in which nothing varies.
    advance
        Told the rows gone through: three times n.

    Examples
    --------
    >>> rows = np.eye(30) * np.arange(1, 31)
    >>> made = features_of(rows)
    >>> made.shape, bool(np.allclose(np.linalg.norm(made, axis=1), 1))
    ((30, 29), True)
    """
    if is_wide(embeddings):
        return _sparse_features(embeddings.tocsr(), directions, advance)
    return project(embeddings, leading_directions(embeddings, directions, advance=advance), advance=advance)


def is_wide(embeddings: Any) -> bool:
    """Whether they are sparse, and so wide that they stay it."""
    return hasattr(embeddings, "tocsr") and embeddings.shape[1] > DENSE_WIDTH


def leading_directions(embeddings: Any, directions: int, *, advance: Advance = no_advance) -> Directions:
    """Find the centre, and the directions in which rows of unit length vary most."""
    n = embeddings.shape[0]
    return directions_by(
        lambda function, *shared: total(lambda block: function(embeddings, block, *shared), n, advance),
        embeddings,
        directions,
    )


def directions_by(add_up: Callable[..., list[Floats]], embeddings: Any, directions: int) -> Directions:
    """Do as `leading_directions`, where ``add_up(function, *shared)`` goes through the rows.

    It adds up the arrays of ``function(embeddings, block, *shared)`` for all blocks of rows.
    """
    n = embeddings.shape[0]
    (sums,) = add_up(_sums)
    centre = sums / n
    level = 0.0
    if embeddings.shape[1] < NARROW:
        some = dense_rows(embeddings, slice(None, None, max(1, n // LENGTHS))) - centre
        level = float(np.median(np.linalg.norm(some, axis=1)))
    (gram,) = add_up(_products, centre, level)
    return Directions(centre, level, *directions_of(gram / n, directions))


def _sums(embeddings: Any, block: slice) -> tuple[Floats]:
    return (dense_rows(embeddings, block).sum(axis=0, dtype=np.float64),)


def _products(embeddings: Any, block: slice, centre: Floats, level: float) -> tuple[NDArray[np.float32]]:
    rows = unit_rows(embeddings, block, centre, level)
    return (rows.T @ rows,)


def project(embeddings: Any, found: Directions, *, advance: Advance = no_advance) -> NDArray[np.float32]:
    """(n, p) rows around the centre, at unit length, in the directions that were found."""
    n, axes = embeddings.shape[0], found.axes.astype(np.float32)
    out = np.empty((n, axes.shape[1]), dtype=np.float32)

    def fill(block: slice) -> None:
        out[block] = unit_rows(embeddings, block, found.centre, found.level) @ axes

    for_each_block(fill, n, advance)
    return out


def directions_of(covariance: Floats, directions: int) -> tuple[Floats, Floats]:
    """(d, p) leading directions of a (d, d) covariance, at least one, and their (p,) variances.

    >>> axes, variances = directions_of(np.diag([1.0, 4.0, 0.0]), 3)
    >>> axes.T.tolist(), variances.tolist()
    ([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [4.0, 1.0])
    """
    with threadpool_limits(1, "blas"):
        variances, axes = np.linalg.eigh(covariance)
    keep = np.arange(len(variances))[::-1][:directions]
    keep = keep[variances[keep] > NEGLIGIBLE * max(variances[-1], TINY)]
    if not len(keep):
        keep = np.arange(len(variances))[-1:]
    return with_fixed_signs(axes[:, keep]), variances[keep]


def unit_rows(embeddings: Any, block: slice, centre: Floats, level: float = 0.0) -> NDArray[np.float32]:
    """(m, d) float32 rows minus their centre, at unit length; a row at the centre stays 0.

    Where `level` is above 0 they are (m, d + 1): it is put beside them first.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]), slice(0, 2), np.zeros(2)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    rows: NDArray[np.float32] = (dense_rows(embeddings, block) - centre).astype(np.float32)
    if level > 0:
        rows = np.concatenate([rows, np.full((len(rows), 1), level, dtype=np.float32)], axis=1)
    return _at_unit_length(rows)


def with_fixed_signs(axes: Floats) -> Floats:
    """Turn every column so that its entry of largest size is positive: a decomposition leaves that open.

    >>> with_fixed_signs(np.array([[0.6], [-0.8]])).tolist()
    [[-0.6], [0.8]]
    """
    turned: Floats = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return turned


def dense_rows(embeddings: Any, block: slice) -> NDArray[Any]:
    """(m, d) rows as a dense array: float64 as it is, all else as float32."""
    rows = embeddings[block]
    dense: NDArray[Any] = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    return dense if dense.dtype == np.float64 else dense.astype(np.float32, copy=False)


def _at_unit_length(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    rows /= np.maximum(lengths, np.float32(TINY))[:, None]
    return rows


def _sparse_features(embeddings: Any, directions: int, advance: Advance) -> NDArray[np.float32]:
    """Find the leading directions by random projections and power iterations (Halko et al., 2011)."""
    n, width = embeddings.shape
    squared = np.asarray(embeddings.multiply(embeddings).sum(axis=1), dtype=np.float64).ravel()
    rows = embeddings.multiply(1.0 / np.maximum(np.sqrt(squared), TINY)[:, None]).tocsr().astype(np.float32)
    rank = min(directions + OVERSAMPLING, n, width)
    rng = np.random.default_rng(0)
    found = rng.standard_normal((width, rank), dtype=np.float32)
    with threadpool_limits(1, "blas"):
        for _ in range(POWER_ITERATIONS):
            found = np.linalg.qr(rows.T @ np.linalg.qr(rows @ found)[0])[0]
            advance(3 * n / POWER_ITERATIONS)
        projected: NDArray[np.float32] = np.asarray(rows @ found)
    return features_of(projected, directions)
