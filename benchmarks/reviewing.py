"""Reviewing by simulation: what decisions are worth, order by order, and whether estimates of what is left hold.

    python benchmarks/reviewing.py orders VECTORS -o reviewing.jsonl [--rows 3000] [--seeds 0 1] [--only cifar10 ...]
    python benchmarks/reviewing.py left VECTORS [--rows 3000] [--seeds 0 1 2 3]      intervals that hold the truth
    python benchmarks/reviewing.py show reviewing.jsonl [--figure docs/review-orders.png]

`left` and `show` write their tables into docs/review.md.

VECTORS is a folder that `benchmarks/vectors.py` has written; what is missing there is left out and named. Wide vectors
go in by 256 principal components. Labels are
judged as `prune4rel clean` does; a person is simulated who always knows the true label and follows one order. After
every so many decisions the set is judged again with them, as `prune4rel clean --decisions` does, and measured: labels
right in the whole set (decided ones, suggestions, and what is left as given), and test accuracy of a logistic
regression on these labels (standardised, 200 principal components, C = .01). Two ways: `once`, the order is that of
the first judgement, as when one session is worked through; `rounds`, it is made anew whenever the set is judged again.
cleanlab's ActiveLab gets the same probabilities, and the person's labels as those of a second annotator; it is left
out, and named, where cleanlab is not installed.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from common import Array, markdown
from prune4rel.judging import judge
from prune4rel.judging.similar import Similar, find_similar, unit_rows
from prune4rel.labels import Labels
from prune4rel.review.left import Expectation, ScoreBins
from prune4rel.review.order import ORDERS, order_rows

CELLS = (
    ("cifar10.lite0", "worst"),
    ("cifar10.lite0", "aggre"),
    ("cifar10.lite0", "random1"),
    ("cifar100.lite0", "noisy"),
    ("noisyag.tfidf", "noisy"),
    ("noisyag.wordllama", "noisy"),
    ("noisyag.minilm", "noisy"),
)
STEPS = (0, 50, 100, 200, 400, 800)
SHOWN = (0, 100, 200, 400, 800)
NAMES = {"cifar10": "CIFAR-10N", "cifar100": "CIFAR-100N", "noisyag": "NoisyAG"}
PAGE = Path(__file__).parent.parent / "docs" / "review.md"
PLACE = re.compile(r"(<!-- table (?P<name>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
ACTIVELAB = "ActiveLab"
LEFT_ORDERS = ("suspicion", "worth", "random")
COMPONENTS, STRENGTH, WIDEST = 200, 0.01, 256


@dataclass(frozen=True)
class Cell:
    """Embeddings with given and true labels, and a test split with true ones."""

    name: str
    rows: Array
    given: Array
    true: Array
    test_rows: Array
    test_true: Array


def cells(folder: Path, most: int, seed: int, only: list[str]) -> Iterator[Cell]:
    for stem, kind in CELLS:
        name = f"{stem} {kind}"
        if not any(word in name for word in only):
            continue
        if not (folder / f"{stem}.test.npy").exists():
            print(f"{stem} left out: not in {folder}")
            continue
        short = stem.partition(".")[0]
        with np.load(folder / f"{short}.labels.npz") as here, np.load(folder / f"{short}.test.labels.npz") as there:
            given, true, test_true = here[kind], here["clean"], there["clean"]
        rows, test_rows = np.load(folder / f"{stem}.npy"), np.load(folder / f"{stem}.test.npy")
        some = np.sort(np.random.default_rng(seed).permutation(len(rows))[:most])
        rows, test_rows = _narrow(rows[some], test_rows)
        yield Cell(name, rows, given[some].astype(np.int64), true[some], test_rows, test_true[: len(test_rows)])


def _narrow(rows: Array, test_rows: Array) -> tuple[Array, Array]:
    """Wide vectors by their principal components: judging hundreds of times over takes a fraction of the time."""
    from sklearn.decomposition import PCA

    if rows.shape[1] <= WIDEST:
        return rows, test_rows
    pca = PCA(WIDEST, svd_solver="covariance_eigh").fit(rows)
    return pca.transform(rows).astype(np.float32), pca.transform(test_rows).astype(np.float32)


def judged(cell: Cell, similar: Similar, decided: Array, seed: int) -> tuple[Labels, Array]:
    """Judge with decisions; return the table, and (n, C) probabilities."""
    classes = int(max(cell.given.max(), cell.true.max())) + 1
    found = judge(cell.rows, cell.given, n_classes=classes, decided=decided, similar=similar, seed=seed)
    labels = Labels(
        given_label=cell.given,
        predicted_label=found.predicted_label,
        label_score=found.label_score,
        is_label_issue=found.is_label_issue,
        confidence=found.confidence,
        class_names=tuple(map(str, range(classes))),
        verified=decided >= 0,
        decided_label=decided,
        noise_rate=None if np.isnan(found.noise_rate) else found.noise_rate,  # where all is decided
        noise_matrix=found.noise_matrix,
    )
    return labels, found.probabilities


def active_lab() -> Callable[[Labels, Array, Array], Array] | None:
    try:
        scores = import_module("cleanlab.multiannotator").get_active_learning_scores
    except ModuleNotFoundError as error:
        print(f"{ACTIVELAB} left out: {error}")
        return None

    def order(labels: Labels, probabilities: Array, decided: Array) -> Array:
        votes = np.where(decided >= 0, decided.astype(float), np.nan)
        both = np.column_stack([labels.given_label.astype(float), votes]) if (decided >= 0).any() else None
        return np.argsort(
            scores(labels.given_label[:, None] if both is None else both, np.asarray(probabilities, float))[0],
            kind="stable",
        )

    return order


def head(cell: Cell) -> Callable[[Array], float]:
    """Return what tells the test accuracy of a head trained on some labels."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(cell.rows)
    pca = PCA(min(COMPONENTS, cell.rows.shape[1]), svd_solver="covariance_eigh").fit(scaler.transform(cell.rows))
    train, test = (pca.transform(scaler.transform(each)).astype(np.float32) for each in (cell.rows, cell.test_rows))

    def accuracy(labels: Array) -> float:
        model = LogisticRegression(C=STRENGTH, max_iter=100, tol=1e-3).fit(train, labels)
        return float((model.predict(test) == cell.test_true).mean())

    return accuracy


