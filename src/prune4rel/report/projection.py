"""A map of the embeddings: two numbers for every example, so that near ones stay near."""

import warnings
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import rows_per_block, spans
from prune4rel.errors import InputError

MapKind = Literal["auto", "pca", "umap"]
KINDS = ("auto", "pca", "umap")

EXTRA_DIRECTIONS = 10
ROUNDS = 8
FEWEST_FOR_UMAP = 50
PIECES_AT_ONCE = 8


def map_of(embeddings: NDArray[Any], seed: int = 0, *, kind: MapKind = "auto") -> NDArray[np.float32]:
    """Lay embeddings out on a plane.

    Parameters
    ----------
    embeddings
        (n, d) numbers; a memory map is read block by block.
    seed
        Of the random directions that both ways start from.
    kind
        ``"pca"``: the two directions of largest variance, by randomised subspace iteration; ``"umap"``; or
        ``"auto"``: UMAP where it is installed, see `map_kind`.

    Returns
    -------
    (n, 2) float32

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0, 1.0], [4.0, 0.0, 1.0], [0.0, 2.0, 1.0], [4.0, 2.0, 1.0]])
    >>> map_of(rows, kind="pca").tolist()
    [[-2.0, -1.0], [2.0, -1.0], [-2.0, 1.0], [2.0, 1.0]]
    """
    if embeddings.ndim != 2:
        raise InputError(f"embeddings must have two dimensions, not {embeddings.ndim}", "embeddings")
    if map_kind(len(embeddings), kind) == "UMAP":
        return _umap(embeddings, seed)
    return _pca(embeddings, seed)


def map_kind(n: int, kind: MapKind = "auto") -> str:
    """Return the way `map_of` would go for `n` examples, ``"PCA"`` or ``"UMAP"``.

    >>> map_kind(3)
    'PCA'
    """
    if kind not in KINDS:
        raise InputError(f"the kind of map must be one of {', '.join(KINDS)}, not {kind!r}")
    installed = find_spec("umap") is not None
    if kind == "umap" and not installed:
        raise InputError("a UMAP map needs umap-learn; install it with: pip install 'prune4rel[umap]'")
    return "UMAP" if installed and kind != "pca" and n >= FEWEST_FOR_UMAP else "PCA"


def _pca(embeddings: NDArray[Any], seed: int) -> NDArray[np.float32]:
    n, d = embeddings.shape
    if n == 0 or d == 0:
        return np.zeros((n, 2), dtype=np.float32)
    centred = _Centred(embeddings)
    if d <= 2 + EXTRA_DIRECTIONS:
        directions, rounds = np.eye(d), 0
    else:
        draws = np.random.default_rng(seed).normal(size=(d, 2 + EXTRA_DIRECTIONS))
        directions, rounds = np.linalg.qr(draws)[0], ROUNDS
    for _ in range(rounds):
        directions = np.linalg.qr(centred.covariance_times(directions))[0]
    turn = np.linalg.eigh(directions.T @ centred.covariance_times(directions))[1][:, ::-1][:, :2]
    axes = directions @ turn
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    places = np.zeros((n, 2), dtype=np.float32)
    for start, stop in centred.pieces:
        places[start:stop, : axes.shape[1]] = centred.rows(start, stop) @ axes
    return places


class _Centred:
    """Rows less their mean, read piece by piece."""

    def __init__(self, embeddings: NDArray[Any]) -> None:
        n, d = embeddings.shape
        self.embeddings = embeddings
        self.pieces = list(spans(n, PIECES_AT_ONCE * rows_per_block(d)))
        self.mean = np.zeros(d)
        self.mean = sum((self.rows(*piece).sum(axis=0) for piece in self.pieces), start=np.zeros(d)) / n

    def rows(self, start: int, stop: int) -> NDArray[np.float64]:
        centred: NDArray[np.float64] = np.asarray(self.embeddings[start:stop], dtype=np.float64) - self.mean
        return centred

    def covariance_times(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros_like(directions)
        for piece in self.pieces:
            rows = self.rows(*piece)
            total += rows.T @ (rows @ directions)
        return total


def _umap(embeddings: NDArray[Any], seed: int) -> NDArray[np.float32]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of parts that need TensorFlow, and that a seed costs it its threads
        import umap  # noqa: PLC0415 - slow to import, and not always there

        places = umap.UMAP(n_components=2, random_state=seed, n_jobs=1).fit_transform(np.asarray(embeddings))
    return np.asarray(places, dtype=np.float32)
