import pytest
import torch
from tests.oracles import pillow
from tests.oracles.images import CHANNELS, SIZES, awkward, natural, repeated

from prune4rel.augment import Operation, color, sharpness

FACTORS = [*torch.linspace(0.0, 2.0, 21).tolist(), *[0.1 + 0.18 * level for level in range(11)], -0.5, 3.7]
FUNCTIONS = [(color, Operation.COLOR), (sharpness, Operation.SHARPNESS)]


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("function", "operation"), FUNCTIONS)
def test_blends_equal_pillows(function, operation, size, channels):
    images, numbers = repeated(awkward(*size, channels=channels), FACTORS)
    expected = pillow.each(images, operation, numbers.tolist())
    assert (function(images, numbers).int() - expected.int()).abs().max() <= pillow.BLEND_TOLERANCE


@pytest.mark.parametrize(("function", "operation"), FUNCTIONS)
def test_many_natural_images(function, operation, rng):
    images, factors = natural(500), torch.from_numpy(rng.uniform(0.1, 1.9, 500))
    expected = pillow.each(images, operation, factors.tolist())
    assert (function(images, factors).int() - expected.int()).abs().max() <= pillow.BLEND_TOLERANCE


@pytest.mark.parametrize(("function", "operation"), FUNCTIONS)
def test_floating_point_batches_of_none_and_one(function, operation):
    images = natural(2)
    expected = pillow.each(images, operation, [1.5, 1.5]).float() / 255
    for count in (0, 1, 2):
        result = function(images[:count].float() / 255, 1.5)
        assert (result - expected[:count]).abs().max().item() * 255 < 1.01 if count else result.shape == (0, 3, 32, 32)


@pytest.mark.parametrize(("function", "operation"), FUNCTIONS)
def test_inputs_are_left_alone(function, operation):
    images = natural(2)
    floats = images.float() / 255
    before = floats.clone()
    function(floats, 1.5)
    assert torch.equal(floats, before)
    assert torch.equal(function(images, 1.0), pillow.each(images, operation, [1.0, 1.0]))
