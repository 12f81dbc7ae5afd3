"""Stories to tell: real ones from scikit-learn's digits, and awkward ones."""

import time
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from tests.instances import noisy_digits

from prune4rel import select
from prune4rel.report import Cell, Story, map_of
from prune4rel.report.story import label_symbols

METHODS = (
    ("prune4rel (label-aware)", "prune4rel", {}),
    ("small-loss", "small-loss", {}),
    ("uniform", "uniform", {}),
)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "كلب صغير",
    "🐕‍🦺 dog",
    "{{ 7*7 }} & </style>",
)


EPOCHS = 8


@dataclass(frozen=True)
class Trained:
    model: SGDClassifier
    curve: tuple
    seconds: float


def trained(features, labels, rows, seed, test, truth):
    """A linear model after some epochs of gradient descent on some rows, and how it did after each."""
    start = time.perf_counter()
    model = SGDClassifier(loss="log_loss", alpha=0.01, random_state=seed)
    rng = np.random.default_rng(100 + seed)
    curve = []
    for epoch in range(1, EPOCHS + 1):
        order = rng.permutation(rows)
        model.partial_fit(features[order], labels[order], classes=np.arange(10))
        accuracy = float((model.predict(features[test]) == truth[test]).mean())
        curve.append({"epoch": float(epoch), "steps": float(epoch + 1), "test_accuracy": accuracy})
    return Trained(model, tuple(curve), time.perf_counter() - start)


@cache
def digits_story(ratios=(0.1, 0.3), seeds=(1, 2, 3)):
    """Three methods on digits with four labels in ten wrong; every number is measured."""
    signals = noisy_digits()
    images, truth = load_digits(return_X_y=True)
    features = images / 16
    rng = np.random.default_rng(0)
    test = rng.random(len(truth)) < 0.2
    cells = []
    models = {}
    for label, method, options in METHODS:
        for ratio in ratios:
            for seed in seeds:
                asked = {"balanced": True} | options
                chosen = select(method, signals=signals, ratio=ratio, seed=seed, device="cpu", **asked)
                picks = chosen.indices
                done = trained(features, signals.labels, picks, seed, test, truth)
                given = done.model.predict(features)
                wrong = signals.labels[picks] != truth[picks]
                cell = Cell(
                    method=method,
                    label=label,
                    learner="linear",
                    ratio=ratio,
                    seed=seed,
                    size=len(picks),
                    indices=picks,
                    class_counts=tuple(np.bincount(signals.labels[picks], minlength=10).tolist()),
                    test_accuracy=done.curve[-1]["test_accuracy"],
                    best_accuracy=max(line["test_accuracy"] for line in done.curve),
                    relabel_accuracy=float((given == truth).mean()),
                    self_correct=float((given[picks] == truth[picks])[wrong].mean()) if wrong.any() else None,
                    subset_noise=float(wrong.mean()),
                    gains=chosen.gains,
                    objective=chosen.objective,
                    curve=done.curve,
                    seconds={"selection": chosen.stats["seconds"]["total"], "training": done.seconds},
                    labels_changed=int((given[picks] != signals.labels[picks]).sum()),
                )
                cells.append(cell)
                models[id(cell)] = done.model
    light = next(cell for cell in cells if cell.method == "prune4rel" and cell.ratio == max(ratios))
    probabilities = models[id(light)].predict_proba(features)
    grey = np.rint(images.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    everything = trained(features, signals.labels, np.arange(len(truth)), 0, test, truth)
    full = Cell(
        method="full",
        label="all examples",
        learner="linear",
        ratio=1.0,
        seed=0,
        size=len(truth),
        indices=np.arange(len(truth)),
        test_accuracy=everything.curve[-1]["test_accuracy"],
        seconds={"training": everything.seconds},
    )
    return Story(
        title="Digits, four labels in ten wrong",
        dataset="digits",
        n=len(truth),
        class_names=("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
        labels=signals.labels,
        clean_labels=truth,
        class_counts=tuple(np.bincount(signals.labels, minlength=10).tolist()),
        cells=tuple(cells),
        spotlight=light,
        corrected=probabilities.argmax(axis=1),
        confidence=probabilities.max(axis=1),
        neighbourhood=support_of(signals, light),
        map_xy=map_of(features, kind="pca"),
        thumbnails=lambda indices: np.repeat(grey[indices][..., None], 3, axis=3),
        full_training=full,
        peak_memory={"selection": 3.1e8, "training": 8.4e8},
        environment={"python": "3.11", "prune4rel": "0.1.0"},
        configuration="dataset: digits\nnoise: 0.4\nmethods:\n  - prune4rel\n  - small-loss\n  - uniform\n",
        notes=("Classes are balanced.",),
    )


def support_of(signals, cell):
    """N(x; S) by the plain formula, with shifted cosines above 0.95 as weights."""
    rows = signals.embeddings / np.linalg.norm(signals.embeddings, axis=1, keepdims=True)
    near = (1 + rows @ rows[cell.indices].T) / 2
    sure = signals.probabilities[cell.indices, signals.labels[cell.indices]]
    return np.where(near >= 0.95, near, 0) @ sure


def evil(label):
    return f"{label} </script><script>alert(9)</script>"


def hostile_story():
    """Digits whose class names, titles and ids try to break out."""
    story = digits_story()
    names = (*HOSTILE, *HOSTILE[::-1])
    ids = np.array([f"images/<b>{place}</b>&\"'.png" for place in range(story.n)])
    return replace(
        story,
        title="<h1>&amp; </title><script>alert(3)</script> 🐈 قطة",
        dataset="/data/<script>alert(4)</script>",
        class_names=names,
        ids=ids,
        configuration="path: </pre><script>alert(5)</script>\n",
        notes=("<script>alert(6)</script>",),
        environment={"<script>alert(7)</script>": "</dd><script>alert(8)</script>"},
        cells=tuple(replace(cell, label=evil(cell.label)) for cell in story.cells),
        spotlight=replace(story.spotlight, label=evil(story.spotlight.label)),
    )


def bare_story(**parts):
    """The least a run can tell."""
    cell = Cell(method="uniform", label="uniform", learner="sop+", ratio=0.5, seed=0, size=2, indices=np.array([0, 3]))
    told = {
        "title": "bare",
        "dataset": "four",
        "n": 4,
        "class_names": ("cat", "dog"),
        "labels": np.array([0, 1, 0, 1]),
        "class_counts": (2, 2),
        "cells": (cell,),
    }
    return Story(**told | parts)


def column(figure, name):
    """One column of the numbers behind a figure."""
    place = figure.table.columns.index(name)
    return [row[place] for row in figure.table.rows]


def symbols():
    return label_symbols([digits_story()])
