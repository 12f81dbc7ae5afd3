"""``prune4rel demo``: the whole idea in less than a minute, on data that comes with it."""

from pathlib import Path
from typing import Annotated

from typer import Option

from prune4rel.cli import app

METHODS = ("uniform", "prune4rel/official", "prune4rel/coverage", "prune4rel/label-aware", "small-loss")


@app.command()
def demo(
    *,
    ratio: Annotated[float, Option(help="Share of the examples to keep.")] = 0.2,
    noise: Annotated[float, Option(help="Share of wrong labels.")] = 0.4,
    seeds: Annotated[int, Option(help="How many repeats.")] = 3,
    output: Annotated[Path, Option("--output", "-o", help="The folder everything goes to.")] = Path("prune4rel-demo"),
) -> None:
    """Run everything on scikit-learn's digits with wrong labels, and write a report."""
    from rich.console import Console

    from prune4rel.cli.bar import best_progress
    from prune4rel.cli.run import finish
    from prune4rel.machine import threads
    from prune4rel.pipeline import Config
    from prune4rel.pipeline import run as run_pipeline

    config = Config(
        dataset="digits",
        options={"noise": noise},
        methods=METHODS,
        ratios=(ratio,),
        learners=("sop+", "cross-entropy"),
        warmup_learner="sop+",
        seeds=seeds,
        device="cpu",
        parallel=threads(),
        title="Digits with wrong labels: what pruning keeps, and what a learner corrects",
    )
    repeats = "One seed" if seeds == 1 else f"Means over {seeds} seeds"
    words = (
        f"Handwritten digits; {noise:.0%} of the training labels are moved to the next class.",
        f"A small network is warmed up on them, each method keeps {ratio:.0%} of the examples,",
        "and two learners are trained on what it kept: one that trusts the labels",
        f"(cross-entropy) and one that corrects them (sop+). {repeats}.\n",
    )
    Console(highlight=False).print("\n".join(words), soft_wrap=True)
    listener = best_progress()
    run_pipeline(config, output, progress=listener)
    finish(output, listener)
