"""How fast images become vectors, beside the bare model and a plain script of timm and DataLoader, in one run.

    python benchmarks/embedding.py cpu [--n 1500] [--side 224] [--model tf_efficientnet_lite0] [--size 128]
    python benchmarks/embedding.py gpu [--n 40000] [--side 224] [--model vit_small_patch14_dinov2] [--size 224]

Weights are random: they do not change the speed. `cpu` reads JPEG files of `side` pixels; `gpu` reads such files, and
the same images from memory. The bare model gets batches that are ready where it computes. All ways take turns, and the
best of `--repeats` counts for each; nothing is remembered between them (no cache).
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from common import table, timed

DISTINCT = 2000
"""Files that are written; they are gone over as often as it takes."""


def draw(number: int, side: int) -> Any:
    """Make an image of coarse shapes with fine grain, as large as a photograph of that side when it is a JPEG."""
    from PIL import Image

    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8))
    whole = np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC), dtype=np.int16)
    return Image.fromarray((whole + rng.integers(-12, 13, whole.shape)).clip(0, 255).astype(np.uint8))


def write(folder: Path, numbers: range, side: int) -> None:
    for number in numbers:
        draw(number, side).save(folder / f"{number:06}.jpg", quality=90)


def written(folder: Path, count: int, side: int) -> list[Path]:
    """Write JPEG files on all cores, and return their paths."""
    parts = os.cpu_count() or 1
    with ProcessPoolExecutor(parts) as pool:
        for done in [pool.submit(write, folder, range(first, count, parts), side) for first in range(parts)]:
            done.result()
    return sorted(folder.glob("*.jpg"))


class Plain:
    """What a script of one's own has: a list of files, and timm's transform."""

    def __init__(self, files: tuple[Path, ...], transform: Callable[[Any], Any]) -> None:
        self.files, self.transform = files, transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, row: int) -> Any:
        from PIL import Image

        return self.transform(Image.open(self.files[row]).convert("RGB"))


def plain_script(module: Any, files: tuple[Path, ...], transform: Any, batch: int, workers: int, device: str) -> Any:
    """Embed files as most scripts do."""
    import torch
    from torch.utils.data import DataLoader

    made: Any = DataLoader
    kind = torch.bfloat16 if device != "cpu" else torch.float32
    loader = made(Plain(files, transform), batch, num_workers=workers, pin_memory=device != "cpu")
    with torch.inference_mode():
        return torch.cat([module(images.to(device, kind, non_blocking=True)).float().cpu() for images in loader])


def bare(module: Any, batches: Iterator[Any], device: str) -> None:
    """Compute on batches that are ready, and nothing else."""
    import torch

    with torch.inference_mode():
        for images in batches:
            module(images)
    if device != "cpu":
        torch.cuda.synchronize()


def opened(model: str, size: int, device: str) -> tuple[Any, Any, Any]:
    """Return an encoder with random weights, its module, and timm's transform for it."""
    import torch

    from prune4rel.encoders.sight import Sight
    from prune4rel.encoders.torch_images import TorchImages
    from prune4rel.networks.zoo import import_timm, make_body

    torch.manual_seed(0)
    timm = import_timm()
    fixed = {"img_size": size} if "vit" in model else {}
    module = make_body(model, 3, (size, size), dict(fixed))
    config = timm.data.resolve_model_data_config(module) | {"input_size": (3, size, size)}
    transform = timm.data.create_transform(**config, is_training=False)
    way = config["interpolation"] if config["interpolation"] in ("bilinear", "lanczos") else "bicubic"
    sight = Sight(size, config["crop_pct"], "crop", way, tuple(config["mean"]), tuple(config["std"]))
    encoder = TorchImages(f"timm/{model}", module, sight, device)
    return encoder, module, transform


def measure(ways: dict[str, Callable[[], Any]], counts: dict[str, int], repeats: int) -> list[tuple[Any, ...]]:
    """Let all ways take turns; images a second of each, its share of the bare model's, and what the processor spends.

    The last, of all processes together, says the same on a machine that is busy with other things, too.
    """
    for way in ways.values():  # kernels are chosen, files are read once
        way()
    best = dict.fromkeys(ways, float("inf"))
    spent = dict.fromkeys(ways, float("inf"))
    for _ in range(repeats):
        for name, way in ways.items():
            before = sum(os.times()[:4])
            best[name] = min(best[name], timed(way)[0])
            spent[name] = min(spent[name], sum(os.times()[:4]) - before)
    rates = {name: counts[name] / seconds for name, seconds in best.items()}
    return [
        (
            name,
            f"{rate:,.0f}",
            f"{rate / rates['the bare model']:.0%}",
            f"{1000 * spent[name] / counts[name]:.1f}",
        )
        for name, rate in rates.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", choices=("cpu", "gpu"))
    parser.add_argument("--n", type=int)
    parser.add_argument("--side", type=int, default=224, help="height and width of the files")
    parser.add_argument("--size", type=int, help="height and width the model sees")
    parser.add_argument("--model")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    on_a_gpu = given.where == "gpu"
    device = "cuda" if on_a_gpu else "cpu"
    model = given.model or ("vit_small_patch14_dinov2" if on_a_gpu else "tf_efficientnet_lite0")
    size = given.size or (224 if on_a_gpu else 128)
    n = given.n or (40_000 if on_a_gpu else 1500)

    import torch

    from prune4rel.data import Split
    from prune4rel.encoders import embed
    from prune4rel.machine import threads

    encoder, module, transform = opened(model, size, device)
    with tempfile.TemporaryDirectory() as home:
        some = written(Path(home), min(n, DISTINCT), given.side)
        files = tuple(some[row % len(some)] for row in range(n))
        labels = np.zeros(n, dtype=np.int64)
        kind = torch.bfloat16 if on_a_gpu else torch.float32
        ready = torch.rand(encoder.batch, 3, size, size).to(device, kind, memory_format=torch.channels_last)
        rounds = max(1, n // encoder.batch)
        workers = min(16, threads())
        ways: dict[str, Callable[[], Any]] = {
            "the bare model": lambda: bare(module, (ready for _ in range(rounds)), device),
            "embed, JPEG files": lambda: embed(Split(labels=labels, files=files), encoder, cache=False),
            "timm and DataLoader, JPEG files": lambda: plain_script(
                module, files, transform, encoder.batch, workers, device
            ),
        }
        counts = dict.fromkeys(ways, n) | {"the bare model": rounds * encoder.batch}
        if on_a_gpu:
            images = np.stack([np.asarray(draw(row % 256, size)) for row in range(256)])
            whole = np.concatenate([images] * (n // 256))
            ways["embed, from memory"] = lambda: embed(
                Split(labels=labels[: len(whole)], images=whole), encoder, cache=False
            )
            counts["embed, from memory"] = len(whole)
        rows = measure(ways, counts, given.repeats)
    where = torch.cuda.get_device_name() if on_a_gpu else f"{threads()} threads"
    table(
        f"{model} at {size} pixels, {n:,} images of {given.side}, {where}, torch {torch.__version__}",
        ("way", "images a second", "of the bare model", "processor milliseconds an image"),
        rows,
    )


if __name__ == "__main__":
    main()
