"""Judging labels beside its peers: wrong labels found, labels right after correcting, noise rate, calibration.

    python benchmarks/judging.py VECTORS [--rows 4000] [--seeds 0] [--only cifar ...] [--peers] [-o judging.json]
    python benchmarks/judging.py VECTORS --synthetic             without real vectors

VECTORS is a folder that `benchmarks/vectors.py` has written; what is missing there is left out and named. Every cell
is a set of embeddings with given and true labels; judging sees the given ones. Peers, on the same embeddings:
out-of-fold logistic regression (C tuned by its log-loss on given labels) and, if it is installed, cleanlab:
`find_label_issues` on these probabilities and `CleanLearning`, the better of the two cell by cell.

Columns: wrong = share of wrong labels; AP = average precision for wrong labels; given, right = share labelled right
before and after correcting; F1 = of the flag; flagged = share flagged; rate = estimated noise rate; ECE = expected
calibration error of the confidence of all predictions, and of suggestions (flagged ones) alone, 15 bins.
Cells marked * had no part in choosing the procedure.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from common import Array, table
from prune4rel.judging import judge
from prune4rel.noise import asymmetric, instance_dependent, symmetric

BINS = 15
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


def real_cells(folder: Path, rows: int, seed: int) -> Iterator[Cell]:
    """Vectors of real data: with people's errors, without errors, and with errors made up."""
    noises = {
        "noisyag.tfidf": ("noisy", "clean", "symmetric .03", "symmetric .4", "instance .2*"),
        "noisyag.wordllama": ("noisy", "clean", "symmetric .2"),
        "noisyag.minilm": ("noisy*", "clean*", "next .3*"),
        "cifar10.lite0": (
            *("worst", "aggre", "random1*", "clean", "symmetric .03", "symmetric .2", "symmetric .6", "next .35"),
            *("instance .3*", "symmetric .1*"),
        ),
        "cifar100.lite0": ("noisy", "clean*", "symmetric .1", "next .3*"),
    }
    for name, kinds in noises.items():
        if not (folder / f"{name}.npy").exists():
            print(f"{name} left out: no {name}.npy in {folder}")
            continue
        embeddings = np.load(folder / f"{name}.npy", mmap_mode="r")
        with np.load(folder / f"{name.partition('.')[0]}.labels.npz") as file:
            stored = dict(file)
        some = np.sort(np.random.default_rng(seed).permutation(len(embeddings))[:rows])
        yield from _with_noises(
            name, np.asarray(embeddings[some]), {k: v[some] for k, v in stored.items()}, kinds, seed
        )


