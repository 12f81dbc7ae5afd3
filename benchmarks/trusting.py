"""Labels selected while training, against SOP+ on everything, at one number of steps: accuracy and wrong labels found.

    python benchmarks/trusting.py DATA --seeds 0 1 2 -o trusting.jsonl                      the real thing, on a GPU
    python benchmarks/trusting.py DATA --small --seeds 0 1 2 -o small.jsonl                 two CPU cores
    python benchmarks/trusting.py DATA --sets digits:.4 pixels:.2                           seconds
    python benchmarks/trusting.py DATA --vectors VECTORS --sets cifar10.lite0 noisyag.tfidf see vectors.py
    python benchmarks/trusting.py DATA --sets pixels:.4 --seeds 0 1 2 3 4 --timed           milliseconds a step

DATA holds CIFAR-10N and CIFAR-100N in their public layout; labels are `worst` and `noisy`. `digits:RATE[:KIND]` are
images with made-up noise, symmetric unless told, `pixels:RATE[:KIND]` the same as features. A contender is
LEARNER[,option=value]...[,set.setting=value]; the first is what others are compared with, seed by seed, everybody on
the same steps of the optimiser: 23,400 on CIFAR unless told, 40 to 60 epochs on small sets. `--small`: 5,000 images of
16 pixels and a small network; of vectors 4,000 rows, and a perceptron. Every line of the output is one training; what
is there already is not run again.
"""

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from common import Array, table
from prune4rel.data import Dataset, Split, load_dataset
from prune4rel.noise import make_noise
from prune4rel.training import make_plan, train

NOISE = {"cifar10n": "worst", "cifar100n": "noisy", "cifar10.lite0": "worst"}
SMALL_IMAGES, SMALL_SIZE, ROWS = 5_000, 16, 4_000
SMALL: dict[str, Any] = {"network": "small-cnn", "network_options": {"width": 16}, "look": {"cutout": 4}, "epochs": 40}


def some_of(n: int, count: int, seed: int) -> Array:
    rows: Array = np.sort(np.random.default_rng(seed).permutation(n)[:count])
    return rows


def shrunk(split: Split) -> Split:
    """Images of SMALL_SIZE: means of squares of pixels."""
    images = np.asarray(split.images)
    step = images.shape[1] // SMALL_SIZE
    tiles = images.reshape(len(images), SMALL_SIZE, step, SMALL_SIZE, step, 3)
    return replace(split, images=tiles.mean(axis=(2, 4)).round().astype(np.uint8))


def cifar(name: str, root: Path, seed: int, *, small: bool) -> Dataset:
    data = load_dataset(name, root, noise=NOISE[name])
    if not small or data.test is None:
        return data
    train = data.train.subset(some_of(len(data.train), SMALL_IMAGES, seed))
    return replace(data, train=shrunk(train), test=shrunk(data.test), image_size=SMALL_SIZE)


def vectors(stem: str, folder: Path, seed: int) -> Dataset:
    name = stem.partition(".")[0]
    labels, asked = (np.load(folder / f"{name}{part}.labels.npz") for part in ("", ".test"))
    rows, test = (np.load(folder / f"{stem}{part}.npy") for part in ("", ".test"))
    some = some_of(len(rows), ROWS, seed)
    given = labels[NOISE.get(stem, "noisy")][some]
    train = Split(labels=given, clean_labels=labels["clean"][some], features=rows[some])
    names = tuple(map(str, range(int(labels["clean"].max()) + 1)))
    return Dataset(name=stem, train=train, test=Split(labels=asked["clean"], features=test), class_names=names)


def digits(rate: float, kind: str, seed: int, *, flat: bool) -> Dataset:
    data = load_dataset("digits", noise=0.0, seed=seed)
    truth = data.train.labels
    noisy = make_noise(truth, kind, rate, seed=seed) if rate else truth
    data = replace(data, train=replace(data.train, labels=noisy, clean_labels=truth))
    if not flat or data.test is None:
        return data
    train, test = (
        Split(labels=s.labels, clean_labels=s.clean_labels, features=np.asarray(s.images)[..., 0].reshape(len(s), -1))
        for s in (data.train, data.test)
    )
    return Dataset(name="arrays", train=train, test=test, class_names=data.class_names)


