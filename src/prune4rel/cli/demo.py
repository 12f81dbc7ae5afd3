"""``prune4rel demo``: the tool at work on data that comes with it."""

from typing import Annotated

from typer import Option

from prune4rel.cli import app

RUNS = (
    ("at random", None),
    ("prune4rel, preset paper", "paper"),
    ("prune4rel, preset official", "official"),
    ("prune4rel, preset coverage", "coverage"),
    ("prune4rel, preset label-aware", "label-aware"),
)


@app.command()
def demo(
    *,
    ratio: Annotated[float, Option(help="Share of the examples to keep.")] = 0.2,
    noise: Annotated[float, Option(help="Share of wrong labels.")] = 0.4,
    seeds: Annotated[int, Option(help="How many times, with other noise each time.")] = 3,
) -> None:
    """Select from scikit-learn's digits with wrong labels, with every preset and at random."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    import prune4rel as p4r
    from prune4rel.cli.bar import best_progress
    from prune4rel.demo import digits_task
    from prune4rel.errors import InputError

    if not (0 < ratio <= 1 and 0 <= noise < 1 and seeds >= 1):
        raise InputError("--ratio must lie in (0, 1], --noise in [0, 1), --seeds must be at least 1")
    console = Console(highlight=False)
    console.print(
        f"Handwritten digits, {noise:.0%} of the labels moved to the next class. A small network is warmed up on them\n"
        f"for ten epochs; each method then keeps {ratio:.0%} of the examples, class-balanced, and a plain logistic\n"
        f"regression is trained on what it kept. Mean over {seeds} seeds.\n",
        soft_wrap=True,
    )
    results: dict[str, list[tuple[float, float]]] = {name: [] for name, _ in RUNS}
    with best_progress().task("demo", total=seeds * len(RUNS)) as advance:
        for seed in range(seeds):
            task = digits_task(noise, seed)
            for name, preset in RUNS:
                if preset is None:
                    n = len(task.signals)
                    picks = np.random.default_rng(seed).choice(n, size=round(ratio * n), replace=False)
                else:
                    picks = p4r.select("prune4rel", task.signals, ratio=ratio, balanced=True, preset=preset).indices
                results[name].append((task.noise_in(picks), task.accuracy_from(picks)))
                advance(1)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title, side in (("kept", "left"), ("wrong labels kept", "right"), ("test accuracy", "right")):
        table.add_column(title, justify=side)  # type: ignore[arg-type]
    for name, pairs in results.items():
        wrong, accuracy = np.mean(pairs, axis=0)
        table.add_row(name, f"{wrong:.1%}", f"{accuracy:.1%}")
    console.print(table)
    console.print(
        "\nYour own arrays:  prune4rel select --embeddings E.npy --probabilities P.npy --labels y.npy \\",
        soft_wrap=True,
    )
    console.print("                      --ratio 0.2 --balanced --output subset.parquet")
