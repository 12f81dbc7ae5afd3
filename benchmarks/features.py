"""What to select and what to train where examples are features: methods and linear heads on honest signals.

    python benchmarks/features.py VECTORS [--rows 4000] [--seeds 3] [--ratios 0.05 0.1 0.2 0.5 1] [--only noisyag ...]

VECTORS is a folder that `benchmarks/vectors.py` has written; sets that are missing there are left out and named.
Signals are those of `prune4rel.clean` on the given labels. Every method picks so many examples, and a head is trained
on them:

given      logistic regression on the given labels of the picks
kept       ... of those picks whose given label is no issue
corrected  ... on corrected labels of the picks
weighted   ... on given labels, each weighed by its score
soft       ... on the honest probabilities of the picks

Numbers are test accuracies in per cent; the last tables are means over all sets. "everything, given" at ratio 1 is
plain logistic regression on all given labels, with its penalty chosen by cross-validation.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common import Array, table
from prune4rel import Signals, clean, load_dataset, select
from prune4rel.judging.logistic import fit_logistic
from prune4rel.noise import asymmetric, symmetric

HEADS = ("given", "kept", "corrected", "weighted", "soft")
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "uniform": ("uniform", {}),
    "small-loss": ("small-loss", {}),
    "label-aware": ("prune4rel", {}),
    "coverage": ("prune4rel", {"preset": "coverage"}),
}


class Set(NamedTuple):
    """(n, d) rows with given labels, and a test split with true ones."""

    name: str
    rows: Array
    given: Array
    test_rows: Array
    test_labels: Array


def sets_of(folder: Path, rows: int, seed: int) -> Iterator[Set]:
    kinds = {
        "noisyag.tfidf": ("noisy", "symmetric .4"),
        "noisyag.wordllama": ("noisy",),
        "cifar10.lite0": ("worst", "aggre", "clean"),
        "cifar100.lite0": ("noisy",),
    }
    for stem, noises in kinds.items():
        name = stem.partition(".")[0]
        if not (folder / f"{stem}.test.npy").exists():
            print(f"left out: {stem}, not in {folder}")
            continue
        some = np.sort(
            np.random.default_rng(seed).permutation(len(np.load(folder / f"{stem}.npy", mmap_mode="r")))[:rows]
        )
        vectors, labels = np.load(folder / f"{stem}.npy"), np.load(folder / f"{name}.labels.npz")
        test, test_labels = np.load(folder / f"{stem}.test.npy"), np.load(folder / f"{name}.test.labels.npz")["clean"]
        for noise in noises:
            if noise != "clean" and noise not in labels and not noise.startswith("sym"):
                continue
            given = symmetric(labels["clean"], 0.4, seed=seed) if noise.startswith("sym") else labels[noise]
            yield Set(f"{stem} {noise}", vectors[some], given[some], test, test_labels)
    digits = load_dataset("digits", noise=0.0, seed=seed)
    pixels, asked = (np.asarray(split.images)[..., 0].reshape(len(split), -1) for split in digits.splits().values())
    truth, test_truth = (split.labels for split in digits.splits().values())
    for noise, given in (("symmetric .4", symmetric(truth, 0.4, seed=seed)), ("clean", truth)):
        yield Set(f"digits {noise}", pixels.astype(np.float32), given, asked.astype(np.float32), test_truth)
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(8, 32))
    truth, test_labels = rng.integers(0, 8, 3000), rng.integers(0, 8, 3000)
    points, asked = ((centres[y] + 1.8 * rng.normal(size=(3000, 32))).astype(np.float32) for y in (truth, test_labels))
    yield Set("clouds next .3", points, asymmetric(truth, 0.3, n_classes=8, seed=seed), asked, test_labels)


def picks_of(method: str, signals: Signals, ratio: float, seed: int) -> Array:
    name, options = METHODS[method]
    return select(name, signals, ratio=ratio, balanced=True, seed=seed, device="cpu", **options).indices


def accuracy(one: Set, found: "object", picks: Array, head: str, seed: int) -> float:
    labels, signals = found.labels, found.signals  # type: ignore[attr-defined]
    rows, weights, C = one.rows[picks], None, len(labels.class_names)
    targets = labels.given_label[picks]
    if head == "kept":
        keep = ~labels.is_label_issue[picks]
        rows, targets = rows[keep], targets[keep]
    elif head == "corrected":
        targets = labels.corrected_label[picks]
    elif head == "weighted":
        weights = labels.label_score[picks]
    elif head == "soft":
        targets = signals.probabilities[picks]
    fitted = fit_logistic(rows, targets, n_classes=C, weights=weights, seed=seed)
    return 100 * float((fitted.logits(one.test_rows).argmax(axis=1) == one.test_labels).mean())


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("vectors", type=Path)
    asked.add_argument("--rows", type=int, default=4000)
    asked.add_argument("--seeds", type=int, default=1)
    asked.add_argument("--ratios", type=float, nargs="+", default=[0.05, 0.1, 0.2, 0.5, 1.0])
    asked.add_argument("--methods", nargs="+", default=list(METHODS))
    asked.add_argument("--only", nargs="*", default=[])
    given = asked.parse_args()
    warnings.simplefilter("ignore")
    numbers: dict[tuple[str, str, float, str], list[float]] = {}
    for seed in range(given.seeds):
        for one in sets_of(given.vectors, given.rows, seed):
            if given.only and not any(one.name.startswith(word) for word in given.only):
                continue
            labels = given_as_numbers(one)
            found = clean(embeddings=one.rows, labels=labels, seed=seed)
            losses = -np.log(np.maximum(found.label_score, 1e-12))
            signals = Signals(
                labels=found.signals.labels,
                probabilities=found.signals.probabilities,
                embeddings=found.signals.embeddings,
                losses=losses,
            )
            for ratio in given.ratios:
                for method in given.methods if ratio < 1 else ["everything"]:
                    picks = np.arange(len(labels)) if ratio >= 1 else picks_of(method, signals, ratio, seed)
                    for head in HEADS:
                        key = (one.name, method, ratio, head)
                        numbers.setdefault(key, []).append(accuracy(one, found, picks, head, seed))
            done = {key: value for key, value in numbers.items() if key[0] == one.name}
            show(f"{one.name}, {len(labels):,} examples", done)
    names = sorted({key[0] for key in numbers})
    means: dict[tuple[str, str, float, str], list[float]] = {}
    for (_, method, ratio, head), values in numbers.items():
        means.setdefault(("", method, ratio, head), []).append(float(np.mean(values)))
    show(f"mean of {len(names)} sets", means)


def given_as_numbers(one: Set) -> Array:
    return np.asarray(one.given, dtype=np.int64)


def show(title: str, numbers: dict[tuple[str, str, float, str], list[float]]) -> None:
    rows = []
    for method, ratio in dict.fromkeys((key[1], key[2]) for key in numbers):
        values = [np.mean(next(v for k, v in numbers.items() if k[1:] == (method, ratio, head))) for head in HEADS]
        rows.append((method, f"{ratio:g}", *(f"{value:.1f}" for value in values)))
    table(title, ("method", "ratio", *HEADS), rows)


if __name__ == "__main__":
    main()
