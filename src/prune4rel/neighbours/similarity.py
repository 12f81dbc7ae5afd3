"""Similarity scales, thresholds, and the one definition of a similarity that every backend agrees on."""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from prune4rel._compiled import compiled, compiled_reduction
from prune4rel.errors import InputError
from prune4rel.half import value_of, widen

Similarity = Literal["cosine", "shifted-cosine"]
GRID = 2.0**40
"""Similarities are rounded to multiples of 2^-40 before they are compared with tau, rounded alike: far finer than
float32, and coarse enough that the order in which a backend adds its products does not matter."""

SIMILARITIES: tuple[str, ...] = get_args(Similarity)


@dataclass(frozen=True)
class Threshold:
    """Which pairs are neighbours: similarity >= tau (or > tau where `strict`).

    `"cosine"` is the cosine itself, `"shifted-cosine"` is (1 + cosine) / 2.

    >>> Threshold(0.975, "shifted-cosine").cosine
    0.95
    """

    tau: float
    similarity: Similarity = "shifted-cosine"
    strict: bool = False

    def __post_init__(self) -> None:
        if self.similarity not in SIMILARITIES:
            raise InputError(f"similarity must be one of {', '.join(SIMILARITIES)}, not {self.similarity!r}")
        if not (isinstance(self.tau, int | float) and math.isfinite(self.tau) and 0 <= self.tau <= 1):
            raise InputError(f"tau must lie between 0 and 1, or be 'auto'; got {self.tau!r}")

    @property
    def on_grid(self) -> float:
        """Tau on the grid on which similarities are compared."""
        return round(self.tau * GRID) / GRID

    @property
    def shifted(self) -> bool:
        """Whether similarities are (1 + cosine) / 2."""
        return self.similarity == "shifted-cosine"

    @property
    def cosine(self) -> float:
        """The threshold as a cosine."""
        return 2 * self.tau - 1 if self.shifted else self.tau


def from_cosine(cosine: float, similarity: Similarity) -> float:
    """Similarity of a pair with this cosine."""
    return (1 + cosine) / 2 if similarity == "shifted-cosine" else cosine


@dataclass(frozen=True)
class Points:
    """Rows to compare, and their squared lengths in double precision."""

    rows: NDArray[np.floating[Any]]
    squared_norms: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.rows.shape[1])

    def raw(self, where: slice | NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Rows as they were given, in float32; a view where they are float32 already."""
        return widen(self.rows[where])

    def given(self, where: slice | NDArray[np.integer[Any]]) -> NDArray[np.float32] | NDArray[np.uint16]:
        """Rows as `keep_neighbours` takes them: float32, or the bits of float16; a view of one stretch of rows."""
        rows = np.ascontiguousarray(self.rows[where])
        return rows.view(np.uint16) if rows.dtype == np.float16 else rows.astype(np.float32, copy=False)

    def unit(self, where: slice | NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Rows scaled to length one; all-zero rows stay zero."""
        raw = self.raw(where)
        squares = self.squared_norms[where]
        scale = np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
        if np.all((scale > 1e-30) & (scale < 1e30) | (scale == 0)):
            return raw * scale.astype(np.float32)[:, None]
        return (raw * scale[:, None]).astype(np.float32)  # in double precision: float32 would over- or underflow


@compiled_reduction
def _dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    total = 0.0
    if a.itemsize == 2:
        for k in range(a.size):
            total += np.float64(value_of(a[k])) * np.float64(value_of(b[k]))
    else:
        for k in range(a.size):
            total += np.float64(a[k]) * np.float64(b[k])
    return total


@compiled
def keep_neighbours(
    rows: NDArray[np.float32] | NDArray[np.uint16],
    row_squares: NDArray[np.float64],
    columns: NDArray[np.float32] | NDArray[np.uint16],
    column_squares: NDArray[np.float64],
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    count: int,
    shifted: bool,
    tau: float,
    strict: bool,
    weights: NDArray[np.float32],
) -> int:
    """Compute the first `count` candidate pairs canonically; keep those that reach `tau`, in place.

    The canonical similarity is dot / sqrt(|a|^2 |b|^2) in double precision from the rows as given, on a grid of
    2^-40, as `tau` must be: exactly 1 for equal rows. Weights are rounded to float32.
    """
    kept = 0
    for e in range(count):
        a, b = i[e], j[e]
        squares = row_squares[a] * column_squares[b]
        cosine = _dot(rows[a], columns[b]) / math.sqrt(squares) if squares > 0 else -2.0
        cosine = min(cosine, 1.0)
        similarity = np.rint(((1.0 + cosine) / 2.0 if shifted else cosine) * GRID) / GRID
        if similarity > tau or (similarity == tau and not strict):
            i[kept] = a
            j[kept] = b
            weights[kept] = similarity
            kept += 1
    return kept
