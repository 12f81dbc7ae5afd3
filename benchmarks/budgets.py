"""The same number of steps for subsets and for everything, on what two cores can train.

    python benchmarks/budgets.py digits
    python benchmarks/budgets.py noisyag cifar10-features --vectors VECTORS     as benchmarks/vectors.py wrote them
    python benchmarks/budgets.py cifar10-images --data DIR

Three paired seeds each. Killed and run again it goes on (--output keeps the runs); what is finished goes to
results/budgets/small/NAME.csv.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.data import load_dataset
from prune4rel.pipeline import Config
from prune4rel.pipeline import run as run_pipeline
from prune4rel.pipeline.collect import RESULTS, gather, write_results
from prune4rel.progress import PlainProgress

KEPT = Path(__file__).parent.parent / "results" / "budgets" / "small"
IMAGES = 10_000
CONTENDERS = (
    "uniform:0.2",
    "small-loss:0.2",
    "prune4rel:0.2",
    "prune4rel:0.4",
    "prune4rel:0.6",
    "prune4rel:0.8",
    "everything:1:trust",
)
USUAL: dict[str, Any] = {"methods": CONTENDERS, "equal_steps": True, "seeds": 3, "device": "cpu"}
EPOCH = 78
"""Steps of an epoch of 10,000 examples, 128 at a time."""

SETS: dict[str, dict[str, Any]] = {
    "digits": {"dataset": "digits", "steps": 400, "title": "Digits, 40 % moved to the next class"},
    "noisyag": {"dataset": "arrays", "steps": 20 * EPOCH, "title": "NoisyAG-News, frozen vectors"},
    "cifar10-features": {"dataset": "arrays", "steps": 20 * EPOCH, "title": "CIFAR-10N worst, frozen vectors"},
    "cifar10-images": {
        "dataset": "arrays",
        "steps": 20 * EPOCH,
        "network": "small-cnn",
        "warmup_epochs": 5,
        "title": "CIFAR-10N worst, the first 10,000 images, a small network",
    },
}


def features(vectors: Path, name: str, kind: str, noise: str) -> dict[str, Any]:
    """Read vectors of `benchmarks/vectors.py` as the data set `arrays` takes them."""
    own, test = (np.load(vectors / f"{name}{part}.labels.npz") for part in ("", ".test"))
    return {
        "features": np.load(vectors / f"{name}.{kind}.npy"),
        "labels": own[noise],
        "clean_labels": own["clean"],
        "test_features": np.load(vectors / f"{name}.{kind}.test.npy"),
        "test_labels": test["clean"],
    }


def images(data: Path) -> dict[str, Any]:
    """Read the first images of CIFAR-10N."""
    whole = load_dataset("cifar10n", data, noise="worst")
    if whole.test is None or whole.train.images is None or whole.train.clean_labels is None:
        raise AssertionError("CIFAR-10N has images, true labels and a test split")
    return {
        "images": whole.train.images[:IMAGES],
        "labels": whole.train.labels[:IMAGES],
        "clean_labels": whole.train.clean_labels[:IMAGES],
        "test_images": whole.test.images,
        "test_labels": whole.test.labels,
        "class_names": np.array(whole.class_names),
    }


def arrays_of(name: str, vectors: Path | None, data: Path | None) -> dict[str, Any] | None:
    """Return what a comparison is made on; None where it comes along."""
    if name == "digits":
        return None
    if name == "cifar10-images":
        if data is None:
            raise SystemExit("cifar10-images needs --data, the folder of CIFAR-10N")
        return images(data)
    if vectors is None:
        raise SystemExit(f"{name} needs --vectors, the folder that benchmarks/vectors.py wrote")
    return features(vectors, *(("noisyag", "tfidf", "noisy") if name == "noisyag" else ("cifar10", "lite0", "worst")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=SETS)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path("budgets"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.names:
        home, place = arguments.output / name, arguments.output / f"{name}.npz"
        own: dict[str, Any] = {}
        if (arrays := arrays_of(name, arguments.vectors, arguments.data)) is not None:
            if not place.exists():
                np.savez(place, **arrays)
            own = {"data": str(place)}
        config = Config(**{**USUAL, **SETS[name], **own, "seeds": arguments.seeds, "parallel": arguments.parallel})
        run_pipeline(config, home, progress=True)
        write_results(gather(home, PlainProgress()).cells, home / RESULTS)
        KEPT.mkdir(parents=True, exist_ok=True)
        shutil.copy(home / RESULTS, KEPT / f"{name}.csv")


if __name__ == "__main__":
    main()
