"""The parts of judging that go through all rows, on a GPU: what is large stays there, in float32 and full precision."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.judging.again import FLOOR, PRIOR
from prune4rel.judging.arithmetic import Indices
from prune4rel.judging.features import DENSE_WIDTH, DIRECTIONS, NARROW, TINY, dense_rows, directions_of, features_of
from prune4rel.judging.heads import Heads, Sums
from prune4rel.judging.rows import Floats
from prune4rel.judging.similar import NEIGHBOURS, Similar
from prune4rel.judging.similar_cuda import find_similar_there
from prune4rel.judging.transition import ROUNDS, START, Fit, matrix_from
from prune4rel.neighbours.precision import full_precision
from prune4rel.progress import Advance, Progress, no_advance

BLOCK = 65_536
"""Rows that are worked on at once."""


class Accelerator:
    """PyTorch on one GPU.

    Parameters
    ----------
    device
        Its name, such as ``"cuda:0"``.
    """

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)

    def features(self, embeddings: Any, advance: Advance = no_advance) -> torch.Tensor:
        """(n, p) features of (n, d) embeddings."""
        n, width = embeddings.shape
        if width < NARROW or (hasattr(embeddings, "tocsr") and width > DENSE_WIDTH):
            rows = embeddings.cpu().numpy() if isinstance(embeddings, torch.Tensor) else embeddings
            return self.bring(features_of(rows, advance=advance))
        with full_precision():
            rows = self._units(embeddings, advance)
            gram = torch.zeros((width, width), dtype=torch.float64, device=self._device)
            for start, stop in spans(n, BLOCK):
                gram += rows[start:stop].T @ rows[start:stop]
                advance(stop - start)
            axes = directions_of(gram.cpu().numpy() / n, DIRECTIONS)[0]
            features = rows @ self.bring(axes.astype(np.float32))
        advance(n)
        return features

    def sums(
        self,
        features: torch.Tensor,
        folds: Indices,
        labels: Indices,
        n_classes: int,
        use: NDArray[np.bool_],
        advance: Advance = no_advance,
    ) -> Sums:
        """Add up the rows of every fold that are used."""
        n_folds, width = int(folds.max()) + 1, features.shape[1]
        products = np.zeros((n_folds, width, width))
        classes = np.zeros((n_folds, n_classes, width))
        counts = np.zeros((n_folds, n_classes))
        with full_precision():
            for fold in range(n_folds):
                chosen = np.flatnonzero((folds == fold) & use)
                order = chosen[np.argsort(labels[chosen], kind="stable")]
                counts[fold] = np.bincount(labels[chosen], minlength=n_classes)
                ends = self._numbers(np.cumsum(counts[fold]).astype(np.int64))
                rows = features[self._numbers(order)]
                for start, stop in spans(len(order), BLOCK):
                    products[fold] += (rows[start:stop].T @ rows[start:stop]).double().cpu().numpy()
                upto = torch.cat([torch.zeros_like(rows[:1]).double(), rows.double().cumsum(dim=0)])[ends]
                classes[fold] = torch.diff(upto, dim=0, prepend=torch.zeros_like(upto[:1])).cpu().numpy()
                advance(len(order))
        return Sums(products, classes, counts)

    def scores(
        self, features: torch.Tensor, folds: Indices, heads: Heads, advance: Advance = no_advance
    ) -> torch.Tensor:
        """(n, C) scores of every row by the head of its own fold."""
        out = torch.empty((len(features), heads.biases.shape[1]), dtype=torch.float32, device=self._device)
        with full_precision():
            for fold in range(len(heads.biases)):
                chosen = self._numbers(np.flatnonzero(folds == fold))
                weights, biases = self.bring(heads.weights[fold]), self.bring(heads.biases[fold])
                for start, stop in spans(len(chosen), BLOCK):
                    rows = chosen[start:stop]
                    out[rows] = features[rows] @ weights + biases
                advance(len(chosen))
        return out

    def soft_sums(
        self, features: torch.Tensor, folds: Indices, q: torch.Tensor, use: NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        """(K, C, p) rows by class, and (K, C) how many, of the rows that are used: each counts as q says."""
        n_folds = int(folds.max()) + 1
        classes = np.zeros((n_folds, q.shape[1], features.shape[1]))
        counts = np.zeros((n_folds, q.shape[1]))
        with full_precision():
            for fold in range(n_folds):
                chosen = self._numbers(np.flatnonzero((folds == fold) & use))
                for start, stop in spans(len(chosen), BLOCK):
                    weights = q[chosen[start:stop]]
                    classes[fold] += (weights.T @ features[chosen[start:stop]]).double().cpu().numpy()
                    counts[fold] += weights.double().sum(dim=0).cpu().numpy()
        return classes, counts

    def similar(self, rows: Any, k: int = NEIGHBOURS, progress: Progress | None = None) -> Similar:
        """Find everyone's nearest others among (n, d) rows, as the mean of them sees them."""
        with (progress or Progress()).task("neighbours", 2.0 * len(rows)) as advance:
            return find_similar_there(self._units(rows, advance), k, advance)

    def votes(self, q: torch.Tensor, indices: Indices, weights: NDArray[np.float32]) -> torch.Tensor:
        """(n, C) logarithms of the votes of neighbours."""
        beforehand = (q.double().mean(dim=0) * PRIOR + FLOOR).float()
        out = torch.empty_like(q)
        for start, stop in spans(len(q), BLOCK):
            others, counts = self._numbers(indices[start:stop]), self.bring(weights[start:stop])
            shares = counts * ((counts > 0).sum(dim=1) / counts.sum(dim=1).clamp_min(TINY))[:, None]
            votes = beforehand.repeat(stop - start, 1)
            for place in range(others.shape[1]):
                votes += shares[:, place, None] * q[others[:, place]]
            out[start:stop] = votes.log_()
        return out

    def pin(self, q: torch.Tensor, rows: Indices, labels: Indices) -> None:
        """Let some rows be certain."""
        where = self._numbers(rows)
        q[where] = 0.0
        q[where, self._numbers(labels)] = 1.0

    def host(self, rows: torch.Tensor, some: Indices | slice = slice(None)) -> NDArray[np.float32]:
        """Bring some rows here."""
        chosen = rows[some] if isinstance(some, slice) else rows[self._numbers(some)]
        found: NDArray[np.float32] = chosen.cpu().numpy()
        return found

    def bring(self, rows: NDArray[np.float32]) -> torch.Tensor:
        """Take rows to the GPU."""
        return torch.from_numpy(np.ascontiguousarray(rows)).to(self._device)

    def fit(
        self, scores: torch.Tensor, labels: Indices, use: NDArray[np.bool_], sharpness: float, belief: float
    ) -> Fit:
        """Fit the matrix to the labels that are used."""
        n_classes = scores.shape[1]
        chosen = np.flatnonzero(use)
        order = chosen[np.argsort(labels[chosen], kind="stable")]
        given, where = self._numbers(labels[order]), self._numbers(order)
        shares = np.bincount(labels[chosen], minlength=n_classes) + 0.5
        shares = shares / shares.sum()
        matrix = START * np.eye(n_classes) + (1 - START) * shares
        counts, loss = np.zeros((n_classes, n_classes)), np.inf
        with full_precision():
            for _ in range(ROUNDS):
                likely = self.bring(matrix.T.astype(np.float32))
                found = torch.zeros((n_classes, n_classes), dtype=torch.float64, device=self._device)
                total = 0.0
                for start, stop in spans(len(order), BLOCK):
                    labels_here = given[start:stop]
                    joint = torch.softmax(scores[where[start:stop]] * sharpness, dim=1) * likely[labels_here]
                    evidence = joint.sum(dim=1, keepdim=True).clamp_min(TINY)
                    joint /= evidence
                    total -= float(evidence.log().double().sum())
                    present, many = torch.unique_consecutive(labels_here, return_counts=True)
                    upto = torch.cat([torch.zeros_like(joint[:1]).double(), joint.double().cumsum(dim=0)])
                    ends = many.cumsum(dim=0)
                    found[present] += upto[ends] - upto[ends - many]
                counts, loss = found.T.cpu().numpy(), total / max(len(order), 1)
                matrix = matrix_from(counts, shares, belief)
        return Fit(matrix, counts, loss)

    def posterior(self, scores: torch.Tensor, labels: Indices, sharpness: float, matrix: Floats) -> torch.Tensor:
        """(n, C) what each example is."""
        out = torch.empty_like(scores)
        likely, given = self.bring(matrix.T.astype(np.float32)), self._numbers(labels)
        for start, stop in spans(len(out), BLOCK):
            joint = torch.softmax(scores[start:stop] * sharpness, dim=1) * likely[given[start:stop]]
            out[start:stop] = joint / joint.sum(dim=1, keepdim=True).clamp_min(TINY)
        return out

    def _units(self, embeddings: Any, advance: Advance) -> torch.Tensor:
        """(n, d) float32 rows around their mean, at length one; a row at the mean stays zero."""
        n = embeddings.shape[0]
        rows = torch.empty((n, embeddings.shape[1]), dtype=torch.float32, device=self._device)
        for start, stop in spans(n, BLOCK):
            rows[start:stop] = self._some(embeddings, slice(start, stop))
            advance(stop - start)
        rows -= self._sum(rows) / n
        for start, stop in spans(n, BLOCK):
            rows[start:stop] /= rows[start:stop].norm(dim=1, keepdim=True).clamp_min(TINY)
        return rows

    def _some(self, embeddings: Any, block: slice) -> torch.Tensor:
        """(m, d) float32 rows, which may be there already."""
        if isinstance(embeddings, torch.Tensor):
            return embeddings[block].to(self._device, torch.float32)
        return self.bring(dense_rows(embeddings, block).astype(np.float32))

    def _numbers(self, indices: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(indices)).to(self._device)

    def _sum(self, rows: torch.Tensor) -> torch.Tensor:
        parts = [rows[start:stop].double().sum(dim=0) for start, stop in spans(len(rows), BLOCK)]
        return torch.stack(parts).sum(dim=0).float()
