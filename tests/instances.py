"""Instances to select from: data that is hard on purpose, and data with real structure."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from prune4rel.neighbours.graph import Graph
from prune4rel.neighbours.similarity import Points
from prune4rel.progress import no_advance
from prune4rel.signals import Signals

TAUS = (0.0, 0.3, 0.5, 0.7, 0.9, 0.975)
SIMILARITIES = ("cosine", "shifted-cosine")
ETAS = (0.1, 1.0, 100.0)


@dataclass(frozen=True)
class Instance:
    rows: np.ndarray
    confidence: np.ndarray
    labels: np.ndarray

    @property
    def points(self):
        return points_of(self.rows)

    def __len__(self):
        return len(self.rows)


def points_of(rows):
    signals = Signals(labels=np.zeros(len(rows), dtype=int), embeddings=rows)
    return Points(signals.embeddings, signals.squared_norms["embeddings"])


def graph_of(backend, threshold):
    parts = backend.upper(threshold, max_edges=np.inf, advance=no_advance)
    return Graph.from_upper(len(backend.points), parts)


def assert_same_graph(one, other):
    """Bit for bit."""
    for name in ("indptr", "indices", "weights"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name, strict=True)


def integer_rows(n, dim):
    """Small integers: equal rows, opposite rows, and similarities that hit a threshold exactly."""
    row = st.lists(st.integers(-2, 2), min_size=dim, max_size=dim).filter(any)
    return st.lists(row, min_size=n, max_size=n).map(lambda rows: np.array(rows, dtype=np.float32))


def clustered_rows(n, dim):
    """Cliques of near and of exact duplicates, and points on their own."""

    def make(seed, clusters):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(clusters, dim))
        spread = rng.choice([0.0, 0.05], size=(n, 1))
        return (centres[rng.integers(clusters, size=n)] + spread * rng.normal(size=(n, dim))).astype(np.float32)

    return st.builds(make, st.integers(0, 2**32 - 1), st.integers(1, 4))


FEW = st.integers(1, 9)
NARROW = st.integers(1, 8)


@st.composite
def instances(draw, *, n=FEW, dim=NARROW):
    n, dim = draw(n), draw(dim)
    rows = draw(integer_rows(n, dim) if dim <= 8 and n <= 12 and draw(st.booleans()) else clustered_rows(n, dim))
    confidence = st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0]) | st.floats(0, 1, width=32)
    return Instance(
        rows,
        np.array(draw(st.lists(confidence, min_size=n, max_size=n))),
        np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))),
    )


def many(n, *, dim=4, seed=0, clusters=12):
    """Hundreds of examples in cliques, some of them exact duplicates, with confidences that repeat."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(clusters, dim))
    spread = rng.choice([0.0, 0.1], size=(n, 1))
    rows = centres[rng.integers(clusters, size=n)] + spread * rng.normal(size=(n, dim))
    confidence = np.where(rng.random(n) < 0.3, 0.75, rng.random(n))
    return Instance(rows.astype(np.float32), confidence, rng.integers(3, size=n))


def warm_up(features, labels):
    """Probabilities of a linear model fitted to the noisy labels."""
    return LogisticRegression(max_iter=2000).fit(features, labels).predict_proba(features)


@cache
def noisy_digits():
    """Scikit-learn's 1797 digits, four labels in ten wrong."""
    features, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(labels)) < 0.4, (labels + rng.integers(1, 10, len(labels))) % 10, labels)
    return Signals(labels=noisy, embeddings=features, probabilities=warm_up(features / 16, noisy))
