"""Who is near whom, pair by pair, straight from the definition."""

import math

import numpy as np

from prune4rel.neighbours.graph import Graph

GRID = 2.0**40
"""Similarities and tau are rounded to multiples of 2^-40 before they are compared."""


def cosine(a, b):
    """Products of float32 numbers are exact in float64, and fsum rounds once: no step here loses anything."""
    a, b = [float(x) for x in a], [float(x) for x in b]
    squares = math.fsum(x * x for x in a) * math.fsum(x * x for x in b)
    return min(1.0, math.fsum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(squares)) if squares else None


def on_grid(value):
    return np.rint(value * GRID) / GRID


def reaches(similarity, tau, *, strict):
    return similarity > on_grid(tau) if strict else similarity >= on_grid(tau)


def rescaled(cosine, similarity):
    return on_grid((1 + cosine) / 2 if similarity == "shifted-cosine" else cosine)


def weights(rows, tau, similarity, *, strict=False):
    """(n, n) weights, 1 on the diagonal, 0 where two examples are no neighbours."""
    n = len(rows)
    dense = np.eye(n)
    for i in range(n):
        for j in range(i):
            found = cosine(rows[i], rows[j])
            if found is None:
                continue
            value = rescaled(found, similarity)
            if reaches(value, tau, strict=strict):
                dense[i, j] = dense[j, i] = np.float32(value)
    return dense


def fast_weights(rows, tau, similarity, *, strict=False):
    """The same by one matrix product in float64, for thousands of rows."""
    rows = np.asarray(rows, dtype=np.float64)
    squares = (rows**2).sum(axis=1)
    value = rescaled(np.minimum(1.0, rows @ rows.T / np.sqrt(np.outer(squares, squares))), similarity)
    dense = np.where(reaches(value, tau, strict=strict), value.astype(np.float32), 0.0)
    dense = np.tril(dense, -1)
    return dense + dense.T + np.eye(len(rows))


def edges(rows, tau, similarity, *, strict=False):
    """Neighbouring pairs, also those of weight 0, which only tau = 0 lets in."""
    n = len(rows)
    return {(i, j) for i in range(n) for j in range(n) if i != j and _near(rows[i], rows[j], tau, similarity, strict)}


def _near(a, b, tau, similarity, strict):
    found = cosine(a, b)
    if found is None:
        return False
    return reaches(rescaled(found, similarity), tau, strict=strict)


def to_graph(dense):
    """(n, n) weights as the package's graph."""
    off = dense - np.diag(np.diag(dense))
    i, j = np.nonzero(off)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=len(dense)))])
    return Graph(indptr.astype(np.int64), j.astype(np.int32), off[i, j].astype(np.float32))


def to_dense(graph):
    """The package's graph as (n, n) weights, 1 on the diagonal."""
    dense = np.eye(len(graph))
    for v in range(len(graph)):
        part = slice(graph.indptr[v], graph.indptr[v + 1])
        dense[v, graph.indices[part]] = graph.weights[part]
    return dense
