"""How fast training gets its images, beside the usual pipeline, measured in one run.

    python benchmarks/loading.py augment                 weak and strong views of images made up here
    python benchmarks/loading.py augment --data DIR      of CIFAR-10 in DIR, in its public layout
    python benchmarks/loading.py augment --device cpu    without looking for a GPU
    python benchmarks/loading.py loader                  whole epochs: images in memory, and JPEG files made up here
    python benchmarks/loading.py loader --device cuda    with batches on a GPU

The peer is what most training code does: Pillow (or torchvision, where it can be imported) image by image, in a
DataLoader with as many worker processes as there are cores. An image counts once both its views are done: flip and
crop; and AutoAugment, flip, crop and Cutout; both normalised, as float32 tensors. Runs of all sides take turns and the
best of each counts. "One core" is in seconds of processor time, which a busy machine disturbs less than the clock. A
loader's epoch ends when its last batch is on the device.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader

from common import Array, table
from image_peers import MEAN, PEERS, STD, hole_of, installed_peers, padding_of, pillow
from prune4rel.augment import StrongView, Views, WeakView
from prune4rel.data import Split
from prune4rel.loading import DeviceLoader, StreamLoader
from prune4rel.machine import threads

SIDE = 32
BATCH = 128
GPU_CHUNKS = (512, 2048, 8192, 32768)
JPEG_SIZE = (500, 375)


def made_up(count: int, width: int = SIDE, height: int = SIDE, seed: int = 0) -> Array:
    """(count, height, width, 3) uint8, smooth with a little grain, as photographs are."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn((count, 3, 8, 8), generator=generator) * 50 + 120
    grain = torch.randn((count, 3, height, width), generator=generator) * 8
    images = (interpolate(coarse, size=(height, width), mode="bicubic") + grain).clamp(0, 255).to(torch.uint8)
    return images.permute(0, 2, 3, 1).contiguous().numpy()


def write_jpegs(count: int, folder: Path) -> tuple[Path, ...]:
    """Files of the size most of ImageNet's have."""
    files = tuple(folder / f"{number:06}.jpg" for number in range(count))
    for number, file in enumerate(files):
        pillow().Image.fromarray(made_up(1, *JPEG_SIZE, seed=number)[0]).save(file, quality=90)
    return files


def both_views(side: int) -> Views:
    weak = WeakView(MEAN, STD, padding=padding_of(side))
    return Views((weak, StrongView(MEAN, STD, padding=padding_of(side), cutout_size=hole_of(side))))


def read_cifar(folder: str, count: int) -> Array:
    from prune4rel.data import load_dataset

    images = load_dataset("cifar10n", folder, noise="clean").train.images
    if images is None:
        raise AssertionError("CIFAR-10 holds its images")
    return images[:count]


class Ours:
    """Both views of all images, in one call or chunk by chunk."""

    def __init__(self, images: Array, device: str = "cpu") -> None:
        self.images = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().to(device)
        self.views = both_views(SIDE)
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
    for name, dataset in installed_peers(images, SIDE):
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
    for name, dataset in installed_peers(images, SIDE):
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


def epoch(batches: Iterable[Any], device: str) -> None:
    """Go over all batches, put their views on the device, and wait for the last."""
    for batch in batches:
        for view in batch.inputs if hasattr(batch, "inputs") else batch:
            view.to(device, non_blocking=True)
    if device != "cpu":
        torch.cuda.synchronize()


def peer_epochs(images: Array | tuple[Path, ...], side: int, batch: int, device: str) -> dict[str, Callable[[], Any]]:
    cores = threads()
    runs: dict[str, Callable[[], Any]] = {}
    for name, dataset in installed_peers(images, side):
        loader = DataLoader(
            dataset,
            batch_size=batch,
            shuffle=True,
            num_workers=cores,
            persistent_workers=True,
            pin_memory=device != "cpu",
        )
        runs[f"{name}, DataLoader"] = partial(epoch, loader, device)
    return runs


def loader(arguments: argparse.Namespace) -> None:
    device = arguments.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    where = torch.cuda.get_device_name() if device == "cuda" else f"{threads()} cores"
    images = read_cifar(arguments.data, arguments.count) if arguments.data else made_up(arguments.count)
    held = Split(labels=np.zeros(len(images), dtype=np.int64), images=images)
    mine = DeviceLoader(held, device=device, batch=BATCH, transform=both_views(SIDE))
    runs = {"ours": partial(epoch, mine, device)} | peer_epochs(images, SIDE, BATCH, device)
    show(
        f"images in memory, batches of {BATCH} on {where}",
        taking_turns(runs, clock_seconds, arguments.repeats),
        len(images),
    )
    with tempfile.TemporaryDirectory() as folder:
        files = write_jpegs(arguments.files, Path(folder))
        side, batch = arguments.side, min(BATCH, max(1, arguments.files // 4))
        stored = Split(labels=np.zeros(len(files), dtype=np.int64), files=files)
        stream = StreamLoader(stored, device=device, batch=batch, size=side, transform=both_views(side))
        runs = {"ours": partial(epoch, stream, device)} | peer_epochs(files, side, batch, device)
        spent = taking_turns(runs, clock_seconds, arguments.repeats)
        show(f"JPEG files of {JPEG_SIZE} pixels as {side} x {side}, batches of {batch} on {where}", spent, len(files))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    views = parts.add_parser("augment", help="weak and strong views of images in memory")
    views.add_argument("--data", help="folder with cifar-10-batches-py")
    views.add_argument("--count", type=int, default=16_384, help="how many images")
    views.add_argument("--repeats", type=int, default=3, help="runs of each side; the best counts")
    views.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    views.set_defaults(run=augment)
    whole = parts.add_parser("loader", help="whole epochs from memory and from files")
    whole.add_argument("--data", help="folder with cifar-10-batches-py")
    whole.add_argument("--count", type=int, default=16_384, help="how many images in memory")
    whole.add_argument("--files", type=int, default=1024, help="how many image files")
    whole.add_argument("--side", type=int, default=224, help="height and width of what is decoded")
    whole.add_argument("--repeats", type=int, default=3, help="epochs of each side; the best counts")
    whole.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    whole.set_defaults(run=loader)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
