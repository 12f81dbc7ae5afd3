"""Folders as `prune4rel clean` writes them, made from arrays."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from prune4rel.data import load_dataset
from prune4rel.labels import Labels
from prune4rel.signals import Signals

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def judge(embeddings, given, names):
    """Probabilities by a vote of neighbours: good enough a judge for a page."""
    n, C = len(given), len(names)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    like = unit @ unit.T
    np.fill_diagonal(like, -1)
    near = np.argsort(-like, axis=1)[:, :10]
    votes = np.zeros((n, C))
    for k in range(near.shape[1]):
        votes[np.arange(n), given[near[:, k]]] += 1
    probabilities = (votes + 0.1) / (votes + 0.1).sum(axis=1, keepdims=True)
    return probabilities, near, np.take_along_axis(like, near, axis=1).astype(np.float32)


def write_folder(path, embeddings, given, names, source, *, ids=None):
    path.mkdir(parents=True)
    n = len(given)
    probabilities, near, like = judge(embeddings, given, names)
    predicted = probabilities.argmax(axis=1)
    score = probabilities[np.arange(n), given]
    matrix = np.zeros((len(names), len(names)))
    np.add.at(matrix, (predicted, given), 1)
    labels = Labels(
        given_label=given,
        predicted_label=predicted,
        label_score=score,
        is_label_issue=predicted != given,
        confidence=probabilities.max(axis=1),
        class_names=names,
        ids=ids,
        content=np.array([f"{row:016x}" for row in range(n)]),
        noise_rate=0.2,
        noise_matrix=matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1),
    )
    labels.save(path / "labels.parquet")
    np.savez(path / "neighbours.npz", indices=near.astype(np.int64), similarities=like)
    Signals(labels=given, probabilities=probabilities, embeddings=embeddings, class_names=names).save(path / "signals")
    (path / "source.json").write_text(json.dumps(source), encoding="utf-8")
    pq.write_table(
        pa.table(
            {
                "group": [0, 0, 1, 1],
                "index": [0, 1, 2, 0],
                "split": ["train", "train", "train", "test"],
                "kind": ["exact", "exact", "near", "near"],
                "contradicting": [True, True, False, False],
            }
        ),
        path / "duplicates.parquet",
    )
    return path


def digits_folder(path):
    """Digits, a fifth of them with a wrong label."""
    source = {"dataset": "digits", "data": None, "options": {"noise": 0.2}}
    train = load_dataset("digits", noise=0.2).train
    embeddings = train.images[..., 0].reshape(len(train), -1).astype(np.float32)
    return write_folder(path, embeddings, train.labels, DIGITS, source)


def pictures_folder(path, rng):
    """Files of pictures with awkward names, and some that are none; returns the reviewed folder and the files'."""
    photos = path / "photos"
    names = ("cat", "<b>dog</b>")
    for number, label in enumerate([0, 1] * 10):
        place = photos / ("cat", "dog")[label]
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 255, (40, 60, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"{number:02d} <img src=x onerror=alert(1)>&.png")
    split = load_dataset("folder", photos).train
    embeddings = rng.normal(size=(len(split), 8)).astype(np.float32)
    ids = np.array([str(file.relative_to(photos)) for file in split.files])
    source = {"dataset": "folder", "data": str(photos), "options": {}}
    return write_folder(path / "cleaned", embeddings, split.labels, names, source, ids=ids), split.files


def texts_folder(path, n):
    """A table of texts in two classes, some of them hostile, judged by nobody in particular."""
    rng = np.random.default_rng(0)
    words = np.array(["red", "green", "blue", "<script>alert(1)</script>", "&amp;", "naïve", "שלום"])
    texts = [" ".join(words[draw]) for draw in rng.integers(0, len(words), (n, 12))]
    texts[0] = "<script>alert(1)</script> is what this text says"
    given = rng.integers(0, 2, n)
    table = {
        "text": texts,
        "label": np.array(["<i>good</i>", "bad"])[given],
        "author": ["<img src=x onerror=alert(2)>"] * n,
    }
    pq.write_table(pa.table(table), path / "texts.parquet")
    return write_labels(path / "cleaned", "table", path / "texts.parquet", rng)


def write_labels(folder, dataset, data, rng):
    """Labels of a data set judged by nobody in particular, and neighbours drawn by chance."""
    folder.mkdir()
    read = load_dataset(dataset, data)
    train, n, C = read.train, len(read.train), read.n_classes
    score = rng.random(n)
    score[0] = 0
    issue = score < 0.3
    Labels(
        given_label=train.labels,
        predicted_label=np.where(issue, (train.labels + 1) % C, train.labels),
        label_score=score,
        is_label_issue=issue,
        confidence=np.maximum(score, 1 - score),
        class_names=read.class_names,
    ).save(folder / "labels.parquet")
    near = rng.integers(0, n, (n, 10))
    np.savez(folder / "neighbours.npz", indices=near, similarities=np.full(near.shape, 0.5, dtype=np.float32))
    source = {"dataset": dataset, "data": str(data), "options": {}}
    (folder / "source.json").write_text(json.dumps(source), encoding="utf-8")
    return folder
