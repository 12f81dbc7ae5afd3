"""How fast training gets its images, beside the usual pipeline, measured in one run.

    python benchmarks/loading.py augment                 weak and strong views of images made up here
    python benchmarks/loading.py augment --data DIR      of CIFAR-10 in DIR, in its public layout
    python benchmarks/loading.py augment --device cpu    without looking for a GPU

The peer is what most training code does: Pillow (or torchvision, where it can be imported) image by image, in a
DataLoader with as many worker processes as there are cores. An image counts once both its views are done: flip and
crop; and AutoAugment, flip, crop and Cutout; both normalised, as float32 tensors. Runs of all sides take turns and the
best of each counts. "One core" is in seconds of processor time, which a busy machine disturbs less than the clock.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader, Dataset

from common import Array, table
from prune4rel.augment import AUTO_AUGMENT_CIFAR10, Operation, StrongView, Views, WeakView, magnitude_of
from prune4rel.augment.operations import SIGNED
from prune4rel.machine import threads

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
SIDE, PADDING, HOLE = 32, 4, 16
BATCH = 128
DICE = random.Random(0)  # noqa: S311 - pictures, not secrets
GPU_CHUNKS = (512, 2048, 8192, 32768)


def made_up(count: int) -> Array:
    """(count, 32, 32, 3) uint8, smooth with a little grain, as photographs are."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randn((count, 3, 8, 8), generator=generator) * 50 + 120
    grain = torch.randn((count, 3, SIDE, SIDE), generator=generator) * 8
    images = (interpolate(coarse, size=(SIDE, SIDE), mode="bicubic") + grain).clamp(0, 255).to(torch.uint8)
    return images.permute(0, 2, 3, 1).contiguous().numpy()


def read_cifar(folder: str, count: int) -> Array:
    from prune4rel.data import load_dataset

    images = load_dataset("cifar10n", folder, noise="clean").train.images
    if images is None:
        raise AssertionError("CIFAR-10 holds its images")
    return images[:count]


@cache
def pillow() -> SimpleNamespace:
    """Pillow's modules, where it is installed."""
    names = ("Image", "ImageEnhance", "ImageOps")
    return SimpleNamespace(**{name: import_module(f"PIL.{name}") for name in names})


def affine(image: Any, *matrix: float) -> Any:
    return image.transform(image.size, pillow().Image.Transform.AFFINE, matrix)


PILLOW_OPERATIONS: dict[Operation, Callable[[Any, float], Any]] = {
    Operation.SHEAR_X: lambda image, slope: affine(image, 1, slope, 0, 0, 1, 0),
    Operation.SHEAR_Y: lambda image, slope: affine(image, 1, 0, 0, slope, 1, 0),
    Operation.TRANSLATE_X: lambda image, distance: affine(image, 1, 0, distance, 0, 1, 0),
    Operation.TRANSLATE_Y: lambda image, distance: affine(image, 1, 0, 0, 0, 1, distance),
    Operation.ROTATE: lambda image, degrees: image.rotate(degrees),
    Operation.AUTO_CONTRAST: lambda image, _: pillow().ImageOps.autocontrast(image),
    Operation.EQUALIZE: lambda image, _: pillow().ImageOps.equalize(image),
    Operation.INVERT: lambda image, _: pillow().ImageOps.invert(image),
    Operation.SOLARIZE: lambda image, threshold: pillow().ImageOps.solarize(image, int(threshold)),
    Operation.POSTERIZE: lambda image, bits: pillow().ImageOps.posterize(image, int(bits)),
    Operation.BRIGHTNESS: lambda image, factor: pillow().ImageEnhance.Brightness(image).enhance(factor),
    Operation.CONTRAST: lambda image, factor: pillow().ImageEnhance.Contrast(image).enhance(factor),
    Operation.COLOR: lambda image, factor: pillow().ImageEnhance.Color(image).enhance(factor),
    Operation.SHARPNESS: lambda image, factor: pillow().ImageEnhance.Sharpness(image).enhance(factor),
}


