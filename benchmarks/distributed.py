"""How much a Ray cluster costs and gains on one machine, beside the local engine, measured in one run.

    python benchmarks/distributed.py             50,000 x 512, 1 and 2 workers beside 1 and 2 threads
    python benchmarks/distributed.py --n 20000   smaller

Every row is a process of its own; workers have one thread each, and so has the driver's greedy loop as many threads as
there are workers. Ray is started and has run a small selection before the clock starts; how long that takes is shown
apart. The rows take turns, `--repeats` times, and the best time of each counts. Where the machine itself is faster in
one minute than in the next, the best of two rows may be from different minutes; so the overhead is also told turn by
turn, as the median of Ray's time over that of the local engine in the same turn.
"""

import argparse
import multiprocessing
import os
import sys
from statistics import median
from typing import Any

import numpy as np

import prune4rel as p4r
from common import inputs, table, timed

PER_CLUSTER = 150
SMALL = 3000


def run(engine: str, workers: int, n: int, dim: int, answers: Any) -> None:
    os.environ["PRUNE4REL_THREADS"] = str(workers)
    data: dict[str, Any] = dict(inputs(n, dim, PER_CLUSTER))
    small: dict[str, Any] = {name: array[:SMALL] for name, array in data.items()}
    if engine == "local":
        p4r.select("prune4rel", **small, ratio=0.2, device="cpu")
        seconds, chosen = timed(lambda: p4r.select("prune4rel", **data, ratio=0.2, device="cpu"))
        answers.put((seconds, 0.0, dict(chosen.stats), chosen.indices))
        return
    from prune4rel.scale.cluster import connect

    def start() -> Any:
        context = connect()
        context.__enter__()
        p4r.select("prune4rel", **small, ratio=0.2, engine="ray", device="cpu")
        return context

    starting, context = timed(start)
    seconds, chosen = timed(lambda: p4r.select("prune4rel", **data, ratio=0.2, engine="ray", device="cpu"))
    answers.put((seconds, starting, dict(chosen.stats), chosen.indices))
    context.__exit__(None, None, None)


def measure(n: int, dim: int, repeats: int) -> None:
    rows = [(engine, workers) for workers in (1, 2) for engine in ("local", "ray")]
    spawn = multiprocessing.get_context("spawn")
    turns: dict[tuple[str, int], list[Any]] = {row: [] for row in rows}
    for turn in range(1, repeats + 1):
        for row in rows:
            answers = spawn.Queue()
            process = spawn.Process(target=run, args=(*row, n, dim, answers))
            process.start()
            turns[row].append(answers.get())
            process.join()
            print(
                f"turn {turn} of {repeats}: {row[0]}, {row[1]}: {turns[row][-1][0]:.2f} s", file=sys.stderr, flush=True
            )
    best = {row: min(found, key=lambda answer: answer[0]) for row, found in turns.items()}
    lines = []
    for engine, workers in rows:
        seconds, starting, stats, picks = best[engine, workers]
        facts = stats.get("engine", {})
        local = best["local", workers][0]
        ratios = [a[0] / b[0] for a, b in zip(turns[engine, workers], turns["local", workers], strict=True)]
        lines.append(
            (
                f"{engine}, {workers}",
                f"{seconds:.2f}",
                f"{stats['seconds']['graph']:.2f}",
                f"{seconds / local - 1:+.0%}" if engine == "ray" else "",
                f"{median(ratios) - 1:+.0%}" if engine == "ray" else "",
                f"{best[engine, 1][0] / seconds:.2f}x",
                f"{best[engine, 1][2]['seconds']['graph'] / stats['seconds']['graph']:.2f}x",
                facts.get("tasks", ""),
                f"{(facts['bytes_returned'] + facts['bytes_loaded']) / 1e6:.0f}" if facts else "",
                f"{facts['idle']:.0%}" if facts else "",
                f"{starting:.1f}" if facts else "",
                "yes" if np.array_equal(picks, best["local", 1][3]) else "NO",
            )
        )
    table(
        f"{n:,} x {dim}, ratio 0.2, best of {repeats}",
        (
            "workers",
            "s",
            "graph s",
            "overhead",
            "in turn",
            "all",
            "graph",
            "tasks",
            "MB moved",
            "idle",
            "start s",
            "same picks",
        ),
        lines,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    measure(options.n, options.dim, options.repeats)