def small_cells(seed: int) -> Iterator[Cell]:
    """Make cells of the sets that come with scikit-learn."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine

    for name, load, kinds in (
        ("digits", load_digits, ("clean", "symmetric .05", "symmetric .4", "next .3*", "instance .2")),
        ("breast cancer", load_breast_cancer, ("clean", "symmetric .02", "symmetric .2", "symmetric .35*")),
        ("wine", load_wine, ("clean*", "symmetric .2")),
    ):
        rows, true = load(return_X_y=True)
        rows = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-9)
        yield from _with_noises(name, rows.astype(np.float32), {"clean": true.astype(np.int64)}, kinds, seed)


def made_cells(rows: int, seed: int) -> Iterator[Cell]:
    """Gaussian mixtures: strong and weak features, few and many classes, even and long-tailed."""
    for name, classes, width, distance, tail, kinds in (
        ("strong, 10 classes", 10, 64, 5.0, 1.0, ("clean", "symmetric .01", "symmetric .3", "next .4")),
        ("middling, 10 classes", 10, 64, 2.6, 1.0, ("clean", "symmetric .05", "symmetric .3", "instance .3*")),
        ("weak, 8 classes", 8, 64, 1.5, 1.0, ("clean", "symmetric .2", "next .2*", "symmetric .03")),
        ("weak, 2 classes", 2, 32, 1.2, 1.0, ("clean*", "symmetric .2", "symmetric .05*")),
        ("long tail, 20 classes", 20, 64, 4.0, 50.0, ("clean", "symmetric .2", "instance .2*")),
        ("100 classes", 100, 128, 4.0, 1.0, ("clean", "symmetric .3", "next .2*")),
        ("300 classes", 300, 128, 5.0, 1.0, ("symmetric .2*",)),
        ("nothing but noise", 10, 32, 0.0, 1.0, ("clean*",)),
    ):
        rng = np.random.default_rng([seed, classes, int(10 * distance)])
        shares = np.exp(-np.linspace(0, np.log(tail), classes))
        true = rng.choice(classes, rows, p=shares / shares.sum())
        parts = rng.integers(0, 2, rows)  # two clusters a class: no head sees everything
        centres = rng.normal(size=(classes, width))
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        aside = 0.5 * rng.normal(size=(2, classes, width)) / width**0.5
        made = distance * (centres[true] + aside[parts, true]) + rng.standard_t(6, size=(rows, width))
        yield from _with_noises(name, made.astype(np.float32), {"clean": true}, kinds, seed)


def _with_noises(name: str, rows: Array, stored: dict[str, Array], kinds: tuple[str, ...], seed: int) -> Iterator[Cell]:
    true = stored["clean"]
    classes = int(true.max()) + 1
    for word in kinds:
        kind, _, rate = word.rstrip("*").partition(" ")
        if kind == "symmetric":
            given = symmetric(true, float(rate), n_classes=classes, per_class=False, seed=seed)
        elif kind == "next":
            given = asymmetric(true, float(rate), n_classes=classes, per_class=False, seed=seed)
        elif kind == "instance":
            given = instance_dependent(true, float(rate), features=rows, n_classes=classes, per_class=False, seed=seed)
        else:
            given = stored[kind]
        yield Cell(f"{name}: {word.rstrip('*')}", rows, given, true, word.endswith("*"))


def ours(cell: Cell) -> Found:
    found = judge(cell.embeddings, cell.given)
    return Found(1 - found.label_score, found.is_label_issue, found.predicted_label, found.confidence, found.noise_rate)


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
        "head right": float(right.mean()),
    }


def calibration_error(confidence: Array, right: Array) -> float:
    if not len(right):
        return float("nan")
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    off = np.bincount(bins, weights=confidence - right, minlength=BINS)
    return float(np.abs(off).sum() / len(right))


def all_cells(folder: Path | None, rows: int, seed: int) -> Iterator[Cell]:
    if folder is not None:
        yield from real_cells(folder, rows, seed)
    yield from small_cells(seed)
    yield from made_cells(rows, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path, nargs="?")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--peers", action="store_true", help="measure the peers, too")
    parser.add_argument("--no-ours", action="store_true", help="measure the peers alone")
    parser.add_argument("--out", "-o", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in given.seeds:
        for cell in all_cells(given.vectors, given.rows, seed):
            if not any(word in cell.name for word in given.only):
                continue
            begin = time.perf_counter()
            founds = {} if given.no_ours else {"prune4rel": ours(cell)}
            if given.peers:
                founds |= peers(cell)
            for name, found in founds.items():
                row = {"cell": cell.name, "seed": seed, "held out": cell.held_out, "by": name, **measures(cell, found)}
                rows.append(row | {"seconds": round(time.perf_counter() - begin, 2)})
            if given.out:
                given.out.write_text(json.dumps(rows))
    show(rows)


def show(rows: list[dict[str, Any]]) -> None:
    names = ("wrong", "AP", "given", "right", "F1", "flagged", "rate", "ECE", "ECE of suggestions", "head right")
    body = [(row["cell"] + "*" * row["held out"], row["by"], *(f"{row[name]:.3f}" for name in names)) for row in rows]
    table("Judging", ("cell", "by", *names), body)


if __name__ == "__main__":
    main()
