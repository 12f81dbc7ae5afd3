"""How fast a network is trained, beside a plain PyTorch loop and the floor, measured in one run.

    python benchmarks/training.py                      SOP+ as in the paper, on images made up here
    python benchmarks/training.py --data DIR           on CIFAR-10N in DIR, in its public layout
    python benchmarks/training.py --full --data DIR    a whole training of 300 epochs on a fifth, for real
    python benchmarks/training.py --device cpu         a tiny setting, to see that it works

The setting is that of the paper: PreAct-ResNet-18, batches of 128 with a weak and a strong view, on a fifth of 50,000
images. The peer is what most training code does, written here without the library: Pillow image by image in a
DataLoader with as many workers as there are cores, and network and step in plain PyTorch, with its settings as they
are; and with cuDNN trying several kernels (`torch.backends.cudnn.benchmark`), as the library has it too. The peer's
"step only" has its batch on the device already. The floor is the arithmetic of forward and backward pass at the
rate at which this device multiplies large bfloat16 matrices, and, beside it, the bytes of activations, weights and
momenta that have to be moved at the rate at which it copies. Times are means over steps after a warm-up, of SOP+ over
whole epochs with all that belongs to them; the device is waited for at the ends.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset

from common import table
from image_peers import MEAN, STD, PillowViews
from prune4rel.data import Dataset as NoisyDataset
from prune4rel.data import Split, load_dataset
from prune4rel.machine import format_seconds, threads
from prune4rel.networks import make
from prune4rel.training import make_plan, train
from prune4rel.training.loop import Training
from prune4rel.training.trainer import Trainer
from training_floor import floor, seconds_each, wait
from training_peers import Numbered, PlainDivideMix, PlainPreActResNet18, PlainSOPPlus

Indices = NDArray[np.int64]
SHARE = 0.2
EPOCHS = 300


@dataclass(frozen=True)
class Size:
    """How much of it: the paper's, or as little as a CPU can do in a minute."""

    network: str
    options: dict[str, Any]
    examples: int
    batch: int
    side: int
    steps: int
    epochs: int
    matrix: int


PAPER = Size("preact-resnet18", {}, 50_000, 128, 32, 200, 4, 8192)
TINY = Size("small-cnn", {"width": 8}, 1_000, 16, 16, 20, 1, 512)


def made_up(size: Size) -> NoisyDataset:
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 10, size.examples)
    images = rng.integers(0, 256, (size.examples, size.side, size.side, 3), dtype=np.uint8)
    given = np.where(rng.random(size.examples) < 0.4, rng.integers(0, 10, size.examples), clean)
    train_split = Split(labels=given, clean_labels=clean, images=images)
    names = tuple("abcdefghij")
    return NoisyDataset(name="cifar10n", train=train_split, class_names=names, mean=MEAN, std=STD, image_size=size.side)


def a_fifth(data: NoisyDataset) -> Indices:
    chosen: Indices = np.random.default_rng(0).permutation(len(data.train))[: round(SHARE * len(data.train))]
    return chosen


# ------------------------------------------------------------------------------------------------ the library


def trainer_for(data: NoisyDataset, learner: str, size: Size, device: str, **options: Any) -> Trainer:
    plan = make_plan(
        data, learner, network=size.network, network_options=size.options, batch=size.batch, epochs=EPOCHS, **options
    )
    return Trainer(data, a_fifth(data), plan, device=device)


def run_epochs(training: Training, count: int) -> None:
    for _ in range(count):
        training.run_epoch(lambda *_: None)


def our_step(data: NoisyDataset, learner: str, size: Size, device: str, **options: Any) -> float:
    """Seconds a step: the mean over the steps of some epochs after two whole ones, without what is done once an epoch.

    Whole ones, for it depends on what networks have learnt how DivideMix divides, and so how many steps there are.
    """
    trainer = trainer_for(data, learner, size, device, **options)
    training = trainer.training
    with trainer.settings():
        run_epochs(training, 2)
        training.learner.begin_epoch(training.epoch, training.predict)
        training.stepper.begin_epoch(training.hyperparameters.lr)
        steps = sum(map(training.feed.steps_of, training.learner.passes(training.epoch)))

        def epochs() -> Iterator[None]:
            while True:
                training.number = 0
                training.run_passes(lambda *_: None)
                yield

        return seconds_each(epochs(), trainer.device, skip=1, count=size.epochs) / steps


