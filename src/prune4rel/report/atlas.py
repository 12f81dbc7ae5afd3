"""The map's points as compact arrays for the page."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.report.figure import Missing
from prune4rel.report.story import Array, Story
from prune4rel.report.words import plain

MOST_POINTS = 250_000
MOST_ID_BYTES = 1_200_000
STEPS = 2**16 - 1
LAYERS = (
    ("corrected", "Corrected", "the model gives another label than the given one", 2),
    ("noisy", "Wrong label", "the given label is not the true one", 1),
    ("picked", "Picked", "kept in the subset", 0),
)


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
    return sum(_bytes_of(story.ids) for story in stories if story.ids is not None) <= MOST_ID_BYTES


def _bytes_of(ids: Array) -> int:
    return sum(len(str(name).encode()) + 3 for name in ids.tolist())


def _fitted(places: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = places.min(axis=0), places.max(axis=0)
    size = float((high - low).max()) or 1.0
    centred: NDArray[np.float64] = (places - (low + high) / 2) / size + 0.5
    return np.clip(centred, 0.0, 1.0)


def _packed(array: Array) -> dict[str, str]:
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return {"type": f"Uint{8 * array.dtype.itemsize}Array", "data": b64encode(little.tobytes()).decode("ascii")}
