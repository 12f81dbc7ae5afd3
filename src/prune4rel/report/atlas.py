"""A map of the embeddings, so that near examples stay near: where they lie, and their points as arrays for the page."""

import warnings
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import rows_per_block, spans
from prune4rel.errors import InputError
from prune4rel.report.charts import Missing
from prune4rel.report.story import Array, Story
from prune4rel.report.words import plain

MapKind = Literal["auto", "pca", "umap"]
KINDS = ("auto", "pca", "umap")

EXTRA_DIRECTIONS = 10
ROUNDS = 8
FEWEST_FOR_UMAP = 50
PIECES_AT_ONCE = 8

MOST_POINTS = 250_000
MOST_ID_BYTES = 1_200_000
STEPS = 2**16 - 1
LAYERS = (
    ("corrected", "Corrected", "the model gives another label than the given one", 2),
    ("noisy", "Wrong label", "the given label is not the true one", 1),
    ("picked", "Picked", "kept in the subset", 0),
)


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


@dataclass(frozen=True, eq=False)
class Atlas:
    """Which examples the map shows, where they lie, and which layers it has.

    Parameters
    ----------
    shown
        (k,) numbers of the examples, ascending.
    places
        (k, 2) from 0 to 1, at the same scale both ways.
    masks
        (k,) booleans by layer: corrected, noisy, picked.
    """

    story: Story
    shown: NDArray[np.int64]
    places: NDArray[np.float64]
    masks: Mapping[str, NDArray[np.bool_]]

    @property
    def layers(self) -> list[dict[str, Any]]:
        """Layers that have data, with what to call them, how many points they hold, and their colour."""
        return [
            {"key": key, "name": name, "about": about, "count": int(self.masks[key].sum()), "colour": colour}
            for key, name, about, colour in LAYERS
            if key in self.masks
        ]

    def to_page(self, *, ids: bool = True) -> dict[str, Any]:
        """Return JSON in which arrays are base64 text: little-endian, with their type."""
        story = self.story
        small = np.uint8 if len(story.class_names) <= 256 else np.uint16
        quantised = np.rint(self.places * STEPS).astype(np.uint16)
        arrays: dict[str, Array] = {"x": quantised[:, 0], "y": quantised[:, 1]}
        for name in ("labels", "clean_labels", "corrected"):
            values = getattr(story, name)
            if values is not None:
                arrays[name] = values[self.shown].astype(small)
        if story.confidence is not None:
            sure = np.nan_to_num(np.asarray(story.confidence[self.shown], dtype=np.float64))
            arrays["confidence"] = np.rint(255 * np.clip(sure, 0, 1)).astype(np.uint8)
        flags = np.zeros(len(self.shown), dtype=np.uint8)
        for bit, (key, *_) in enumerate(LAYERS):
            if key in self.masks:
                flags |= (self.masks[key] << bit).astype(np.uint8)
        arrays["flags"] = flags
        if len(self.shown) < story.n:
            arrays["index"] = self.shown.astype(np.uint32)
        page: dict[str, Any] = {
            "size": len(self.shown),
            "classes": [plain(name) for name in story.class_names],
            "arrays": {name: _packed(array) for name, array in arrays.items()},
        }
        if ids and story.ids is not None:
            page["ids"] = [plain(str(name)) for name in story.ids[self.shown].tolist()]
        return page


def atlas_of(story: Story, most: int = MOST_POINTS) -> Atlas | Missing:
    """Gather what the map shows; at most `most` points, picked at random beyond that."""
    if story.map_xy is None:
        return Missing("No embeddings were kept, so there is no map.")
    places = np.asarray(story.map_xy, dtype=np.float64)
    shown = np.flatnonzero(np.isfinite(places).all(axis=1))
    if not len(shown):
        return Missing("No example has a place on the map.")
    if len(shown) > most:
        shown = np.sort(np.random.default_rng(0).choice(shown, most, replace=False))
    masks = {}
    if story.corrected is not None:
        masks["corrected"] = (story.corrected != story.labels)[shown]
    if story.clean_labels is not None:
        masks["noisy"] = (story.clean_labels != story.labels)[shown]
    if story.picked is not None:
        masks["picked"] = story.picked[shown]
    return Atlas(story, shown, _fitted(places[shown]), masks)


def ids_fit(stories: Sequence[Story]) -> bool:
    """Tell whether the names of all examples are short enough to travel with the page."""
    ids = (name for story in stories if story.ids is not None for name in story.ids.tolist())
    return sum(len(str(name).encode()) + 3 for name in ids) <= MOST_ID_BYTES


def _fitted(places: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = places.min(axis=0), places.max(axis=0)
    size = float((high - low).max()) or 1.0
    centred: NDArray[np.float64] = (places - (low + high) / 2) / size + 0.5
    return np.clip(centred, 0.0, 1.0)


def _packed(array: Array) -> dict[str, str]:
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return {"type": f"Uint{8 * array.dtype.itemsize}Array", "data": b64encode(little.tobytes()).decode("ascii")}