def simulate(cell: Cell, seed: int, way: str, order: str, lab: Any, begun: Any) -> Iterator[dict[str, Any]]:
    """Follow one order; a line for every step."""
    similar, first, accuracy = begun
    decided = np.full(len(cell.given), -1, dtype=np.int64)
    (labels, probabilities), queue = first, None
    for step in STEPS:
        missing = step - int((decided >= 0).sum())
        if missing:
            if queue is None or way == "rounds":
                if order == ACTIVELAB:
                    queue = lab(labels, probabilities, decided)
                else:
                    near = similar.indices, similar.similarities
                    queue = order_rows(order, labels, decided >= 0, near, seed=seed)
            rows = queue[decided[queue] < 0][:missing]
            decided[rows] = cell.true[rows]
            labels, probabilities = judged(cell, similar, decided, seed)
        corrected = labels.corrected_label
        right = float((corrected == cell.true).mean())
        yield {"decisions": step, "right": right, "head": accuracy(corrected)}


def orders(folder: Path, most: int, seeds: list[int], only: list[str], out: Path, ways: list[str]) -> None:
    lab = active_lab()
    names = [*(name for name in ORDERS if name != "row"), *([ACTIVELAB] if lab else [])]
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    done = {tuple(json.loads(line)[key] for key in ("cell", "n", "seed", "way", "order")) for line in lines}
    for seed in seeds:
        for cell in cells(folder, most, seed, only):
            begun: Any = None
            for way in ways:
                for order in names:
                    key = (cell.name, len(cell.given), seed, way, order)
                    if key in done:
                        continue
                    if begun is None:
                        similar = find_similar(unit_rows(cell.rows))
                        begun = similar, judged(cell, similar, np.full(len(cell.given), -1), seed), head(cell)
                    about = dict(zip(("cell", "n", "seed", "way", "order"), key, strict=True))
                    steps = [about | each for each in simulate(cell, seed, way, order, lab, begun)]
                    with out.open("a", encoding="utf-8") as file:
                        file.writelines(json.dumps(each) + "\n" for each in steps)
                    ends = "; ".join(f"{each['decisions']}: {each['right']:.4f} {each['head']:.4f}" for each in steps)
                    print(f"{cell.name} seed {seed} {way} {order}: {ends}", flush=True)


