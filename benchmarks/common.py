"""What the benchmarks share: made-up data, a clock, a table."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def clustered(n: int, dim: int, per_cluster: int, *, spread: float = 0.3, seed: int = 0) -> Array:
    """Unit-length centres in random directions, the hardest case for screening, with noise around them."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(1, n // per_cluster), dim), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows: Array = np.float32(spread / dim**0.5) * rng.standard_normal((n, dim), dtype=np.float32)
    rows += centres[rng.integers(0, len(centres), n)]
    if rows.dtype != np.float32:
        raise AssertionError("peers are to be timed in the precision they would be used in")
    return rows


def inputs(n: int, dim: int, per_cluster: int) -> dict[str, Array]:
    """Embeddings in clusters, probabilities of ten classes, and labels that have nothing to do with either."""
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet(np.full(10, 0.3), n).astype(np.float32)
    embeddings = clustered(n, dim, per_cluster)
    return {"embeddings": embeddings, "probabilities": probabilities, "labels": rng.integers(0, 10, n)}


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    value = function()
    return time.perf_counter() - begin, value


def best_of(repeats: int, function: Callable[[], Any]) -> tuple[float, Any]:
    return min((timed(function) for _ in range(repeats)), key=lambda pair: pair[0])


def table(title: str, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    cells = [header, *[tuple(str(value) for value in row) for row in rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    print(f"\n{title}")
    for number, row in enumerate(cells):
        print("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Write a table for a page, its first column to the left and numbers to the right; needs no PyTorch."""
    line = "|" + "|".join("---" if number == 0 else "---:" for number in range(len(header))) + "|"
    return "\n".join([f"| {' | '.join(header)} |", line, *(f"| {' | '.join(row)} |" for row in rows)])
