"""The parts of judging that go through all rows, on this machine's processor; `cuda` has the same for a GPU."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prune4rel.judging.again import cast_votes
from prune4rel.judging.features import features_of
from prune4rel.judging.heads import Heads, Sums, scores_of, soft_sums_of, sums_of
from prune4rel.judging.rows import Floats
from prune4rel.judging.similar import NEIGHBOURS, Similar, find_similar, unit_rows
from prune4rel.judging.transition import Evidence, Fit, fit_transition, posterior
from prune4rel.machine import resolve_device
from prune4rel.progress import Advance, Progress, no_advance

Indices = NDArray[np.int64]


class Arithmetic(Protocol):
    """Work on arrays with one row an example, which may lie on a GPU; what is small goes in and out as NumPy."""

    def features(self, embeddings: Any, advance: Advance = no_advance) -> Any:
        """(n, p) features of (n, d) embeddings."""

    def sums(
        self,
        features: Any,
        folds: Indices,
        labels: Indices,
        n_classes: int,
        use: NDArray[np.bool_],
        advance: Advance = no_advance,
    ) -> Sums:
        """Add up the rows of every fold that are used."""

    def soft_sums(self, features: Any, folds: Indices, q: Any, use: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """(K, C, p) rows by class, and (K, C) how many, of the rows that are used: each counts as q says."""

    def scores(self, features: Any, folds: Indices, heads: Heads, advance: Advance = no_advance) -> Any:
        """(n, C) scores of every row by the head of its own fold."""

    def similar(self, rows: Any, k: int = NEIGHBOURS, progress: Progress | None = None) -> Similar:
        """Find everyone's nearest others among (n, d) rows, as the mean of them sees them."""

    def votes(self, q: Any, indices: Indices, weights: NDArray[np.float32]) -> Any:
        """(n, C) logarithms of the votes of neighbours."""

    def pin(self, q: Any, rows: Indices, labels: Indices) -> None:
        """Let some rows be certain."""

    def host(self, rows: Any, some: Indices | slice = slice(None)) -> NDArray[np.float32]:
        """Bring some rows here."""

    def bring(self, rows: NDArray[np.float32]) -> Any:
        """Take rows to where the work is done."""

    def fit(self, scores: Any, labels: Indices, use: NDArray[np.bool_], sharpness: float, belief: float) -> Fit:
        """Fit the matrix to the labels that are used."""

    def posterior(self, scores: Any, labels: Indices, sharpness: float, matrix: Floats) -> Any:
        """(n, C) what each example is."""


class Processor:
    """NumPy in blocks of rows, in threads."""

    def features(self, embeddings: Any, advance: Advance = no_advance) -> NDArray[np.float32]:
        """(n, p) features of (n, d) embeddings."""
        return features_of(embeddings, advance=advance)

    def sums(
        self,
        features: NDArray[np.float32],
        folds: Indices,
        labels: Indices,
        n_classes: int,
        use: NDArray[np.bool_],
        advance: Advance = no_advance,
    ) -> Sums:
        """Add up the rows of every fold that are used."""
        return sums_of(features, folds, labels, n_classes, int(folds.max()) + 1, use=use, advance=advance)

    def scores(
        self, features: NDArray[np.float32], folds: Indices, heads: Heads, advance: Advance = no_advance
    ) -> NDArray[np.float32]:
        """(n, C) scores of every row by the head of its own fold."""
        return scores_of(features, folds, heads, advance=advance)

    def soft_sums(
        self, features: NDArray[np.float32], folds: Indices, q: NDArray[np.float32], use: NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        """(K, C, p) rows by class, and (K, C) how many, of the rows that are used: each counts as q says."""
        return soft_sums_of(features, folds, q, int(folds.max()) + 1, use=use)

    def similar(self, rows: Any, k: int = NEIGHBOURS, progress: Progress | None = None) -> Similar:
        """Find everyone's nearest others among (n, d) rows, as the mean of them sees them."""
        return find_similar(unit_rows(rows), k, progress=progress)

    def votes(self, q: NDArray[np.float32], indices: Indices, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, C) logarithms of the votes of neighbours."""
        return cast_votes(q, indices, weights)

    def pin(self, q: NDArray[np.float32], rows: Indices, labels: Indices) -> None:
        """Let some rows be certain."""
        q[rows] = 0.0
        q[rows, labels] = 1.0

    def host(self, rows: NDArray[np.float32], some: Indices | slice = slice(None)) -> NDArray[np.float32]:
        """Give some rows."""
        return rows[some]

    def bring(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Give them back: the work is done here."""
        return rows

    def fit(
        self,
        scores: NDArray[np.float32],
        labels: Indices,
        use: NDArray[np.bool_],
        sharpness: float,
        belief: float,
    ) -> Fit:
        """Fit the matrix to the labels that are used."""
        rows: Any = slice(None) if use.all() else np.flatnonzero(use)
        return fit_transition(Evidence.of(scores[rows], labels[rows], sharpness), belief=belief)

    def posterior(
        self, scores: NDArray[np.float32], labels: Indices, sharpness: float, matrix: Floats
    ) -> NDArray[np.float32]:
        """(n, C) what each example is."""
        return posterior(scores, labels, sharpness, matrix)


def arithmetic_on(device: str) -> Arithmetic:
    """Return what works on a device: ``"cpu"``, ``"cuda"``, ``"auto"``.

    >>> arithmetic_on("cpu").host(np.eye(2, dtype=np.float32), np.array([1])).tolist()
    [[0.0, 1.0]]
    """
    where = resolve_device(device)
    if where == "cpu":
        return Processor()
    from prune4rel.judging.cuda import Accelerator  # noqa: PLC0415 - PyTorch is for those who have a GPU

    return Accelerator(where)
