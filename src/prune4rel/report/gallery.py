"""The labels that were corrected most confidently, with pictures."""

import io
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.report.figure import Missing, Table
from prune4rel.report.story import Story

MOST = 192
LARGEST = 96
TINY = 16
QUALITY = 86


@dataclass(frozen=True)
class Card:
    """One corrected example. `picture` is a data URI; `right` is None where the truth is not known."""

    index: int
    name: str
    given: int
    corrected: int
    true: int | None
    confidence: float
    picture: str | None

    @property
    def right(self) -> bool | None:
        """Whether the correction is true."""
        return None if self.true is None else self.true == self.corrected


@dataclass(frozen=True)
class Gallery:
    """Cards, surest first, out of all corrections."""

    cards: tuple[Card, ...]
    corrections: int
    small: bool
    trouble: str

    def table(self, story: Story) -> Table:
        """Return the cards as rows."""
        names = story.class_names
        return Table(
            ("index", "id", "given", "corrected", "true", "confidence"),
            tuple(
                (
                    card.index,
                    card.name,
                    names[card.given],
                    names[card.corrected],
                    None if card.true is None else names[card.true],
                    card.confidence,
                )
                for card in self.cards
            ),
        )


def gallery_of(story: Story, most: int = MOST) -> Gallery | Missing:
    """Choose the surest corrections, an equal number for every given class first, and fetch their pictures."""
    if story.corrected is None or story.confidence is None:
        return Missing("No model's labels for the whole training set were kept, with how sure it is.")
    changed = np.flatnonzero(story.corrected != story.labels)
    if not len(changed):
        return Missing("The model agrees with every given label.")
    sure = np.nan_to_num(np.asarray(story.confidence, dtype=np.float64))
    chosen = surest(changed, sure, story.labels, most)
    pictures, small, trouble = _pictures(story, chosen)
    cards = tuple(
        Card(
            index=int(index),
            name=story.name_of(int(index)),
            given=int(story.labels[index]),
            corrected=int(story.corrected[index]),
            true=None if story.clean_labels is None else int(story.clean_labels[index]),
            confidence=float(sure[index]),
            picture=picture,
        )
        for index, picture in zip(chosen, pictures, strict=True)
    )
    return Gallery(cards, len(changed), small, trouble)


def surest(
    changed: NDArray[np.int64], confidence: NDArray[np.float64], labels: NDArray[np.int64], most: int
) -> NDArray[np.int64]:
    """Return at most `most` of the changed examples, surest first, so that no given class is left out if it can be.

    >>> surest(np.array([0, 1, 2, 3]), np.array([0.9, 0.8, 0.7, 0.6]), np.array([5, 5, 5, 6]), 2)
    array([0, 3])
    """
    order = changed[np.lexsort((changed, -confidence[changed]))]
    turn = np.empty(len(order), dtype=np.int64)
    for label in np.unique(labels[order]):
        mine = labels[order] == label
        turn[mine] = np.arange(mine.sum())
    chosen = order[np.argsort(turn, kind="stable")[:most]]
    return chosen[np.lexsort((chosen, -confidence[chosen]))]


def _pictures(story: Story, chosen: NDArray[np.int64]) -> tuple[list[str | None], bool, str]:
    nothing: list[str | None] = [None] * len(chosen)
    if story.thumbnails is None:
        return nothing, False, "These examples are not pictures, so only their labels are shown."
    try:
        _pillow()
        pixels = np.asarray(story.thumbnails(chosen))
    except (OSError, InputError) as error:
        return nothing, False, f"The pictures could not be read: {error}"
    if pixels.ndim != 4 or pixels.shape[0] != len(chosen) or pixels.shape[3] != 3 or pixels.dtype != np.uint8:
        return nothing, False, f"The pictures could not be shown: they came as {pixels.dtype} {pixels.shape}."
    return [picture_uri(one) for one in pixels], max(pixels.shape[1:3]) <= TINY, ""


def picture_uri(pixels: NDArray[np.uint8]) -> str:
    """Write a picture as a data URI, scaled down to a thumbnail if it is larger than one."""
    Image = _pillow()
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    picture.thumbnail((LARGEST, LARGEST))
    text = io.BytesIO()
    picture.save(text, "WEBP", quality=QUALITY, method=4, lossless=max(picture.size) <= TINY)
    return f"data:image/webp;base64,{b64encode(text.getvalue()).decode('ascii')}"


def _pillow() -> Any:
    try:
        from PIL import Image  # noqa: PLC0415 - only for reports with pictures
    except ImportError:
        raise InputError("pictures in a report need Pillow; install it with: pip install 'prune4rel[report]'") from None
    return Image