def our_epoch(data: NoisyDataset, learner: str, size: Size, device: str, **options: Any) -> tuple[float, int]:
    """Seconds of a whole epoch with all that belongs to it, and its steps: means over some epochs, after two others."""
    trainer = trainer_for(data, learner, size, device, **options)
    training = trainer.training
    with trainer.settings():
        run_epochs(training, 2)
        wait(trainer.device)
        before, begin = training.steps, time.perf_counter()
        run_epochs(training, size.epochs)
        wait(trainer.device)
    return (time.perf_counter() - begin) / size.epochs, (training.steps - before) // size.epochs


# ------------------------------------------------------------------------------------------------ the plain loop


def plain_network(data: NoisyDataset, size: Size) -> nn.Module:
    if size is PAPER:
        return PlainPreActResNet18(data.n_classes)
    return make(size.network, data.n_classes, shape=(3, size.side, size.side), **size.options)


@contextmanager
def trying_kernels() -> Iterator[None]:
    """Let cuDNN try several kernels, for a while."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def plain_learner(data: NoisyDataset, size: Size, device: torch.device, *, half: bool) -> PlainSOPPlus:
    torch.manual_seed(0)
    network = plain_network(data, size)
    return PlainSOPPlus(network, torch.from_numpy(data.train.labels), data.n_classes, device, half=half)


def pillow_batches(
    data: NoisyDataset, numbers: Indices, size: Size, device: torch.device, *, workers: int, twice_weak: bool = False
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches on the device without end: two views and the numbers, made by Pillow in worker processes."""
    if data.train.images is None:
        raise AssertionError("images are in memory here")
    pictures = Numbered(PillowViews(data.train.images, size.side), twice_weak=twice_weak)
    batches: DataLoader[Any] = DataLoader(
        Subset(pictures, numbers.tolist()),
        size.batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        persistent_workers=True,
    )
    while True:
        for first, second, which in batches:
            yield (
                first.to(device, non_blocking=True),
                second.to(device, non_blocking=True),
                which.to(device, non_blocking=True),
            )


def plain_steps(data: NoisyDataset, size: Size, device: torch.device) -> Iterator[None]:
    """Step after step, with Pillow and worker processes."""
    learner = plain_learner(data, size, device, half=False)
    for batch in pillow_batches(data, a_fifth(data), size, device, workers=threads()):
        learner.step(*batch)
        yield


