"""The published tables and pictures, made from the files in results/.

    python benchmarks/results.py            writes the tables into docs/results.md, and the pictures beside it
    python benchmarks/results.py DATA       docs/results.html, too: the report of the whole comparison

DATA is a folder with `cifar-10-batches-py/`, `cifar-100-python/`, `CIFAR-10_human.pt` and `CIFAR-100_human.pt`; the
archive holds no labels.

A table stands between <!-- table NAME --> and <!-- end -->; what is around is written by hand. A test makes the tables
again and compares.
"""

import csv
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from prune4rel.data import Dataset, load_dataset
from prune4rel.recipes.budgets import HEADER as BUDGET_HEADER
from prune4rel.recipes.budgets import tables_of
from prune4rel.recipes.catalogue import get, with_ours
from prune4rel.recipes.cells import ACCURACY, CORRECTED, NOISE, SECONDS, SOURCES, PaperCell
from prune4rel.recipes.compare import average, compare
from prune4rel.recipes.harvest import Finding, entries, kept, picks_of, read_entry
from prune4rel.recipes.jobs import BUDGETS
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
from prune4rel.report import Cell, Story, write_report

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


def budgets(dataset: str, noise: str, steps: int) -> str:
    """Everybody with the same number of steps, subsets and everything; what was not run says so."""
    cells = [cell for cell in get("budgets").cells if (cell.dataset, cell.noise) == (dataset, noise)]
    (table,) = tables_of(cells, kept(RESULTS, f"{BUDGETS}/{dataset}-{noise}-{steps}"))
    return as_table(BUDGET_HEADER, table.rows)


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
        "budgets cifar10n": budgets("cifar10n", "worst", 23_400),
        "budgets cifar100n": budgets("cifar100n", "noisy", 23_400),
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


def story_of(folder: Path, dataset: Dataset) -> Story:
    """Return what an archive tells of one data set, for a report."""
    train = dataset.train
    cells: dict[tuple[str, str, float, int], Cell] = {}
    versions: dict[str, str] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: ("-selection-" in path.stem, path.name)):
        entry, picks = read_entry(path), picks_of(path)
        told = entry.get("training", {})
        curves = told.get("curves", {})
        shares = {name: value / 100 for name, value in entry["numbers"].items() if name != SECONDS}
        key = entry["method"], entry["learner"], entry["ratio"], entry["seed"]
        versions |= entry["selection"]["provenance"]["versions"]
        cells.setdefault(
            key,
            Cell(
                method=entry["method"],
                label=entry["method"],
                learner=entry["learner"],
                ratio=entry["ratio"],
                seed=entry["seed"],
                size=len(picks),
                indices=picks,
                class_counts=tuple(np.bincount(train.labels[picks], minlength=dataset.n_classes).tolist()),
                test_accuracy=shares.get(ACCURACY),
                best_accuracy=told.get("best_accuracy"),
                relabel_accuracy=told.get("relabel_accuracy"),
                self_correct=shares.get(CORRECTED),
                subset_noise=shares.get(NOISE),
                labels_changed=told.get("labels_changed"),
                curve=tuple(
                    {
                        "epoch": epoch,
                        **{name: curve[epoch] for name, curve in curves.items() if curve[epoch] is not None},
                    }
                    for epoch in range(told.get("epochs", 0))
                ),
                seconds={} if "training" not in told.get("seconds", {}) else {"training": told["seconds"]["training"]},
            ),
        )
    trained = [cell for cell in cells.values() if cell.test_accuracy is not None and cell.learner == "sop+"]
    return Story(
        title=f"{folder.name}: what every method came to",
        dataset=folder.name,
        n=len(train),
        class_names=dataset.class_names,
        labels=train.labels,
        clean_labels=train.clean_labels,
        class_counts=tuple(np.bincount(train.labels, minlength=dataset.n_classes).tolist()),
        cells=tuple(sorted(cells.values(), key=lambda cell: (cell.learner != "sop+", -(cell.test_accuracy or 0.0)))),
        spotlight=max(trained, key=lambda cell: (-cell.ratio, cell.test_accuracy or 0.0)) if trained else None,
        environment={**versions, "device": "one NVIDIA H200"},
        configuration=json.dumps({"recipe": "table1 to table4 of prune4rel reproduce", "archive": str(folder.name)}),
        notes=("Made from the archive; warm-ups, models and corrected labels stayed where they were made.",),
    )


