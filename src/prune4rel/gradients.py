"""Gradients of the last layer, never written out.

The cross-entropy of example i has, at a linear last layer, the gradient g_i = e_i ⊗ (z_i, 1): the outer product of
its error e_i = p_i - onehot(y_i), one number a class, and its features z_i with a one for the bias. Whatever the
methods ask of gradients needs the two factors only: <g_i, g_j> = <e_i, e_j> (<z_i, z_j> + 1).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.half import widen
from prune4rel.signals import Signals

GRID = 2.0**-32
"""Rounding errors of inner products in double precision are far below this share of the largest of them."""


@dataclass(frozen=True)
class Gradients:
    """Last-layer gradients of m examples, as the factors of their outer products.

    Parameters
    ----------
    errors
        (m, C) float64, predicted probability minus one-hot label.
    features
        (m, d + 1) float64, embedding and a one.

    Examples
    --------
    >>> signals = Signals(labels=[0, 1], probabilities=[[0.5, 0.5], [0.5, 0.5]], embeddings=[[3, 0], [0, 3]])
    >>> gradients = gradients_of(signals, slice(None))
    >>> gradients.inner(gradients)
    array([[ 5. , -0.5],
           [-0.5,  5. ]])
    >>> gradients.along(gradients.total())
    array([4.5, 4.5])
    """

    errors: NDArray[np.float64]
    features: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.errors)

    def __getitem__(self, where: slice | NDArray[np.integer[Any]]) -> "Gradients":
        """Return the gradients of some of the examples."""
        return Gradients(self.errors[where], self.features[where])

    def squares(self) -> NDArray[np.float64]:
        """(m,) squared lengths."""
        lengths: NDArray[np.float64] = np.square(self.errors).sum(axis=1) * np.square(self.features).sum(axis=1)
        return lengths

    def inner(self, other: "Gradients") -> NDArray[np.float64]:
        """(m, k) inner products with the gradients of k other examples."""
        products = self.features @ other.features.T
        products *= self.errors @ other.errors.T
        return products

    def along(self, direction: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,) inner products with one (C, d + 1) matrix."""
        lengths: NDArray[np.float64] = np.einsum("ic,ic->i", self.features @ direction.T, self.errors)
        return lengths

    def total(self, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """(C, d + 1) sum of the gradients, each times its weight where (m,) weights are given."""
        errors = self.errors if weights is None else self.errors * weights[:, None]
        summed: NDArray[np.float64] = errors.T @ self.features
        return summed


def gradients_of(signals: Signals, where: slice | NDArray[np.integer[Any]]) -> Gradients:
    """Last-layer gradients of some examples, at the model that gave the signals."""
    rows = widen(signals.need("embeddings")[where])
    features = np.ones((len(rows), rows.shape[1] + 1))
    features[:, :-1] = rows
    errors = np.array(signals.need("probabilities")[where], dtype=np.float64)
    return Gradients(minus_labels(errors, signals.labels[where]), features)


def minus_labels(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """(m, C) errors made of the probabilities, in place.

    >>> minus_labels(np.array([[0.25, 0.75]]), np.array([1]))
    array([[ 0.25, -0.25]])
    """
    probabilities[np.arange(len(labels)), labels] -= 1.0
    return probabilities


def on_grid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round so that values equal up to rounding errors are equal, and ties go to the lowest index everywhere.

    >>> on_grid(np.array([1.0, 0.1 + 0.2, 0.3])).tolist()
    [1.0, 0.30000000004656613, 0.30000000004656613]
    """
    unit = GRID * np.abs(values).max(initial=0.0)
    return values if unit == 0.0 else np.rint(values / unit) * unit
