"""What most training code does: Pillow, or torchvision, image by image, in a DataLoader."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from common import Array
from prune4rel.augment import AUTO_AUGMENT_CIFAR10, Operation, magnitude_of
from prune4rel.augment.policies import SIGNED

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
DICE = random.Random(0)  # noqa: S311 - pictures, not secrets

TwoViews = tuple[torch.Tensor, torch.Tensor]


def padding_of(side: int) -> int:
    """Pixels around an image before it is cropped: 4 of 32."""
    return side // 8


def hole_of(side: int) -> int:
    """Side of the square that is cut out: 16 of 32."""
    return side // 2


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


class Pictures(Dataset[TwoViews]):
    """Images in memory, or image files that are decoded and cropped to a square when their turn comes."""

    def __init__(self, images: Array | Sequence[Path], side: int) -> None:
        self.images, self.side = images, side

    def __len__(self) -> int:
        return len(self.images)

    def picture(self, index: int) -> Any:
        """One image as Pillow has it."""
        image = self.images[index]
        if not isinstance(image, Path):
            return pillow().Image.fromarray(image)
        with pillow().Image.open(image) as file:
            file.draft("RGB", (2 * self.side, 2 * self.side))
            return pillow().ImageOps.fit(
                file.convert("RGB"), (self.side, self.side), pillow().Image.Resampling.BILINEAR
            )

    def cut_out(self, values: torch.Tensor) -> torch.Tensor:
        """Set a square somewhere to zero."""
        row, column = DICE.randrange(self.side), DICE.randrange(self.side)
        half = hole_of(self.side) // 2
        values[:, max(0, row - half) : row + half, max(0, column - half) : column + half] = 0
        return values


class PillowViews(Pictures):
    """Weak and strong view of one image at a time, with Pillow."""

    def __init__(self, images: Array | Sequence[Path], side: int) -> None:
        super().__init__(images, side)
        self.mean, self.std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)

    def __getitem__(self, index: int) -> TwoViews:
        image = self.picture(index)
        return self._tensor(self._frame(image)), self.cut_out(self._tensor(self._frame(self._auto_augment(image))))

    def weak(self, index: int) -> torch.Tensor:
        """Make a weak view alone."""
        return self._tensor(self._frame(self.picture(index)))

    def _auto_augment(self, image: Any) -> Any:
        for operation, probability, level in DICE.choice(AUTO_AUGMENT_CIFAR10):
            if DICE.random() < probability:
                magnitude = magnitude_of(operation, level)
                turned = operation in SIGNED and DICE.random() < 0.5
                image = PILLOW_OPERATIONS[operation](image, -magnitude if turned else magnitude)
        return image

    def _frame(self, image: Any) -> Any:
        padding = padding_of(self.side)
        left, upper = DICE.randint(0, 2 * padding), DICE.randint(0, 2 * padding)
        image = pillow().ImageOps.expand(image, padding).crop((left, upper, left + self.side, upper + self.side))
        return pillow().ImageOps.mirror(image) if DICE.random() < 0.5 else image

    def _tensor(self, image: Any) -> torch.Tensor:
        values = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div_(255)
        return values.sub_(self.mean).div_(self.std)


class TorchvisionViews(Pictures):
    """The same with torchvision's transforms; its magnitudes differ from the official ones, its work does not."""

    def __init__(self, images: Array | Sequence[Path], side: int) -> None:
        super().__init__(images, side)
        transforms = import_module("torchvision.transforms")
        finish = [
            transforms.RandomCrop(side, padding=padding_of(side)),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
        policy = transforms.AutoAugment(transforms.AutoAugmentPolicy.CIFAR10)
        self.weak, self.strong = transforms.Compose(finish), transforms.Compose([policy, *finish])

    def __getitem__(self, index: int) -> TwoViews:
        image = self.picture(index)
        return self.weak(image), self.cut_out(self.strong(image))


PEERS: dict[str, type[PillowViews] | type[TorchvisionViews]] = {
    "Pillow": PillowViews,
    "torchvision": TorchvisionViews,
}


def installed_peers(images: Array | Sequence[Path], side: int) -> Iterator[tuple[str, Pictures]]:
    """Peers that can be imported here, by name."""
    for name, peer in PEERS.items():
        try:
            dataset = peer(images, side)
            dataset[0]
        except ImportError:
            continue
        yield name, dataset