class PillowViews(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Weak and strong view of one image at a time, with Pillow."""

    def __init__(self, images: Array) -> None:
        self.images = images
        self.mean, self.std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = pillow().Image.fromarray(self.images[index])
        return self._tensor(self._frame(image)), _cut_out(self._tensor(self._frame(self._auto_augment(image))))

    def _auto_augment(self, image: Any) -> Any:
        for operation, probability, level in DICE.choice(AUTO_AUGMENT_CIFAR10):
            if DICE.random() < probability:
                magnitude = magnitude_of(operation, level)
                turned = operation in SIGNED and DICE.random() < 0.5
                image = PILLOW_OPERATIONS[operation](image, -magnitude if turned else magnitude)
        return image

    def _frame(self, image: Any) -> Any:
        left, upper = DICE.randint(0, 2 * PADDING), DICE.randint(0, 2 * PADDING)
        image = pillow().ImageOps.expand(image, PADDING).crop((left, upper, left + SIDE, upper + SIDE))
        return pillow().ImageOps.mirror(image) if DICE.random() < 0.5 else image

    def _tensor(self, image: Any) -> torch.Tensor:
        values = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div_(255)
        return values.sub_(self.mean).div_(self.std)


class TorchvisionViews(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """The same with torchvision's transforms; its magnitudes differ from the official ones, its work does not."""

    def __init__(self, images: Array) -> None:
        transforms = import_module("torchvision.transforms")
        finish = [
            transforms.RandomCrop(SIDE, padding=PADDING),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
        policy = transforms.AutoAugment(transforms.AutoAugmentPolicy.CIFAR10)
        self.images = images
        self.weak, self.strong = transforms.Compose(finish), transforms.Compose([policy, *finish])

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = pillow().Image.fromarray(self.images[index])
        return self.weak(image), _cut_out(self.strong(image))


def _cut_out(values: torch.Tensor) -> torch.Tensor:
    row, column = DICE.randrange(SIDE), DICE.randrange(SIDE)
    half = HOLE // 2
    values[:, max(0, row - half) : row + half, max(0, column - half) : column + half] = 0
    return values


PEERS: dict[str, type[PillowViews] | type[TorchvisionViews]] = {
    "Pillow": PillowViews,
    "torchvision": TorchvisionViews,
}


class Ours:
    """Both views of all images, in one call or chunk by chunk."""

    def __init__(self, images: Array, device: str = "cpu") -> None:
        self.images = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().to(device)
        self.views = Views((WeakView(MEAN, STD, padding=PADDING), StrongView(MEAN, STD, cutout_size=HOLE)))
        self.generator = torch.Generator().manual_seed(0)

    def run(self, chunk: int) -> None:
        """Make all views, and wait until they are there."""
        for start in range(0, len(self.images), chunk):
            self.views(self.images[start : start + chunk], self.generator)
        if self.images.is_cuda:
            torch.cuda.synchronize()


def processor_seconds(function: Callable[[], Any]) -> float:
    begin = time.process_time()
    function()
    return time.process_time() - begin


def clock_seconds(function: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def taking_turns(
    runs: dict[str, Callable[[], Any]], clock: Callable[[Callable[[], Any]], float], repeats: int
) -> dict[str, float]:
    """Least seconds of each run; the first round, which starts workers and warms up, does not count."""
    spent = {name: float("inf") for name in runs}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            seconds = clock(run)
            if turn:
                spent[name] = min(spent[name], seconds)
    return spent


def one_core(images: Array, repeats: int) -> None:
    """One thread of ours, one process of each peer."""
    mine = Ours(images)
    runs: dict[str, Callable[[], Any]] = {"ours": partial(mine.run, len(images))}
    for name, peer in PEERS.items():
        try:
            dataset = peer(images)
            dataset[0]
        except ImportError:
            continue
        runs[name] = lambda of=dataset: [of[k] for k in range(len(of))]  # type: ignore[misc]
    before, allowed = torch.get_num_threads(), os.environ.get("PRUNE4REL_THREADS")
    torch.set_num_threads(1)
    os.environ["PRUNE4REL_THREADS"] = "1"
    spent = taking_turns(runs, processor_seconds, repeats)
    torch.set_num_threads(before)
    os.environ.pop("PRUNE4REL_THREADS")
    if allowed is not None:
        os.environ["PRUNE4REL_THREADS"] = allowed
    show("one core, processor time", spent, len(images))


def all_cores(images: Array, repeats: int) -> None:
    """Threads of ours, worker processes of the peers, by the clock."""
    cores = threads()
    mine = Ours(images)
    runs: dict[str, Callable[[], Any]] = {"ours": partial(mine.run, len(images))}
    for name, peer in PEERS.items():
        try:
            dataset = peer(images)
            dataset[0]
        except ImportError:
            continue
        loader = DataLoader(dataset, batch_size=BATCH, num_workers=cores, persistent_workers=True)
        runs[f"{name}, DataLoader"] = lambda of=loader: sum(1 for _ in of)  # type: ignore[misc]
    spent = taking_turns(runs, clock_seconds, repeats)
    show(f"{cores} cores, by the clock", spent, len(images))


def gpu(images: Array, repeats: int) -> None:
    """Ours on the GPU, in chunks of several sizes, images already there."""
    name = torch.cuda.get_device_name()
    copies = -(-4 * max(GPU_CHUNKS) // len(images))
    mine = Ours(np.concatenate([images] * copies), "cuda")
    runs: dict[str, Callable[[], Any]] = {f"chunks of {chunk}": partial(mine.run, chunk) for chunk in GPU_CHUNKS}
    spent = taking_turns(runs, clock_seconds, repeats)
    rows = [(way, f"{len(mine.images) / seconds:,.0f}") for way, seconds in spent.items()]
    table(f"ours on {name}, {len(mine.images)} images", ("", "images a second, both views"), rows)


def show(title: str, spent: dict[str, float], count: int) -> None:
    base = spent["ours"]
    rows = [
        (name, f"{count / seconds:,.0f}", f"{1e6 * seconds / count:.1f}", f"{seconds / base:.1f}x")
        for name, seconds in spent.items()
    ]
    for name in PEERS:
        if not any(row[0].startswith(name) for row in rows):
            rows.append((name, "not installed", "", ""))
    table(f"{title}, {count} images", ("", "images a second, both views", "microseconds an image", "of ours"), rows)


def augment(arguments: argparse.Namespace) -> None:
    images = read_cifar(arguments.data, arguments.count) if arguments.data else made_up(arguments.count)
    if arguments.device in ("auto", "cpu"):
        one_core(images[: min(len(images), 4096)], arguments.repeats)
        all_cores(images, arguments.repeats)
    if arguments.device == "cuda" or (arguments.device == "auto" and torch.cuda.is_available()):
        gpu(images, arguments.repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    views = parts.add_parser("augment", help="weak and strong views of images in memory")
    views.add_argument("--data", help="folder with cifar-10-batches-py")
    views.add_argument("--count", type=int, default=16_384, help="how many images")
    views.add_argument("--repeats", type=int, default=3, help="runs of each side; the best counts")
    views.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    views.set_defaults(run=augment)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
