"""The published tables and pictures, made from the files in results/.

    python benchmarks/results.py            writes the tables into docs/results.md, and the pictures beside it

A table stands between <!-- table NAME --> and <!-- end -->; what is around is written by hand. A test makes the tables
again and compares.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from prune4rel.recipes.catalogue import get, with_ours
from prune4rel.recipes.cells import ACCURACY, CORRECTED, NOISE, SECONDS, PaperCell
from prune4rel.recipes.compare import average, compare
from prune4rel.recipes.harvest import Finding, entries, kept, picks_of, read_entry
from prune4rel.recipes.write import (
    BIN_HEADER,
    HEADER,
    Bin,
    Notes,
    as_table,
    bin_rows,
    bin_sentence,
    cells_of,
    with_spread,
)

HOME = Path(__file__).parent.parent
RESULTS, PAGE = HOME / "results", HOME / "docs" / "results.md"
STRONG, OWN_TAU = RESULTS / "experiments" / "strong-view", RESULTS / "experiments" / "auto-tau"
SETTING = ("cifar10n", "worst")
COVERAGE = "Ours (coverage)"
LOWEST_DRAWN = 60
"""Accuracy from which the picture goes; what is far below would squeeze all others together."""

PLACE = re.compile(r"(<!-- table (?P<name>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def beside_the_paper(
    recipe: str, findings: Iterable[Finding], *, ratio: float, learner: str | None = None, only_run: bool = False
) -> str:
    """One block of a recipe: ours, the paper's, the difference, and whether the order agrees."""
    chosen = get(recipe)
    cells = [
        cell
        for cell in with_ours(chosen)
        if (cell.dataset, cell.noise, cell.ratio) == (*SETTING, ratio) and learner in (cell.learner, None)
    ]
    (block,) = compare(chosen, cells, findings)
    notes = Notes()
    rows = [cells_of(block, row, notes) for row in block.rows if row.ours or not only_run]
    return "\n\n".join([as_table(HEADER, rows), *([block.order.sentence] if block.order.pairs else []), *notes.lines()])


def wrong_labels(findings: Sequence[Finding], *, only_run: bool = False) -> str:
    """Table 4: ours with the paper's in brackets, a column a ratio."""
    chosen = get("table4")
    cells = [cell for cell in chosen.cells if (cell.dataset, cell.noise) == SETTING]
    blocks = compare(chosen, cells, findings)
    rows = []
    for number, row in enumerate(blocks[0].rows):
        if only_run and row.ours is None:
            continue
        said = [row.cell.method]
        for block in blocks:
            one = block.rows[number]
            ours = "not run" if one.ours is None else with_spread(one.ours)
            said.append(f"{ours} ({one.paper.mean:.1f})" if one.paper else ours)
        rows.append(said)
    return as_table(["method", *(f"{block.rows[0].cell.ratio:g}" for block in blocks)], rows)


def what_became_of_wrong_labels(archives: dict[str, Path], learner: str, ratio: float) -> str:
    """Per method: accuracy, wrong labels among the picks, how many of these the model puts right, and of all labels."""
    rows = []
    for remark, archive in archives.items():
        trained = [e for e in entries(archive) if "training" in e and (e["learner"], e["ratio"]) == (learner, ratio)]
        for method in dict.fromkeys(e["method"] for e in trained):
            some = [e for e in trained if e["method"] == method]
            found = [f for f in kept(archive) if f.cell == PaperCell(*SETTING, learner, method, ratio)]
            values = [average(found, metric) for metric in (ACCURACY, NOISE, CORRECTED)]
            relabelled = fmean(100 * e["training"]["relabel_accuracy"] for e in some)
            said = [with_spread(value) if value else "-" for value in values]
            rows.append([method + remark, *said, f"{relabelled:.1f}"])
    rows.sort(key=lambda row: -float(row[1].split()[0]))
    header = [
        "method",
        "test accuracy",
        "wrong labels among the picks",
        "of these corrected",
        "whole set labelled right",
    ]
    return as_table([f"{name}, %" if number else name for number, name in enumerate(header)], rows)


def two_gains(learner: str, ratio: float) -> str:
    """Seed by seed, the paper's gain beside the objective's: what they pick, and what comes of it."""
    found = {}
    for path in (RESULTS / "-".join(SETTING)).glob(f"*-{ratio:g}-{learner}-seed*.json"):
        entry = read_entry(path)
        found[entry["method"], entry["seed"]] = picks_of(path), entry
    rows = []
    for seed in sorted(seed for method, seed in found if method == COVERAGE):
        (picks, paper), (others, ours) = found["Prune4ReL_B", seed], found[COVERAGE, seed]
        warm_ups = {entry["selection"]["provenance"]["sha256"]["embeddings"] for entry in (paper, ours)}
        common = len(np.intersect1d(picks, others)) / len(picks)
        reached = [entry["numbers"][ACCURACY] for entry in (paper, ours)]
        rows.append(
            [
                str(seed),
                "yes" if len(warm_ups) == 1 else "no",
                " and ".join(dict.fromkeys(f"{100 * e['selection']['stats']['isolated']:.1f}" for e in (paper, ours))),
                f"{100 * common:.1f}",
                *(f"{accuracy:.1f}" for accuracy in reached),
                f"{reached[1] - reached[0]:+.1f}",
            ]
        )
    header = ["seed", "same warm-up", "without a neighbour, %", "picks in common, %"]
    return as_table([*header, "Prune4ReL_B", COVERAGE, "difference"], rows)


