import pytest
import torch
from tests.oracles import pillow
from tests.oracles.images import CHANNELS, SIZES, awkward, natural, repeated

from prune4rel.augment import Operation, rotate, shear_x, shear_y, transforms, translate_x, translate_y, warp
from prune4rel.errors import InputError

SLOPES = [*torch.linspace(-0.3, 0.3, 21).tolist(), *[0.03 * level for level in range(-10, 11)], -1.0, 1.0, 2.7]
DISTANCES = [*range(-34, 35), -0.5, 0.5, 1.5, -7.5, 3.49999, -3.50001, 0.499999999, 1e-9]
DEGREES = [*range(-180, 181, 15), *[3 * level for level in range(-10, 11)], 0.01, -0.01, 44.9, 720.5]
WARPS = [
    (shear_x, Operation.SHEAR_X, SLOPES),
    (shear_y, Operation.SHEAR_Y, SLOPES),
    (translate_x, Operation.TRANSLATE_X, DISTANCES),
    (translate_y, Operation.TRANSLATE_Y, DISTANCES),
    (rotate, Operation.ROTATE, DEGREES),
]


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("function", "operation", "magnitudes"), WARPS)
def test_every_warp_is_pillows_to_the_pixel(function, operation, magnitudes, size, channels):
    images, numbers = repeated(awkward(*size, channels=channels)[:4], magnitudes)
    assert torch.equal(function(images, numbers), pillow.each(images, operation, numbers.tolist()))


def test_any_angle_is_pillows(rng):
    degrees = torch.from_numpy(rng.uniform(-360, 360, 2000))
    images = natural(2000)
    assert torch.equal(rotate(images, degrees), pillow.each(images, Operation.ROTATE, degrees.tolist()))


def test_any_matrix_is_pillows(rng):
    matrices = torch.from_numpy(rng.normal(size=(500, 6)) * [1, 1, 20, 1, 1, 20])
    images = natural(500, height=20, width=30)
    expected = [
        pillow.from_pillow(pillow.affine(pillow.to_pillow(image), matrix.tolist()))
        for image, matrix in zip(images, matrices, strict=True)
    ]
    assert torch.equal(warp(images, matrices), torch.stack(expected))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_floating_point_values_are_moved_unchanged(dtype):
    images = natural(40)
    degrees = torch.linspace(-30, 30, 40)
    moved = rotate(images.to(dtype) / 255, degrees)
    assert moved.dtype == dtype
    assert torch.equal(moved, rotate(images, degrees).to(dtype) / 255)


def test_one_number_does_for_all():
    images = natural(5)
    assert torch.equal(rotate(images, 20), rotate(images, torch.full((5,), 20.0)))


@pytest.mark.parametrize("function", [shear_x, shear_y, translate_x, translate_y, rotate])
def test_zero_changes_nothing_and_returns_a_copy(function):
    images = natural(3)
    result = function(images, 0.0)
    assert torch.equal(result, images)
    assert result.data_ptr() != images.data_ptr()


@pytest.mark.parametrize("shape", [(0, 3, 32, 32), (2, 3, 0, 5)])
def test_nothing_in_nothing_out(shape):
    images = torch.zeros(shape, dtype=torch.uint8)
    assert rotate(images, 10.0).shape == shape


def test_images_that_are_not_contiguous():
    images = natural(4).to(memory_format=torch.channels_last)[::2, :, :, 4:20]
    assert torch.equal(rotate(images, 33.0), rotate(images.contiguous(), 33.0))


@pytest.mark.parametrize("degrees", [torch.zeros(4), torch.zeros(3, 1)])
def test_wrong_number_of_magnitudes(degrees):
    with pytest.raises(InputError, match="one for each of the 3 images"):
        rotate(natural(3), degrees)


def test_pick_takes_places_of_another_size():
    images = torch.arange(8, dtype=torch.uint8).view(2, 1, 2, 2)
    assert transforms.pick(images, torch.tensor([[[3]], [[0]]])).flatten().tolist() == [3, 4]
