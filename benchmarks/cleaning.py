"""How fast labels are cleaned: beside cleanlab with cross-validation, as the set grows, and on one GPU.

    python benchmarks/cleaning.py cpu [--n 50000] [--dim 512] [--classes 10]    a whole `clean`, and cleanlab
    python benchmarks/cleaning.py cpu --vectors VECTORS     on CIFAR-10N worst, as benchmarks/vectors.py wrote it
    python benchmarks/cleaning.py growth [--classes 100]                         seconds and peak memory as n doubles
    python benchmarks/cleaning.py gpu [--n 1000000] [--dim 768] [--classes 1000] judging on one GPU; rows made there

Rows are Gaussian mixtures, 20 % of the labels moved to another class. `gpu` first runs the tests that hold the GPU's
arithmetic against the processor's.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
import types
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from common import Array, table, timed

WRONG = 0.2


def mixture(n: int, dim: int, classes: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """(n, d) rows, (n,) given and true labels."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    centres = 5 * rng.standard_normal((classes, dim), dtype=np.float32) / dim**0.5
    rows = rng.standard_normal((n, dim), dtype=np.float32)
    rows += centres[true]
    return rows, spoilt(true, classes, rng), true


def spoilt(true: Array, classes: int, rng: np.random.Generator) -> Array:
    moved = rng.random(len(true)) < WRONG
    return np.where(moved, (true + rng.integers(1, classes, len(true))) % classes, true)


def average_precision(score: Array, wrong: Array) -> float:
    """Of low scores for wrong labels."""
    hits = wrong[np.argsort(score, kind="stable")]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


def real(vectors: Path) -> tuple[Array, Array, Array]:
    """(n, d) rows, (n,) given and true labels of CIFAR-10N."""
    rows, labels = np.load(vectors / "cifar10.lite0.npy"), np.load(vectors / "cifar10.labels.npz")
    return rows, labels["worst"][: len(rows)], labels["clean"][: len(rows)]


def on_cpu(n: int, dim: int, classes: int, threads: int, vectors: Path | None) -> None:
    from prune4rel import clean

    rows, given, true = mixture(n, dim, classes) if vectors is None else real(vectors)
    n, dim = rows.shape
    clean(embeddings=rows[:500], labels=given[:500])  # loops are compiled
    seconds, found = timed(lambda: clean(embeddings=rows, labels=given, device="cpu"))
    body: list[tuple[Any, ...]] = [
        ("prune4rel clean", f"{seconds:.1f}", f"{average_precision(found.label_score, given != true):.3f}", ""),
        *((f"  {name}", f"{part:.1f}", "", "") for name, part in found.seconds.items()),
    ]
    try:
        learners = import_module("cleanlab.classification")
    except ModuleNotFoundError as error:
        print(f"cleanlab left out: {error}")
    else:
        from sklearn.linear_model import LogisticRegression

        learning = learners.CleanLearning(
            LogisticRegression(max_iter=200, tol=1e-3), find_label_issues_kwargs={"n_jobs": threads}
        )
        theirs, frame = timed(lambda: learning.find_label_issues(rows, given))
        score = average_precision(frame["label_quality"].to_numpy(), given != true)
        body.append(("cleanlab CleanLearning", f"{theirs:.1f}", f"{score:.3f}", f"{theirs / seconds:.1f} x"))
    table(f"{n:,} x {dim}, {classes} classes, {threads} threads", ("", "seconds", "AP", "slower"), body)


def growth(dim: int, classes: int) -> None:
    """Each size in a process of its own, for its peak memory."""
    rows = []
    for n in (12_500, 25_000, 50_000, 100_000, 200_000):
        words = [sys.executable, __file__, "one", "--n", str(n), "--dim", str(dim), "--classes", str(classes)]
        made = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        rows.append((f"{n:,}", *made))
    table(f"{dim} dimensions, {classes} classes", ("n", "seconds", "peak GiB"), rows)


def one(n: int, dim: int, classes: int) -> None:
    from prune4rel import clean

    rows, given, _ = mixture(n, dim, classes)
    seconds, _ = timed(lambda: clean(embeddings=rows, labels=given, device="cpu"))
    print(f"{seconds:.1f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f}")


def on_gpu(n: int, dim: int, classes: int) -> None:
    _without_compiler()
    import torch

    try:
        pytest = import_module("pytest")
    except ModuleNotFoundError as error:
        print(f"tests left out: {error}")
    else:
        tests = Path(__file__).parent.parent / "tests/judging/test_cuda.py"
        pytest.main(["-q", "-c", os.devnull, "--noconftest", "-p", "no:cacheprovider", str(tests)])
    from prune4rel.judging import judge

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    true = rng.integers(0, classes, n)
    given = spoilt(true, classes, rng)
    centres = 5 * torch.randn(classes, dim, device="cuda") / dim**0.5
    rows = torch.randn(n, dim, device="cuda") + centres[torch.from_numpy(true).cuda()]
    judge(rows[:2000], given[:2000] % 10, device="cuda")  # libraries are loaded
    torch.cuda.synchronize()
    parts = _watched(torch)
    seconds, found = timed(lambda: judge(rows, given, device="cuda"))
    wrong = given != true
    right = np.where(found.is_label_issue, found.predicted_label, given) == true
    print(
        f"{n:,} x {dim}, {classes:,} classes, {torch.cuda.get_device_name()}: {seconds:.1f} s, "
        f"AP {average_precision(found.label_score, wrong):.3f}, right {1 - wrong.mean():.3f} -> {right.mean():.3f}, "
        f"rate {wrong.mean():.3f}, estimated {found.noise_rate:.3f}, "
        f"peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB there"
    )
    parts["on the processor"] = seconds - sum(parts.values())
    print(", ".join(f"{name} {part:.1f} s" for name, part in parts.items()))


def _watched(torch: Any) -> dict[str, float]:
    """Seconds by what is done there, filled while it is done."""
    from prune4rel.judging.cuda import Accelerator

    parts: dict[str, float] = {}

    def watch(name: str, method: Any) -> Any:
        def watched(*words: Any, **named: Any) -> Any:
            begin = time.perf_counter()
            value = method(*words, **named)
            torch.cuda.synchronize()
            parts[name] = parts.get(name, 0.0) + time.perf_counter() - begin
            return value

        return watched

    for name, method in list(vars(Accelerator).items()):
        if callable(method) and not name.startswith("_") and name != "bring":
            setattr(Accelerator, name, watch(name, method))
    return parts


def _without_compiler() -> None:
    """Let loops that are only for the processor run as plain Python where numba is not installed."""
    try:
        import numba  # noqa: F401
    except ModuleNotFoundError:
        plain: Any = types.ModuleType("numba")
        plain.njit = lambda **_: lambda function: function
        sys.modules["numba"] = plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cpu", "growth", "one", "gpu"))
    for name in ("n", "dim", "classes"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    usual = (1_000_000, 768, 1000) if given.what == "gpu" else (50_000, 512, 100 if given.what == "growth" else 10)
    n, dim, classes = (mine or its for mine, its in zip((given.n, given.dim, given.classes), usual, strict=True))
    if given.what == "cpu":
        on_cpu(n, dim, classes, given.threads, given.vectors)
    elif given.what == "growth":
        growth(dim, classes)
    elif given.what == "one":
        one(n, dim, classes)
    else:
        on_gpu(n, dim, classes)


if __name__ == "__main__":
    main()
