"""What two versions of this package cost, side by side: a selection, ``--help``, the start of a run.

Every measurement runs in a process of its own, the versions by turns, so that whatever else the machine does falls on
both; of each the median counts.

    git worktree add /tmp/before COMMIT
    python benchmarks/costs.py --before /tmp/before/src
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1] / "src"

SELECT = """
import time
import numpy as np
import prune4rel as p4r
rng = np.random.default_rng(0)
n, d, C = {n}, 512, 10
y = rng.integers(0, C, n)
E = (rng.normal(size=(C, d))[y] + 1.5 * rng.normal(size=(n, d))).astype(np.float32)
P = rng.dirichlet(np.ones(C), n).astype(np.float32)
p4r.select(embeddings=E[:500], probabilities=P[:500], labels=y[:500], size=50, device="cpu")
begin = time.perf_counter(), time.process_time()
p4r.select(embeddings=E, probabilities=P, labels=y, ratio=0.2, balanced=True, device="cpu")
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""

RUN = (
    "run --dataset digits --network mlp --network-option width=4 --epochs 1 --warmup-epochs 1 --methods uniform "
    "--ratios 0.1 --device cpu --quiet --output"
)


def seconds_of(source: Path, task: str, n: int) -> tuple[float, float]:
    """Seconds of one task with one version, in a new process: of the clock, and of the processor."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PRUNE4REL_CACHE": "off"}
    python = [sys.executable, "-P"]
    if task == "select":
        done = subprocess.run(
            [*python, "-c", SELECT.format(n=n)], env=environment, capture_output=True, text=True, check=True
        )
        clock, processor = map(float, done.stdout.split())
        return clock, processor
    with tempfile.TemporaryDirectory() as folder:
        words = ["--help"] if task == "help" else [*RUN.split(), f"{folder}/run"]
        begin, before = time.perf_counter(), os.times()
        subprocess.run(
            [*python, "-m", "prune4rel", *words], env=environment, cwd=folder, capture_output=True, check=True
        )
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        return time.perf_counter() - begin, spent


def main() -> None:
    """Print a line a task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the `src` of the other version")
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("--tasks", default="help,run,select")
    asked = parser.parse_args()
    for task in asked.tasks.split(","):
        found: dict[str, list[tuple[float, float]]] = {"before": [], "now": []}
        for turn in range(asked.times):
            versions = [("before", asked.before), ("now", HERE)]
            for name, source in versions[:: 1 if turn % 2 else -1]:
                found[name].append(seconds_of(source.resolve(), task, asked.n))
        for at, kind in enumerate(("clock", "processor")):
            before, now = ([each[at] for each in found[name]] for name in ("before", "now"))
            ratio = median(b / a for a, b in zip(before, now, strict=True))
            print(
                f"{task:7s} {kind:9s} before {median(before):7.3f} s  now {median(now):7.3f} s  "
                f"{100 * (median(now) / median(before) - 1):+6.1f} %  {median(now) - median(before):+7.3f} s  "
                f"median of the ratios {100 * (ratio - 1):+6.1f} %  ({asked.times} times each)",
                flush=True,
            )


if __name__ == "__main__":
    main()