def plain_divided_steps(data: NoisyDataset, size: Size, device: torch.device) -> Iterator[None]:
    """Step after step of DivideMix, half of the examples labelled, with Pillow and worker processes."""
    torch.manual_seed(0)
    networks = [plain_network(data, size) for _ in range(2)]
    learner = PlainDivideMix(networks, torch.from_numpy(data.train.labels), data.n_classes, device)
    workers = max(1, threads() // 2)
    labelled, others = (
        pillow_batches(data, part, size, device, workers=workers, twice_weak=True)
        for part in np.array_split(a_fifth(data), 2)
    )
    while True:
        learner.step(next(labelled), next(others))
        yield


def plain_steps_only(data: NoisyDataset, size: Size, device: torch.device, *, half: bool) -> Iterator[None]:
    """Step after step, on a batch that is there already."""
    learner = plain_learner(data, size, device, half=half)
    weak, strong = (torch.randn(size.batch, 3, size.side, size.side, device=device) for _ in range(2))
    numbers = torch.arange(size.batch, device=device)
    while True:
        learner.step(weak, strong, numbers)
        yield


# ------------------------------------------------------------------------------------------------ tables


def compare(data: NoisyDataset, size: Size, device: torch.device) -> None:
    name = str(device)
    steps_an_epoch = round(SHARE * len(data.train)) // size.batch
    network = make(size.network, data.n_classes, shape=(3, size.side, size.side), **size.options).to(device)
    images = torch.randn(2 * size.batch, 3, size.side, size.side, device=device)
    arithmetic, bytes_moved, said = floor(network, images, matrix=size.matrix)
    bound = max(arithmetic, bytes_moved)

    def plain() -> float:
        return seconds_each(plain_steps(data, size, device), device, steps_an_epoch, size.steps)

    def plain_only(*, half: bool) -> float:
        return seconds_each(plain_steps_only(data, size, device, half=half), device, 10, size.steps)

    measured = [
        ("this", our_epoch(data, "sop+", size, name)[0] / steps_an_epoch),
        ("this, float32", our_epoch(data, "sop+", size, name, precision="float32")[0] / steps_an_epoch),
        ("plain PyTorch, Pillow workers", plain()),
        ("plain PyTorch, step only", plain_only(half=False)),
        ("plain PyTorch, step only, bfloat16", plain_only(half=True)),
    ]
    with trying_kernels():
        measured += [
            ("plain PyTorch, Pillow workers, cudnn.benchmark", plain()),
            ("plain PyTorch, step only, bfloat16, cudnn.benchmark", plain_only(half=True)),
        ]
    own = measured[0][1]
    rows = [
        (title, f"{s * 1e3:.2f}", format_seconds(s * steps_an_epoch * EPOCHS), f"{s / own:.2f}", f"{s / bound:.1f}")
        for title, s in [*measured, ("floor, arithmetic", arithmetic), ("floor, bytes", bytes_moved)]
    ]
    header = ("SOP+", "ms a step", f"{EPOCHS} epochs (scaled up)", "x this", "x floor")
    table(f"{size.batch} x 2 views, {size.network}, {steps_an_epoch} steps an epoch, {name}; {said}", header, rows)


def compare_dividemix(data: NoisyDataset, size: Size, device: torch.device) -> None:
    own = our_step(data, "dividemix", size, str(device), learner_options={"warmup_epochs": 0})

    def plain() -> float:
        return seconds_each(plain_divided_steps(data, size, device), device, size.steps // 4, size.steps)

    measured = [("this", own), ("plain PyTorch, Pillow workers", plain())]
    with trying_kernels():
        measured.append(("plain PyTorch, Pillow workers, cudnn.benchmark", plain()))
    rows = [(title, f"{seconds * 1e3:.2f}", f"{seconds / own:.2f}") for title, seconds in measured]
    table(f"{size.batch} labelled and as many others, 2 views each", ("DivideMix", "ms a step", "x this"), rows)


def all_learners(data: NoisyDataset, size: Size, device: str) -> None:
    rows = []
    for learner in ("cross-entropy", "sop", "sop+", "elr", "elr+", "dividemix", "cores"):
        options = {"learner_options": {"warmup_epochs": 1}} if learner == "dividemix" else {}
        epoch, steps = our_epoch(data, learner, size, device, **options)
        rows.append((learner, steps, f"{epoch / steps * 1e3:.2f}", f"{epoch:.3f}", format_seconds(EPOCHS * epoch)))
    header = ("learner", "steps", "ms a step", "s an epoch", f"{EPOCHS} epochs (scaled up)")
    table("whole epochs, dividing included (DivideMix after its warm-up)", header, rows)


def full(data: NoisyDataset, size: Size, device: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        result = train(
            data,
            a_fifth(data),
            folder=Path(folder) / "run",
            device=device,
            network=size.network,
            network_options=size.options,
            batch=size.batch,
            epochs=EPOCHS if size is PAPER else 2,
            evaluate_every=EPOCHS,
            progress=True,
        )
        spent = time.perf_counter() - begin
    row = (f"{spent:.0f}", *(str(value) for value in result.accuracies().values()))
    table(f"a whole training, {result.epochs} epochs on {result.size:,}", ("seconds", *result.accuracies()), [row])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="CIFAR-10N, in its public layout; images made up here unless given")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--full", action="store_true", help="run a whole training, too")
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    size = PAPER if device.type == "cuda" else TINY
    if device.type == "cpu":
        torch.set_num_threads(1)  # for everybody: small networks lose by sharing their work
    data = made_up(size)
    if chosen.data is not None:
        data = load_dataset("cifar10n", chosen.data, noise="worst")
        size = replace(size, side=32)
    compare(data, size, device)
    compare_dividemix(data, size, device)
    all_learners(data, size, chosen.device)
    if chosen.full:
        full(data, size, chosen.device)


if __name__ == "__main__":
    main()
