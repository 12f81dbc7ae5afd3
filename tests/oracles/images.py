"""Images that are hard on augmentations, one of every kind."""

import torch
from torch.nn.functional import interpolate

SIZES = [(32, 32), (24, 40), (5, 3), (1, 1), (2, 300)]
CHANNELS = [3, 1]


def awkward(height, width, *, channels=3, seed=0):
    """(11, C, H, W) uint8: noise, smooth, every pixel another, flat, two levels, narrow ranges, rare levels."""
    generator = torch.Generator().manual_seed(seed)
    shape = (channels, height, width)
    noise = torch.randint(256, shape, generator=generator, dtype=torch.uint8)
    coarse = torch.randn((1, channels, 4, 4), generator=generator) * 60 + 128
    smooth = interpolate(coarse, size=(height, width), mode="bicubic")[0].clamp(0, 255).to(torch.uint8)
    numbers = torch.arange(channels * height * width).view(shape)
    chequers = (numbers % 2 * 255).to(torch.uint8)
    narrow = (100 + numbers % 3).to(torch.uint8)
    dim = torch.randint(40, 47, shape, generator=generator, dtype=torch.uint8)
    one_dot = torch.zeros(shape, dtype=torch.uint8)
    one_dot[:, height // 2, width // 2] = 255
    full_range = torch.linspace(0, 255, height * width).to(torch.uint8).view(1, height, width).expand(shape)
    flat = torch.full(shape, 77, dtype=torch.uint8)
    kinds = [noise, smooth, (numbers % 256).to(torch.uint8), chequers, narrow, dim, one_dot, full_range, flat]
    return torch.stack([*kinds, torch.zeros_like(flat), torch.full_like(flat, 255)])


def repeated(images, magnitudes):
    """Every image with every magnitude: (B m, C, H, W) and (B m,) float64."""
    numbers = torch.as_tensor(magnitudes, dtype=torch.float64)
    return images.repeat_interleave(len(numbers), dim=0), numbers.repeat(len(images))


def natural(count, *, height=32, width=32, seed=0):
    """(count, 3, H, W) uint8, smooth with a little noise, as photographs are."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn((count, 3, 8, 8), generator=generator) * 50 + 120
    grain = torch.randn((count, 3, height, width), generator=generator) * 8
    return (interpolate(coarse, size=(height, width), mode="bicubic") + grain).clamp(0, 255).to(torch.uint8)
