"""Pillow, image by image: what every operation has to give."""

import platform

import numpy as np
import pytest
import torch

from prune4rel.augment import Operation

pytest.importorskip("PIL", reason="Pillow is what the augmentations are compared with")

from PIL import Image, ImageEnhance, ImageOps

BLEND_TOLERANCE = 0 if platform.machine() in ("x86_64", "AMD64") else 1
"""Where the compiler fuses the multiplication and the addition of Pillow's blend, a level may differ by one."""


def affine(image, matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST)


OPERATIONS = {
    Operation.SHEAR_X: lambda image, slope: affine(image, (1, slope, 0, 0, 1, 0)),
    Operation.SHEAR_Y: lambda image, slope: affine(image, (1, 0, 0, slope, 1, 0)),
    Operation.TRANSLATE_X: lambda image, distance: affine(image, (1, 0, distance, 0, 1, 0)),
    Operation.TRANSLATE_Y: lambda image, distance: affine(image, (1, 0, 0, 0, 1, distance)),
    Operation.ROTATE: lambda image, degrees: image.rotate(degrees, Image.Resampling.NEAREST),
    Operation.AUTO_CONTRAST: lambda image, _: ImageOps.autocontrast(image),
    Operation.EQUALIZE: lambda image, _: ImageOps.equalize(image),
    Operation.INVERT: lambda image, _: ImageOps.invert(image),
    Operation.SOLARIZE: lambda image, threshold: ImageOps.solarize(image, int(threshold)),
    Operation.POSTERIZE: lambda image, bits: (
        ImageOps.posterize(image, int(bits)) if bits else Image.new(image.mode, image.size)
    ),
    Operation.BRIGHTNESS: lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    Operation.CONTRAST: lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    Operation.COLOR: lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    Operation.SHARPNESS: lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor),
    Operation.IDENTITY: lambda image, _: image,
}


def to_pillow(image):
    """Pillow's image of a (C, H, W) uint8 tensor."""
    return Image.fromarray(image[0].numpy() if len(image) == 1 else image.permute(1, 2, 0).contiguous().numpy())


def from_pillow(image):
    """(C, H, W) uint8 of Pillow's image."""
    pixels = torch.from_numpy(np.array(image))
    return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1)


def each(images, operation, magnitudes):
    """(B, C, H, W) uint8: every image through Pillow with its own magnitude."""
    done = [
        from_pillow(OPERATIONS[operation](to_pillow(image), magnitude))
        for image, magnitude in zip(images, magnitudes, strict=True)
    ]
    return torch.stack(done)


def in_rounds(images, operations):
    """(B, C, H, W) uint8: every image through Pillow with its own operations."""
    result = []
    for image, codes, magnitudes in zip(images, operations.codes, operations.magnitudes, strict=True):
        pillow = to_pillow(image)
        for code, magnitude in zip(codes.tolist(), magnitudes.tolist(), strict=True):
            pillow = OPERATIONS[Operation(code)](pillow, magnitude)
        result.append(from_pillow(pillow))
    return torch.stack(result)


def crop_and_mirror(images, frames, padding):
    result = []
    for image, row, column, mirrored in zip(images, frames.rows, frames.columns, frames.mirrored, strict=True):
        wide = ImageOps.expand(to_pillow(image), padding)
        left, upper = int(column), int(row)
        cut = wide.crop((left, upper, left + image.shape[2], upper + image.shape[1]))
        result.append(from_pillow(ImageOps.mirror(cut) if mirrored else cut))
    return torch.stack(result)
