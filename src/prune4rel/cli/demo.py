"""``prune4rel demo``: the whole idea in less than a minute, on data that comes with it."""

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from prune4rel.cli import app

STEPS = 400
"""For everybody: 19 epochs of everything, or 45 of a fifth and 10 of warm-up."""

METHODS = ("uniform", "prune4rel/official", "prune4rel/coverage", "prune4rel/label-aware", "small-loss")


@app.command()
def demo(
    *,
    ratio: Annotated[float, Option(help="Share of the examples to keep.")] = 0.2,
    noise: Annotated[float, Option(help="Share of wrong labels.")] = 0.4,
    seeds: Annotated[int, Option(help="How many repeats.")] = 3,
    output: Annotated[Path, Option("--output", "-o", help="The folder everything goes to.")] = Path("prune4rel-demo"),
) -> None:
    """Run everything on scikit-learn's digits with wrong labels, and write a report.

    Without PyTorch it shows what needs none: which labels are wrong, and which examples to keep.
    """
    from importlib.util import find_spec

    if find_spec("torch") is None:
        _without_training(ratio, noise, output)
        return
    from rich.console import Console

    from prune4rel.cli.bar import best_progress
    from prune4rel.cli.run import finish
    from prune4rel.machine import threads
    from prune4rel.pipeline import Config
    from prune4rel.pipeline import run as run_pipeline

    config = Config(
        dataset="digits",
        options={"noise": noise},
        methods=(*METHODS, "everything:1:trust"),
        ratios=(ratio,),
        learners=("sop+", "cross-entropy"),
        warmup_learner="sop+",
        equal_steps=True,
        steps=STEPS,
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
        "(cross-entropy) and one that corrects them (sop+). Beside them stands training on",
        "everything, also by one that selects labels instead of examples (trust). Everybody has",
        f"{STEPS} steps in all, the warm-up included. {repeats}.\n",
    )
    Console(highlight=False).print("\n".join(words), soft_wrap=True)
    listener = best_progress()
    run_pipeline(config, output, progress=listener)
    finish(output, listener)


def _without_training(ratio: float, noise: float, output: Path) -> None:
    """Judge the labels of the digits by their pixels, and pick some to train on."""
    from rich.console import Console

    import prune4rel as p4r
    from prune4rel.cleaning.write import Origin, check_folder
    from prune4rel.cli.tables import print_cleaned, print_list
    from prune4rel.data import read_dataset

    check_folder(output, force=True)
    dataset = read_dataset("digits", None, None, {"noise": noise})
    train = dataset.train
    if train.images is None:
        raise AssertionError("digits are images")
    words = (
        f"Handwritten digits; {noise:.0%} of the training labels are moved to the next class. Which ones are wrong",
        f"is judged by their pixels, and each method keeps {ratio:.0%} of the examples. (Training on them needs",
        "PyTorch: pip install 'prune4rel[train]'.)\n",
    )
    console = Console(highlight=False)
    console.print("\n".join(words), soft_wrap=True, markup=False)
    pixels = train.images[..., 0].reshape(len(train), -1)
    found = p4r.clean(embeddings=pixels.astype("float32"), labels=train.labels, class_names=dataset.class_names)
    rows = []
    for method in METHODS:
        name, _, preset = method.partition("/")
        own: dict[str, Any] = {"preset": preset} if preset else {}
        picked = p4r.select(name, found.signals, ratio=ratio, balanced=True, **own)
        wrong = float((train.labels != train.clean_labels)[picked.indices].mean())
        rows.append((method, f"{len(picked):,}", f"{wrong:.1%}"))
    found.save(output, source=Origin("digits", None, {"noise": noise}, dataset), force=True)
    print_cleaned(found, output)
    console.print()
    print_list(("kept by", "examples", "wrong labels"), rows)
    console.print(f"\nThe report: {(output / 'report.html').resolve()}", soft_wrap=True, markup=False)