def task(name: str, given: argparse.Namespace, seed: int) -> tuple[Dataset, dict[str, Any]]:
    """Return a data set, and what of its training is not as usual."""
    kind, rate, noise, *_ = f"{name}:::".split(":")
    epochs = {} if given.epochs is None else {"epochs": given.epochs}
    if kind in ("digits", "pixels"):
        flat = kind == "pixels"
        data = digits(float(rate or 0.4), noise or "symmetric", seed, flat=flat)
        return data, {"epochs": 40 if flat else 45} | epochs
    if "." in name:
        return vectors(name, given.vectors, seed), {"epochs": 60} | epochs
    data = cifar(name, given.data, seed, small=given.small)
    return data, (SMALL if given.small else {"epochs": given.steps // (len(data.train) // 128)}) | epochs


def read(text: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """LEARNER,a=1,set.b=2: its name, its options, and settings of training."""
    name, *words = text.split(",")
    own: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        try:
            number: Any = float(value) if "." in value or "e" in value else int(value)
        except ValueError:
            number = value
        (settings if key.startswith("set.") else own)[key.removeprefix("set.")] = number
    return name, own, settings


def trained(name: str, contender: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    data, how = task(name, given, seed)
    learner, options, settings = read(contender)
    usual = make_plan(data, learner, learner_options=options, seed=seed, training=settings, **how)
    steps = usual.hyperparameters.epochs * (len(data.train) // usual.hyperparameters.batch)
    # looking at everything counts as steps, and there are no more than others have
    plan = replace(usual, hyperparameters=usual.hyperparameters.changed(steps=steps))
    with tempfile.TemporaryDirectory() as folder:
        result = train(data, folder=folder, plan=plan, device=given.device, evaluate_every=10**6, save_every=1e9)
    numbers = {
        "test": 100 * (result.test_accuracy or 0.0),
        "right": 100 * (result.relabel_accuracy or 0.0),
        "AP": result.wrong_label_ap,
        "trusted": result.history[-1].get("trusted"),
        "ms": 1000 * result.seconds["training"] / steps,
    }
    return {"set": name, "small": given.small, "contender": contender, "seed": seed, "steps": steps, **numbers}


NUMBERS = ("test", "right", "AP", "trusted", "ms")


def show(lines: list[dict[str, Any]], first: str) -> None:
    for name in dict.fromkeys(line["set"] for line in lines):
        of = {(line["contender"], line["seed"]): line for line in lines if line["set"] == name}
        rows = []
        for contender in dict.fromkeys(key[0] for key in of):
            seeds = [seed for who, seed in of if who == contender]
            paired = [of[contender, s]["test"] - of[first, s]["test"] for s in seeds if (first, s) in of]
            against = f"{np.mean(paired):+.2f} ± {np.std(paired, ddof=len(paired) > 1):.2f}" if paired else ""
            each = [[of[contender, s][number] for s in seeds] for number in NUMBERS]
            means = ["" if None in values else f"{np.mean(values):.3f}" for values in each]
            rows.append((contender, len(seeds), against, *means))
        table(name, ("contender", "seeds", f"test, against {first}", *NUMBERS), rows)


def timed(name: str, given: argparse.Namespace) -> None:
    """Compare steps, the contenders taking turns; the median of ratios."""
    times = {who: [] for who in given.contenders}  # type: dict[str, list[float]]
    for seed in given.seeds:
        for who in given.contenders:
            times[who].append(trained(name, who, seed, given)["ms"])
    first = np.array(times[given.contenders[0]])
    rows = [(who, f"{np.median(ms):.2f}", f"{np.median(np.array(ms) / first):.3f}") for who, ms in times.items()]
    table(name, ("contender", "ms a step", "ratio"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--sets", nargs="+", default=["cifar10n", "cifar100n"])
    parser.add_argument("--contenders", nargs="+", default=["sop+", "trust"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=23_400)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--timed", action="store_true")
    given = parser.parse_args()
    if given.timed:
        for name in given.sets:
            timed(name, given)
        return
    known = given.output is not None and given.output.exists()
    lines = [json.loads(line) for line in given.output.read_text().splitlines()] if known else []
    done = {(line["set"], line["small"], line["contender"], line["seed"]) for line in lines}
    for seed in given.seeds:
        for name in given.sets:
            for contender in given.contenders:
                if (name, given.small, contender, seed) in done:
                    continue
                lines.append(trained(name, contender, seed, given))
                print(json.dumps(lines[-1]), flush=True)
                if given.output is not None:
                    with given.output.open("a") as file:
                        file.write(json.dumps(lines[-1]) + "\n")
    show([line for line in lines if line["small"] == given.small], given.contenders[0])


if __name__ == "__main__":
    main()