def write_page(data: Path) -> None:
    """Write the report of the whole comparison, a story a data set."""
    stories = []
    for folder in sorted({path.parent for path in RESULTS.rglob("*.json")} - set(STRONG.parent.rglob("*"))):
        one = read_entry(next(folder.glob("*.json")))
        options = SOURCES[one["dataset"]].labels[one["noise"]][one["labels"]]
        stories.append(story_of(folder, load_dataset(one["dataset"], data, **options)))
    write_report(stories, PAGE.with_suffix(".html"), force=True)


def wrong_picks_and_accuracy(learner: str, ratio: float) -> list[tuple[str, float, float]]:
    """Per method of Table 1: test accuracy and wrong labels among the picks, means over seeds, in per cent."""
    found = kept(RESULTS)
    rows = []
    for method in dict.fromkeys(cell.method for cell in with_ours(get("table1"))):
        some = [one for one in found if one.cell == PaperCell(*SETTING, learner, method, ratio)]
        accuracy, wrong = average(some, ACCURACY), average(some, NOISE)
        if accuracy is not None and wrong is not None:
            rows.append((method, accuracy.mean, wrong.mean))
    return rows


def accuracy_by_budget(dataset: str, noise: str) -> dict[str, list[tuple[int, float]]]:
    """By contender: how many steps everybody had, and what it came to with them, in the mean over seeds."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for folder in (RESULTS / BUDGETS).glob(f"{dataset}-{noise}-*"):
        for cell in get("budgets").cells:
            some = [one for one in kept(RESULTS, f"{BUDGETS}/{folder.name}") if one.cell == cell]
            if (found := average(some, ACCURACY)) is not None:
                share = "" if cell.ratio == 1 else f"{100 * cell.ratio:g} % by "
                name = f"{share}{cell.method}, {cell.learner}"
                lines.setdefault(name, []).append((int(folder.name.rpartition("-")[2]), found.mean))
    return {name: sorted(points) for name, points in lines.items()}


def draw_budgets() -> None:
    """Draw accuracy against budget, a panel a data set, where there are results."""
    from matplotlib import pyplot as plt

    found = {title: accuracy_by_budget(*title) for title in (("cifar10n", "worst"), ("cifar100n", "noisy"))}
    found = {title: lines for title, lines in found.items() if lines}
    if not found:
        return
    figure, panels = plt.subplots(1, len(found), figsize=(6.5 * len(found), 4.2), layout="constrained", squeeze=False)
    for (title, lines), axes in zip(found.items(), panels.flat, strict=True):
        for name, points in lines.items():
            axes.plot(*zip(*points, strict=True), "o-" if "everything" in name else "s--", label=name)
        axes.set(xlabel="steps in all, warm-up and looking included", ylabel="test accuracy, %", title=" ".join(title))
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(PAGE.with_name("results-budgets.png"), dpi=110)
    plt.close(figure)


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

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    below = []
    for name, accuracy, wrong in wrong_picks_and_accuracy("sop+", 0.2):
        if accuracy < LOWEST_DRAWN:
            below.append(f"{name} {accuracy:.1f} ({wrong:.0f} % wrong)")
            continue
        own = name.startswith(("Ours", "Prune4ReL"))
        axes.plot(wrong, accuracy, "o" if own else "s", color="tab:red" if own else "tab:gray")
        beside = (6, -11 if name == COVERAGE else 3)
        axes.annotate(name, (wrong, accuracy), xytext=beside, textcoords="offset points", fontsize=8)
    axes.set(xlabel="wrong labels among the picks, %", ylabel="test accuracy, %", xlim=(-2, 52))
    axes.set_ylim(bottom=LOWEST_DRAWN)
    axes.text(0.01, 0.02, f"below: {', '.join(below)}", transform=axes.transAxes, fontsize=8)
    axes.set_title("CIFAR-10N worst, SOP+ on a fifth of the examples; means over seeds", fontsize=10)
    axes.grid(visible=True, alpha=0.3)
    figure.savefig(PAGE.with_name("results-picks.png"), dpi=110)
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
    draw_budgets()
    if len(sys.argv) > 1:
        write_page(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
