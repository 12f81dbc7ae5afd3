"""Small splits, and batches as values that can be compared."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prune4rel.augment import Draws, View


@dataclass(frozen=True)
class Split:
    labels: Any
    images: Any = None
    files: Any = None
    features: Any = None


def image_split(n, height=5, width=4, seed=0):
    rng = np.random.default_rng(seed)
    return Split(rng.integers(0, 3, n), images=rng.integers(0, 256, (n, height, width, 3), dtype=np.uint8))


def feature_split(n, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return Split(rng.integers(0, 3, n), features=rng.normal(size=(n, d)).astype(np.float32))


def file_split(split, folder):
    """The images of a split as PNG files, which lose nothing."""
    from PIL import Image

    files = []
    for number, pixels in enumerate(split.images):
        files.append(Path(folder) / f"{number}.png")
        Image.fromarray(pixels).save(files[-1])
    return Split(split.labels, files=tuple(files))


def jitter(inputs, generator):
    """Two views that depend on every random number drawn so far in the chunk."""
    noise = torch.rand(inputs.shape, generator=generator).to(inputs.device)
    return inputs.float() + noise, torch.randn(len(inputs), generator=generator).to(inputs.device)


@dataclass(frozen=True)
class Noise(Draws):
    noise: torch.Tensor


class Jitter(View):
    """As the first view of `jitter`, drawn apart from applying."""

    def draw(self, shape, generator):
        return Noise(torch.rand(tuple(shape), generator=generator))

    def apply(self, inputs, drawn):
        assert len(inputs) == len(drawn)
        return inputs.float() + drawn.noise.to(inputs.device)


def values(batches):
    return [
        (batch.indices.tolist(), batch.labels.tolist(), *(view.cpu().numpy().tobytes() for view in batch.views))
        for batch in batches
    ]


def numbers(batches):
    return [batch.indices.tolist() for batch in batches]
