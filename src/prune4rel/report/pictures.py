"""Examples to look at: cards with a picture or a text each, such as the labels that were corrected most confidently."""

import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.data import Split
from prune4rel.data.decode import BrokenImageError, ImageFile, read_image
from prune4rel.errors import InputError
from prune4rel.report.charts import DataTable, Missing
from prune4rel.report.story import Array, Story, Thumbnails
from prune4rel.report.words import count

MOST = 192
LARGEST = 96
TINY = 16
QUALITY = 86


@dataclass(frozen=True)
class Card:
    """One example. `picture` is a data URI, `text` its words; `right` is None where the truth is not known."""

    index: int
    name: str
    given: int
    corrected: int
    true: int | None
    confidence: float
    picture: str | None = None
    text: str | None = None

    @property
    def right(self) -> bool | None:
        """Whether the correction is true."""
        return None if self.true is None else self.true == self.corrected


@dataclass(frozen=True)
class Gallery:
    """Cards, surest first unless `about` says otherwise; `small` pictures are shown pixel by pixel."""

    cards: tuple[Card, ...]
    corrections: int
    small: bool
    trouble: str
    class_names: tuple[str, ...]
    about: str = ""

    @property
    def caption(self) -> str:
        """What the cards are, and what went wrong with their pictures."""
        if self.about:
            return self.about
        shown = f"The surest {count(len(self.cards))} of {count(self.corrections)} corrections"
        return f"{shown}, every given class in turn, with how sure the model is. {self.trouble}".rstrip()

    @property
    def checked(self) -> bool:
        """Whether the true labels are known."""
        return any(card.true is not None for card in self.cards)

    @property
    def of_texts(self) -> bool:
        """Whether cards hold words, which want more room than a picture."""
        return any(card.text is not None for card in self.cards)

    def table(self) -> DataTable:
        """Return the cards as rows."""
        names = self.class_names
        columns = ("index", "id", "given", "corrected", "true", "confidence")
        rows = tuple(
            (card.index, card.name, names[card.given], names[card.corrected], true, card.confidence)
            for card in self.cards
            for true in [None if card.true is None else names[card.true]]
        )
        return DataTable(columns, rows)


def gallery_of(story: Story, most: int = MOST) -> Gallery | Missing:
    """Choose the surest corrections of a run, an equal number for every given class first, and fetch their pictures."""
    if story.corrected is None or story.confidence is None:
        return Missing("No model's labels for the whole training set were kept, with how sure it is.")
    changed = np.flatnonzero(story.corrected != story.labels)
    if not len(changed):
        return Missing("The model agrees with every given label.")
    sure = np.nan_to_num(np.asarray(story.confidence, dtype=np.float64))
    return cards_of(
        surest(changed, sure, story.labels, most),
        story.class_names,
        given=story.labels,
        corrected=story.corrected,
        confidence=sure,
        true=story.clean_labels,
        ids=story.ids,
        thumbnails=story.thumbnails,
        corrections=len(changed),
    )


def cards_of(
    chosen: NDArray[np.int64],
    class_names: tuple[str, ...],
    *,
    given: Array,
    corrected: Array,
    confidence: Array,
    true: Array | None = None,
    ids: Array | None = None,
    thumbnails: Thumbnails | None = None,
    texts: Sequence[str] | None = None,
    corrections: int | None = None,
) -> Gallery:
    """Make cards for some examples, in the order given.

    Parameters
    ----------
    chosen
        (k,) numbers of the examples.
    given, corrected, confidence, true, ids
        (n,) labels as given, as corrected and how surely (0 to 1), the truth, and names; see `Story`.
    thumbnails, texts
        What to show of an example: ``thumbnails(chosen)`` returns (k, h, w, 3) uint8 pictures; (n,) texts.
    corrections
        How many there are to choose from; as many as are chosen unless given.
    """
    pictures: list[str | None] = [None] * len(chosen)
    small, trouble = False, ""
    if texts is None:
        pictures, small, trouble = _pictures(thumbnails, chosen)
    cards = tuple(
        Card(
            index=int(index),
            name=f"#{index}" if ids is None else str(ids[index]),
            given=int(given[index]),
            corrected=int(corrected[index]),
            true=None if true is None else int(true[index]),
            confidence=float(confidence[index]),
            picture=picture,
            text=None if texts is None else texts[index],
        )
        for index, picture in zip(chosen, pictures, strict=True)
    )
    return Gallery(cards, len(chosen) if corrections is None else corrections, small, trouble, class_names)


def thumbnails_of(split: Split) -> Thumbnails | None:
    """Return what fetches pictures of some examples of a split; None where they are no pictures."""
    images, files = split.images, split.files
    if images is not None:
        return lambda rows: np.asarray(images[rows])
    if files is not None:
        return lambda rows: np.stack([_thumbnail(files[row]) for row in rows])
    return None


def _thumbnail(file: ImageFile) -> NDArray[np.uint8]:
    """Read a picture as a square as large as the gallery shows; one that has gone is grey."""
    try:
        return read_image(file, (LARGEST, LARGEST))
    except BrokenImageError:
        return np.full((LARGEST, LARGEST, 3), 128, dtype=np.uint8)


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


def _pictures(thumbnails: Thumbnails | None, chosen: NDArray[np.int64]) -> tuple[list[str | None], bool, str]:
    nothing: list[str | None] = [None] * len(chosen)
    if thumbnails is None:
        return nothing, False, "These examples are not pictures, so only their labels are shown."
    try:
        _pillow()
        pixels = np.asarray(thumbnails(chosen))
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
