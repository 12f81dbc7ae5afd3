"""Which given labels were corrected to which."""

import numpy as np
from numpy.typing import NDArray

from prune4rel.report.charts import Matrix, Square
from prune4rel.report.figure import Figure, Looks, Missing, Panel, Table
from prune4rel.report.story import Story
from prune4rel.report.words import count, isolate, percent, plural

MOST_NAMES = 24


def confusion(story: Story, looks: Looks) -> Figure | Missing:
    """Draw given against corrected labels, the busiest classes where there are many."""
    del looks
    if story.corrected is None:
        return Missing("No model's labels for the whole training set were kept.")
    counts = pairs_of(story.labels, story.corrected, len(story.class_names))
    if not counts.sum():
        return Missing("There are no examples.")
    shown = _busiest(counts)
    changed = int(counts.sum() - np.trace(counts))
    given, now = np.nonzero(counts)
    rows = tuple(
        (story.class_names[row], story.class_names[column], int(counts[row, column]))
        for row, column in zip(given, now, strict=True)
    )
    some = "" if len(shown) == len(counts) else f" The {len(shown)} classes with the most corrections are drawn."
    return Figure(
        caption=f"Given labels (rows) against the model's (columns): {count(changed)} of {plural(story.n, 'example')}, "
        f"{percent(changed / story.n)}, would be labelled anew. Colour is the share of a given class that moved; "
        f"the diagonal, where labels stay, is not coloured.{some}",
        panels=(Panel("", _matrix(counts, shown, story.class_names)),),
        table=Table(("given", "corrected", "examples"), rows),
    )


def pairs_of(given: NDArray[np.int64], corrected: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """(C, C) how many examples with a given label (row) have a corrected one (column).

    >>> pairs_of(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    array([[1, 1],
           [0, 1]])
    """
    flat = np.bincount(np.asarray(given) * n_classes + np.asarray(corrected), minlength=n_classes**2)
    return flat.reshape(n_classes, n_classes)


def _busiest(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(counts) <= MOST_NAMES:
        return np.arange(len(counts))
    moved = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diag(counts)
    return np.sort(np.argsort(-moved, kind="stable")[:MOST_NAMES])


def _matrix(counts: NDArray[np.int64], shown: NDArray[np.int64], names: tuple[str, ...]) -> Matrix:
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    off = shares[np.ix_(shown, shown)] * (1 - np.eye(len(shown)))
    strongest = float(off.max()) or 1.0

    def square(row: int, column: int) -> Square:
        number, share = int(counts[row, column]), float(shares[row, column])
        one, other = isolate(names[row]), isolate(names[column])
        if row == column:
            return Square(None, count(number), f"{one}: {count(number)} labels stay ({percent(share)})")
        tip = f"{one} to {other}: {count(number)} ({percent(share)} of {one})"
        return Square(share / strongest, count(number) if number else "", tip)

    return Matrix(
        "given label",
        "corrected label",
        tuple(names[place] for place in shown),
        tuple(tuple(square(int(row), int(column)) for column in shown) for row in shown),
    )
