"""How much a Ray cluster costs and gains on one machine, beside the local engine, measured in one run.

    python benchmarks/distributed.py             50,000 x 512, 1 and 2 workers beside 1 and 2 threads
    python benchmarks/distributed.py --n 20000   smaller

Every row is a process of its own; workers have one thread each, and so has the driver's greedy loop as many threads as
there are workers. Ray is started and has run a small selection before the clock starts; how long that takes is shown
apart. A process selects `--times` times: the first time processes get their memory from the system and copy the
embeddings to where workers see them ("first"), from then on they have it ("s", the best of the later times). The rows
take turns, `--repeats` times, and the best of each counts. Where the machine itself is faster in one minute than in the
next, the best of two rows may be from different minutes; so overhead and gain are also told turn by turn, as medians of
the ratios of two times in the same turn.
"""

import argparse
import multiprocessing
import os
import sys
from contextlib import ExitStack
from operator import attrgetter, itemgetter
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import prune4rel as p4r
from common import inputs, table, timed

PER_CLUSTER = 150
SMALL = 3000
HEADER = (
    *("workers", "first s", "overhead", "in turn", "s", "overhead", "in turn", "faster", "in turn", "graph"),
    *("tasks", "MB moved", "idle", "start s", "same picks"),
)


class Answer(NamedTuple):
    """Seconds of the first selection and the best of those after it, and what the latter was like."""

    first: float
    later: float
    starting: float
    stats: dict[str, Any]
    picks: NDArray[np.int64]


def run(engine: str, workers: int, n: int, dim: int, times: int, answers: Any) -> None:
    os.environ["PRUNE4REL_THREADS"] = str(workers)
    data: dict[str, Any] = dict(inputs(n, dim, PER_CLUSTER))
    small: dict[str, Any] = {name: array[:SMALL] for name, array in data.items()}
    how: dict[str, Any] = {"ratio": 0.2, "engine": engine, "device": "cpu"}

    def start() -> ExitStack:
        stack = ExitStack()
        if engine == "ray":
            from prune4rel.engines.ray.cluster import connect

            stack.enter_context(connect())
        p4r.select("prune4rel", **small, **how)
        return stack

    starting, stack = timed(start)
    with stack:
        found = [timed(lambda: p4r.select("prune4rel", **data, **how)) for _ in range(times)]
        first, later = found[0], min(found[1:], key=itemgetter(0))
        answers.put(Answer(first[0], later[0], starting, dict(later[1].stats), later[1].indices))


def measure(n: int, dim: int, repeats: int, times: int) -> None:
    rows = [(engine, workers) for workers in (1, 2) for engine in ("local", "ray")]
    spawn = multiprocessing.get_context("spawn")
    turns: dict[tuple[str, int], list[Answer]] = {row: [] for row in rows}
    for turn in range(1, repeats + 1):
        for row in rows:
            answers = spawn.Queue()
            process = spawn.Process(target=run, args=(*row, n, dim, times, answers))
            process.start()
            answer = answers.get()
            process.join()
            turns[row].append(answer)
            told = f"turn {turn} of {repeats}: {row[0]}, {row[1]}: {answer.first:.2f} s, then {answer.later:.2f} s"
            print(told, file=sys.stderr, flush=True)
    lines = [row_of(engine, workers, turns) for engine, workers in rows]
    table(f"{n:,} x {dim}, ratio 0.2, best of {repeats} turns", HEADER, lines)


def row_of(engine: str, workers: int, turns: dict[tuple[str, int], list[Answer]]) -> tuple[Any, ...]:
    mine, local, one = turns[engine, workers], turns["local", workers], turns[engine, 1]
    best, alone = (min(answers, key=attrgetter("later")) for answers in (mine, one))
    facts = best.stats.get("engine", {})

    def ratio(answers: list[Answer], others: list[Answer], which: str = "later") -> tuple[float, float]:
        """How much longer some took than others: best by best, and in the same turn."""
        time_of = attrgetter(which)
        in_turn = median(time_of(a) / time_of(b) for a, b in zip(answers, others, strict=True))
        return min(map(time_of, answers)) / min(map(time_of, others)), in_turn

    def over(which: str) -> list[str]:
        """How much longer than the local engine."""
        return [f"{found - 1:+.0%}" if engine == "ray" else "" for found in ratio(mine, local, which)]

    return (
        f"{engine}, {workers}",
        f"{min(answer.first for answer in mine):.2f}",
        *over("first"),
        f"{best.later:.2f}",
        *over("later"),
        *(f"{found:.2f}x" for found in ratio(one, mine)),
        f"{alone.stats['seconds']['graph'] / best.stats['seconds']['graph']:.2f}x",
        facts.get("tasks", ""),
        f"{(facts['bytes_returned'] + facts['bytes_loaded']) / 1e6:.0f}" if facts else "",
        f"{facts['idle']:.0%}" if facts else "",
        f"{best.starting:.1f}" if facts else "",
        "yes" if np.array_equal(best.picks, turns["local", 1][0].picks) else "NO",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--times", type=int, default=3, help="selections a process, 2 or more")
    options = parser.parse_args()
    measure(options.n, options.dim, options.repeats, options.times)
