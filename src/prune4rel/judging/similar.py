"""Which examples are most alike: everyone's nearest neighbours by cosine, exact where that is affordable."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled, compiled_reduction
from prune4rel.blocks import map_blocks, spans
from prune4rel.neighbours.euclidean import Space
from prune4rel.neighbours.nearest import Nearest, find_nearest
from prune4rel.neighbours.similarity import Points
from prune4rel.progress import Progress

Rows = NDArray[np.float32]

NEIGHBOURS = 20
EXACT_WORK = 2e11
"""Multiplications up to which all pairs are compared in full: a few seconds on two cores."""

REDUCED = 64
"""Leading principal components in which candidates are looked for beyond that, in cells."""

SHARE = 0.97
"""Share of the candidates at which looking in cells aims."""

CANDIDATES = 2
"""How many times more candidates than neighbours are compared in full."""

GRID = 2.0**22
"""Cosines are rounded to multiples of 2^-22, so that the order of a sum does not matter."""

JUDGED = 256
"""Rows all of whose neighbours are known, to tell which share was found."""

ROUNDING = 1e-6
SAMPLE = 20_000
BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Similar:
    """Everyone's nearest others.

    Parameters
    ----------
    indices
        (n, k) whose, nearest first; ties to the lowest index.
    similarities
        (n, k) float32 cosine of the centred rows, -1 to 1.
    exact
        Whether all pairs were compared in full. Otherwise the candidates were most of those that are nearest in the
        leading principal components, and only they were.
    found
        Share of the true nearest that are among them, measured on sampled rows where it was not exact.
    """

    indices: NDArray[np.int64]
    similarities: NDArray[np.float32]
    exact: bool
    found: float = 1.0


def unit_rows(embeddings: NDArray[np.floating[Any]], centre: NDArray[np.float64] | None = None) -> Rows:
    """(n, d) rows around `centre`, their mean unless told, at length one; a row at the centre stays zero.

    >>> unit_rows(np.array([[1.0, 1.0], [1.0, 3.0]])).tolist()
    [[0.0, -1.0], [0.0, 1.0]]
    """
    middle = (centre_of(embeddings) if centre is None else centre).astype(np.float32)
    found = np.empty(embeddings.shape, dtype=np.float32)

    def block(start: int, stop: int) -> None:
        rows = embeddings[start:stop].astype(np.float32) - middle
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        np.divide(rows, lengths, out=rows, where=lengths > 0)
        found[start:stop] = rows

    map_blocks(block, len(embeddings), embeddings.shape[1])
    return found


def centre_of(embeddings: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """(d,) mean of the rows."""
    sums = map_blocks(
        lambda start, stop: embeddings[start:stop].sum(axis=0, dtype=np.float64), len(embeddings), embeddings.shape[1]
    )
    centre: NDArray[np.float64] = np.sum(sums, axis=0) / len(embeddings)
    return centre


def find_similar(
    units: Rows,
    k: int = NEIGHBOURS,
    *,
    nearest: Callable[..., Nearest] = find_nearest,
    progress: Progress | None = None,
) -> Similar:
    """Find everyone's k nearest others by cosine, or all of them where there are fewer.

    Parameters
    ----------
    units
        (n, d) rows of length one, such as `unit_rows` makes.
    k
        How many.
    nearest
        Who looks for them: ``nearest(space, k, share=share, advance=advance)``, with share None for all of them.
    progress
        Who is told.

    Examples
    --------
    >>> found = find_similar(unit_rows(np.array([[2.0, 0.1], [-2.0, 0.0], [3.0, -0.1]])), k=1)
    >>> found.indices.tolist(), found.exact
    ([[2], [0], [0]], True)
    """
    n, dim = units.shape
    exact = n * n / 2 * dim <= EXACT_WORK
    rows = units if exact or dim <= REDUCED else reduce(units, REDUCED)
    wanted = min(n - 1, k if exact else CANDIDATES * k)
    space = Space.of(Points(rows, np.einsum("ij,ij->i", rows, rows, dtype=np.float64)))
    with (progress or Progress()).task("neighbours", n * (n + 1) / 2) as advance:
        indices = nearest(space, wanted, share=None if exact else SHARE, advance=advance).indices
    k = min(k, n - 1)
    order, similarities = np.empty((n, k), dtype=np.int64), np.empty((n, k), dtype=np.float32)
    map_blocks(
        lambda start, stop: _rank(units, indices[start:stop], start, order[start:stop], similarities[start:stop]),
        n,
        wanted * dim,
    )
    return Similar(order, similarities, exact, 1.0 if exact else share_found(units, similarities))


def share_found(units: Rows, similarities: NDArray[np.float32]) -> float:
    """Share of the true nearest of sampled rows that are as near as what was found, by (n, k) its cosines.

    >>> round(share_found(np.float32([[0, 1], [0.6, 0.8], [1, 0]]), np.float32([[0.8], [0.8], [0]])), 3)
    0.667
    """
    n, k = similarities.shape
    rows = np.sort(np.random.default_rng(n).choice(n, min(n, JUDGED), replace=False))
    best = np.full((len(rows), k), -np.inf, dtype=np.float32)
    for first, last in spans(n, BLOCK):
        product = units[rows] @ units[first:last].T
        inside = np.flatnonzero((rows >= first) & (rows < last))
        product[inside, rows[inside] - first] = -np.inf
        best = np.partition(np.concatenate([best, product], axis=1), -k, axis=1)[:, -k:]
    reached = best.min(axis=1, keepdims=True) - np.float32(ROUNDING)
    return float(np.mean(similarities[rows] >= reached))


def nearest_among(units: Rows, others: Rows) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """(n,) which of some other rows is nearest to each, ties to the lowest, and (n,) the cosine.

    >>> nearest_among(np.eye(2, dtype=np.float32), np.array([[0.6, 0.8]], dtype=np.float32))
    (array([0, 0]), array([0.6, 0.8], dtype=float32))
    """
    n = len(units)
    best, cosines = np.zeros(n, dtype=np.int64), np.full(n, -np.inf, dtype=np.float32)

    for span in spans(n, BLOCK):
        mine = slice(*span)
        for first, last in spans(len(others), BLOCK):
            product = units[mine] @ others[first:last].T
            here = product.argmax(axis=1)
            found = product[np.arange(len(here)), here]
            better = found > cosines[mine]
            best[mine][better] = first + here[better]
            cosines[mine][better] = found[better]
    return best, cosines


def reduce(units: Rows, width: int) -> Rows:
    """(n, width) the rows in the leading principal components of a sample of them."""
    some = units[:: max(1, len(units) // SAMPLE)].astype(np.float64)
    _, vectors = np.linalg.eigh(some.T @ some)
    leading = np.ascontiguousarray(vectors[:, -width:][:, ::-1].astype(np.float32))
    return units @ leading


@compiled_reduction
def _dot(a: Rows, b: Rows) -> float:
    total = 0.0
    for k in range(a.size):
        total += np.float64(a[k]) * np.float64(b[k])
    return total


@compiled
def _rank(
    units: Rows,
    candidates: NDArray[np.int64],
    start: int,
    indices: NDArray[np.int64],
    similarities: NDArray[np.float32],
) -> None:
    """Keep the best candidates of some rows by their cosine."""
    k = indices.shape[1]
    for row in range(len(candidates)):
        found = 0
        for place in range(candidates.shape[1]):
            other = candidates[row, place]
            cosine = np.float32(np.rint(_dot(units[start + row], units[other]) * GRID) / GRID)
            at = found
            while at > 0 and (
                cosine > similarities[row, at - 1]
                or (cosine == similarities[row, at - 1] and other < indices[row, at - 1])
            ):
                at -= 1
            if at == k:
                continue
            last = min(found, k - 1)
            for move in range(last, at, -1):
                similarities[row, move] = similarities[row, move - 1]
                indices[row, move] = indices[row, move - 1]
            similarities[row, at] = cosine
            indices[row, at] = other
            found = min(found + 1, k)
