import pytest
import torch
from tests.oracles.images import natural

from prune4rel.augment import normalise, pixels
from prune4rel.errors import InputError

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_levels_survive_floating_point(dtype):
    levels = torch.arange(256, dtype=torch.uint8)
    floats = pixels.from_levels(levels, like=torch.zeros(1, dtype=dtype))
    assert floats.dtype == dtype
    assert torch.equal(floats, (levels.double() / 255).to(dtype))
    assert torch.equal(pixels.to_levels(floats), levels)


def test_floats_outside_zero_to_one_are_clipped():
    assert pixels.to_levels(torch.tensor([-1.0, 2.0])).tolist() == [0, 255]


def test_uint8_is_not_copied():
    levels = torch.zeros(3, dtype=torch.uint8)
    assert pixels.to_levels(levels) is levels
    assert pixels.from_levels(levels, like=levels) is levels


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_normalise_is_the_formula(dtype):
    images = natural(4, height=5, width=7)
    mean, std = torch.tensor(MEAN).view(3, 1, 1).double(), torch.tensor(STD).view(3, 1, 1).double()
    expected = (images.double() / 255 - mean) / std
    result = normalise(images, MEAN, STD, dtype=dtype)
    assert result.dtype == dtype
    tolerance = 2e-6 if dtype == torch.float32 else 2 * torch.finfo(dtype).eps
    torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)


def test_normalise_takes_floats_from_zero_to_one_and_leaves_them_alone():
    images = natural(4).float() / 255
    before = images.clone()
    torch.testing.assert_close(normalise(images, MEAN, STD), normalise(natural(4), MEAN, STD), rtol=1e-5, atol=1e-5)
    assert torch.equal(images, before)


def test_normalise_of_nothing():
    assert normalise(torch.zeros(0, 3, 4, 4, dtype=torch.uint8), MEAN, STD).shape == (0, 3, 4, 4)


def test_wrong_number_of_channels():
    with pytest.raises(InputError, match="3 means and 3 deviations were given for 1 channels"):
        normalise(torch.zeros(1, 1, 4, 4, dtype=torch.uint8), MEAN, STD)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(3, 32, 32, dtype=torch.uint8), r"\(B, 3, H, W\)"),
        (torch.zeros(2, 32, 32, 3, dtype=torch.uint8), r"not \(2, 32, 32, 3\)"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.int64), "not torch.int64"),
    ],
)
def test_what_is_no_batch_of_images_is_refused(images, message):
    with pytest.raises(InputError, match=message):
        pixels.check_images(images)