def left(folder: Path, most: int, seeds: list[int], only: list[str]) -> str:
    """How often the interval of what is left holds the truth: in the whole set, and above and below a place in a list.

    The scores stay those of the first judgement, as they do on the page; a person goes down one order.
    """
    body = []
    everything: list[tuple[str, str, int, str, bool, float, float]] = []
    for seed in seeds:
        for cell in cells(folder, most, seed, only):
            similar = find_similar(unit_rows(cell.rows))
            labels, _ = judged(cell, similar, np.full(len(cell.given), -1), seed)
            bins = ScoreBins(labels.label_score)
            near, n, wrong = (similar.indices, similar.similarities), len(cell.given), cell.given != cell.true
            for order in LEFT_ORDERS:
                queue = order_rows(order, labels, np.zeros(n, bool), near, seed=seed)
                for step in (*STEPS[:-1], 800, min(1500, n // 2)):
                    seen = np.zeros(n, dtype=np.bool_)
                    seen[queue[:step]] = True
                    expectation = Expectation(bins, seen, seen & wrong)
                    middle = (step + n) // 2
                    parts = {"all": queue[step:], "above": queue[step:middle], "below": queue[middle:]}
                    for part, rows in parts.items():
                        told, true = expectation.among(rows), int(wrong[rows].sum())
                        held = told.low <= true <= told.high
                        wide = (told.high - told.low) / n
                        everything.append((cell.name, order, step, part, held, abs(told.expected - true) / n, wide))
    for at, what in ((0, "set"), (1, "order"), (2, "decisions"), (3, "part")):
        for value in dict.fromkeys(row[at] for row in everything):
            some = [row for row in everything if row[at] == value]
            body.append([f"{what} {value}", str(len(some)), *_means(some)])
    body.append(["**all**", str(len(everything)), *_means(everything)])
    header = ["", "cases", "truth within the range, %", "estimate off by, % of the set", "width, % of the set"]
    return markdown(header, body)


def _means(rows: list[tuple[Any, ...]]) -> tuple[str, str, str]:
    held, off, wide = (float(np.mean([row[at] for row in rows])) for at in (4, 5, 6))
    return f"{100 * held:.1f}", f"{100 * off:.2f}", f"{100 * wide:.2f}"


Curves = dict[str, dict[str, Array]]


def curves(lines: list[dict[str, Any]], way: str, what: str) -> Curves:
    """Mean over seeds: data set, order, (steps,); every data set is the mean of its cells."""
    found: Curves = {}
    sets = dict.fromkeys(line["cell"].partition(".")[0] for line in lines)
    for name in sets:
        mine = [line for line in lines if line["way"] == way and line["cell"].startswith(f"{name}.")]
        for order in dict.fromkeys(line["order"] for line in mine):
            some = [line for line in mine if line["order"] == order]
            means = [
                np.mean(
                    [
                        np.mean([line[what] for line in some if (line["cell"], line["decisions"]) == (cell, step)])
                        for cell in dict.fromkeys(line["cell"] for line in some)
                    ]
                )
                for step in STEPS
            ]
            found.setdefault(name, {})[order] = np.array(means)
    return found


def show(path: Path, figure: Path | None) -> dict[str, str]:
    """Return the tables of the page, by name: of each way, the share of labels right and a head's accuracy."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    made = {}
    for way in dict.fromkeys(line["way"] for line in lines):
        found = {what: curves(lines, way, what) for what in ("right", "head")}
        body = []
        for name in found["right"]:
            for order in found["right"][name]:
                told = [f"{NAMES[name]}, {order}"]
                for what, shown in (("right", SHOWN), ("head", SHOWN[1:])):
                    values = 100 * found[what][name][order]
                    told += [*(f"{values[STEPS.index(step)]:.1f}" for step in shown), f"{values[1:].mean():.2f}"]
                body.append(told)
        gap = [""] * len(SHOWN)
        right, accuracy = (_mean(found[what]) for what in ("right", "head"))
        for order in right:
            ends = [f"**{100 * each[order][1:].mean():.2f}**" for each in (right, accuracy)]
            body.append([f"**mean, {order}**", *gap, ends[0], *gap[1:], ends[1]])
        header = ["", *(f"right after {step}" for step in SHOWN), "mean", *(f"head after {step}" for step in SHOWN[1:])]
        made[way] = markdown([*header, "mean"], body)
    if figure is not None:
        draw(lines, figure)
    return made


def _mean(found: Curves) -> dict[str, Array]:
    shared = set.intersection(*(set(by_order) for by_order in found.values()))
    return {
        order: np.mean([by_order[order] for by_order in found.values()], axis=0)
        for order in next(iter(found.values()))
        if order in shared
    }


def draw(lines: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    styles = {
        "worth": ("#0b5fae", "o", "-"),
        "doubt": ("#17652f", "s", "-"),
        "suspicion": ("#b45309", "^", "--"),
        ACTIVELAB: ("#7c3aed", "D", "-."),
        "random": ("#6b7280", "x", ":"),
    }
    figure, axes = plt.subplots(2, len(NAMES), figsize=(11, 6.2), sharex=True, layout="constrained")
    for at, (what, title) in enumerate((("right", "labels right, %"), ("head", "test accuracy of a head, %"))):
        found = curves(lines, "rounds", what)
        for place, name in enumerate(NAMES):
            axis: Any = axes[at][place]
            for order, (colour, marker, line) in styles.items():
                if order in found.get(name, {}):
                    axis.plot(STEPS, 100 * found[name][order], line, color=colour, marker=marker, ms=4, label=order)
            axis.grid(alpha=0.25)
            axis.set_title(NAMES[name] if at == 0 else "")
            axis.set_xlabel("decisions" if at == 1 else "")
            axis.set_ylabel(title if place == 0 else "")
    axes[0][0].legend(frameon=False)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def into_page(made: dict[str, str]) -> None:
    """Put tables into the page of the docs."""
    page = PAGE.read_text(encoding="utf-8")
    made = {name: f"{text}\n" for name, text in made.items()}
    PAGE.write_text(
        PLACE.sub(lambda at: f"{at[1]}\n{made[at['name']]}\n{at[3]}" if at["name"] in made else at[0], page),
        encoding="utf-8",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("orders", "left", "show"))
    parser.add_argument("path", type=Path, help="VECTORS, or the lines to show")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--ways", nargs="+", choices=("once", "rounds"), default=["once", "rounds"])
    parser.add_argument("--out", "-o", type=Path, default=Path("reviewing.jsonl"))
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    if given.what == "orders":
        orders(given.path, given.rows, given.seeds, given.only, given.out, given.ways)
    elif given.what == "left":
        into_page({"left": left(given.path, given.rows, given.seeds, given.only)})
    else:
        into_page(show(given.path, given.figure))


if __name__ == "__main__":
    main()