def selection_times(archives: Iterable[Path], ratio: float) -> str:
    """How long each method took to select, from signals to picks."""
    found = {
        e["method"]: e["numbers"][SECONDS]
        for archive in archives
        for e in entries(archive)
        if "training" not in e and e["ratio"] == ratio
    }
    rows = [[method, f"{seconds:.3f}"] for method, seconds in sorted(found.items(), key=lambda pair: pair[1])]
    return as_table(["method", "seconds"], rows)


def read_bins() -> list[Bin]:
    """Figure 2, as `prune4rel reproduce fig2` wrote it."""
    with (RESULTS / "fig2.csv").open(encoding="utf-8", newline="") as file:
        return [
            Bin(float(row["low"]), float(row["high"]), int(row["examples"]), float(row["mean"]), float(row["accuracy"]))
            for row in csv.DictReader(file)
        ]


def tables() -> dict[str, str]:
    """All tables of the page, by name."""
    found, bins = kept(RESULTS), read_bins()
    return {
        "sop+ 0.2": beside_the_paper("table1", found, learner="sop+", ratio=0.2),
        "sop+ 0.4": beside_the_paper("table1", found, learner="sop+", ratio=0.4, only_run=True),
        "dividemix 0.2": beside_the_paper("table1", found, learner="dividemix", ratio=0.2, only_run=True),
        "plain and re-labeling": beside_the_paper("table2", found, ratio=0.2),
        "confidences": beside_the_paper("table3", found, ratio=0.2),
        "presets' own tau": beside_the_paper("table1", kept(OWN_TAU), learner="sop+", ratio=0.2, only_run=True),
        "corrected": what_became_of_wrong_labels({"": RESULTS, ", its own tau": OWN_TAU}, "sop+", 0.2),
        "two gains": two_gains("sop+", 0.2),
        "wrong labels": wrong_labels(found),
        "wrong labels, strong view": wrong_labels(kept(STRONG), only_run=True),
        "selection times": selection_times([STRONG, RESULTS], 0.8),
        "bins": f"{as_table(BIN_HEADER, bin_rows(bins))}\n\n{bin_sentence(bins)}",
    }


def filled(page: str) -> str:
    """Return the page with its tables made anew."""
    made = tables()
    return PLACE.sub(lambda found: f"{found[1]}\n{made[found['name']]}\n\n{found[3]}", page)


def draw() -> None:
    """Draw the pictures: accuracy by epoch, and figure 2."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9.5, 4.5), layout="constrained")
    drawn = {(cell.learner, cell.method) for cell in with_ours(get("table1"))}
    some = [e for e in entries(RESULTS) if "training" in e and e["ratio"] == 0.2 and e["seed"] == 0]
    some = [e for e in some if (e["learner"], e["method"]) in drawn]
    some.sort(key=lambda e: -e["numbers"][ACCURACY])
    for entry, colour in zip(some, mpl.colormaps["tab20"](range(len(some))), strict=True):
        curve = [(epoch + 1, 100 * a) for epoch, a in enumerate(entry["training"]["curves"]["test_accuracy"]) if a]
        dashes = "-" if entry["learner"] == "sop+" else "--"
        last = entry["numbers"][ACCURACY]
        name = f"{entry['method']}, {entry['learner']}: {last:.1f}{'' if last > LOWEST_DRAWN else ' (below)'}"
        axes.plot(*zip(*curve, strict=True), dashes, color=colour, label=name)
    axes.set(xlabel="epoch", ylabel="test accuracy, %", title="CIFAR-10N worst, 20 % of the examples, seed 0")
    axes.set_ylim(bottom=LOWEST_DRAWN)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(PAGE.with_name("results-curves.png"), dpi=110)
    plt.close(figure)

    figure, axes = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
    bins = read_bins()
    axes.plot([each.confidence for each in bins], [100 * each.accuracy for each in bins], "o-")
    axes.set(xscale="log", xlabel="neighbourhood confidence, mean of the bin", ylabel="re-labeling accuracy, %")
    axes.grid(visible=True, alpha=0.3)
    figure.savefig(PAGE.with_name("results-bins.png"), dpi=110)
    plt.close(figure)


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw()


if __name__ == "__main__":
    main()
