import pytest
import torch
from tests.oracles import pillow
from tests.oracles.images import CHANNELS, SIZES, awkward, natural, repeated

from prune4rel.augment import (
    Operation,
    auto_contrast,
    brightness,
    contrast,
    equalize,
    invert,
    posterize,
    solarize,
    transforms,
)

FACTORS = [*torch.linspace(0.0, 2.0, 41).tolist(), *[0.1 + 0.18 * level for level in range(11)], -0.5, 3.7]


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("function", "operation"),
    [
        (auto_contrast, Operation.AUTO_CONTRAST),
        (equalize, Operation.EQUALIZE),
        (invert, Operation.INVERT),
    ],
)
def test_operations_without_magnitude_equal_pillows(function, operation, size, channels):
    images = awkward(*size, channels=channels)
    assert torch.equal(function(images), pillow.each(images, operation, [0.0] * len(images)))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("function", "operation", "magnitudes"),
    [
        (solarize, Operation.SOLARIZE, range(0, 257, 8)),
        (posterize, Operation.POSTERIZE, range(9)),
    ],
)
def test_operations_on_bits_and_thresholds_equal_pillows(function, operation, magnitudes, size, channels):
    images, numbers = repeated(awkward(*size, channels=channels), list(magnitudes))
    assert torch.equal(function(images, numbers), pillow.each(images, operation, numbers.tolist()))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("function", "operation"), [(brightness, Operation.BRIGHTNESS), (contrast, Operation.CONTRAST)]
)
def test_blends_equal_pillows(function, operation, size, channels):
    images, numbers = repeated(awkward(*size, channels=channels), FACTORS)
    expected = pillow.each(images, operation, numbers.tolist())
    assert (function(images, numbers).int() - expected.int()).abs().max() <= pillow.BLEND_TOLERANCE


@pytest.mark.parametrize("function", [auto_contrast, equalize])
def test_many_natural_images(function):
    images = natural(500)
    assert torch.equal(function(images), pillow.each(images, Operation[function.__name__.upper()], [0.0] * 500))


def test_every_pair_of_darkest_and_brightest_level():
    low, high = torch.triu_indices(256, 256, offset=1).unbind()
    images = torch.stack([low, (low + high) // 2, high - 1, high], dim=1).to(torch.uint8).view(-1, 1, 1, 4)[::7]
    expected = pillow.each(images, Operation.AUTO_CONTRAST, [0.0] * len(images))
    assert torch.equal(auto_contrast(images), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_floating_point_images_hold_levels_over_255(dtype):
    images = natural(20)
    result = solarize(images.to(dtype) / 255, 100.0)
    assert result.dtype == dtype
    assert torch.equal(result, (solarize(images, 100.0).double() / 255).to(dtype))


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("function", [auto_contrast, equalize, invert])
def test_batches_of_none_and_one(function, count):
    images = natural(2)
    assert torch.equal(function(images[:count]), function(images)[:count])


def test_images_of_no_pixels():
    assert auto_contrast(torch.zeros(2, 3, 0, 4, dtype=torch.uint8)).shape == (2, 3, 0, 4)


def test_inputs_are_left_alone():
    images = natural(3)
    before = images.clone()
    for function in (auto_contrast, equalize, invert):
        function(images)
    for function in (solarize, posterize, brightness, contrast):
        function(images, 3.0)
    assert torch.equal(images, before)


def test_luma_is_pillows():
    images = natural(50)
    expected = [pillow.from_pillow(pillow.to_pillow(image).convert("L"))[0] for image in images]
    assert torch.equal(transforms.luma(images), torch.stack(expected).int())
