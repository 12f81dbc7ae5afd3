import pytest
import torch
from tests.oracles import pillow
from tests.oracles.images import natural

from prune4rel.augment import AutoAugment, Operation, Operations, RandAugment, apply_operations, magnitude_of
from prune4rel.errors import InputError


def drawn(policy, count, seed=0):
    return policy.draw(count, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Operation.SHEAR_X, lambda level: 0.03 * level),
        (Operation.SHEAR_Y, lambda level: 0.03 * level),
        (Operation.TRANSLATE_X, lambda level: level),
        (Operation.TRANSLATE_Y, lambda level: level),
        (Operation.ROTATE, lambda level: 3 * level),
        (Operation.SOLARIZE, lambda level: [256, 231, 205, 180, 154, 128, 103, 77, 52, 26, 0][level]),
        (Operation.POSTERIZE, lambda level: [4, 4, 4, 3, 3, 2, 2, 2, 1, 1, 0][level]),
        (Operation.BRIGHTNESS, lambda level: 0.1 + 0.18 * level),
        (Operation.CONTRAST, lambda level: 0.1 + 0.18 * level),
        (Operation.COLOR, lambda level: 0.1 + 0.18 * level),
        (Operation.SHARPNESS, lambda level: 0.1 + 0.18 * level),
        (Operation.INVERT, lambda _: 0),
        (Operation.AUTO_CONTRAST, lambda _: 0),
        (Operation.EQUALIZE, lambda _: 0),
    ],
)
def test_levels_are_the_official_ones(operation, expected):
    for level in range(11):
        assert magnitude_of(operation, level) == pytest.approx(expected(level))


@pytest.mark.parametrize("level", [-0.1, 10.1])
def test_levels_end_at_ten(level):
    with pytest.raises(InputError, match="between 0 and 10"):
        magnitude_of(Operation.ROTATE, level)


@pytest.mark.parametrize("size", [(32, 32), (20, 36)])
@pytest.mark.parametrize("policy", [AutoAugment(), RandAugment(3, 5), RandAugment(1, 10), RandAugment(2, 2.5)])
def test_a_mixed_batch_is_pillows_image_by_image(policy, size):
    images = natural(400, height=size[0], width=size[1])
    operations = drawn(policy, 400)
    result = apply_operations(images, operations)
    expected = pillow.in_rounds(images, operations)
    if pillow.BLEND_TOLERANCE == 0:
        assert torch.equal(result, expected)
    else:
        assert (result == expected).double().mean() > 0.999


def test_every_operation_alone():
    images = natural(30)
    for operation in Operation:
        magnitude = magnitude_of(operation, 7)
        operations = Operations(torch.full((30, 1), int(operation)), torch.full((30, 1), magnitude))
        expected = pillow.each(images, operation, [magnitude] * 30)
        result = apply_operations(images, operations)
        assert (result.int() - expected.int()).abs().max() <= pillow.BLEND_TOLERANCE, operation


@pytest.mark.parametrize("chunk", [1, 7, 64, 99, 100])
def test_chunks_do_not_show(chunk):
    images, operations = natural(100), drawn(AutoAugment(), 100)
    pieces = [
        apply_operations(images[start : start + chunk], operations[start : start + chunk])
        for start in range(0, 100, chunk)
    ]
    assert torch.equal(torch.cat(pieces), apply_operations(images, operations))


def test_order_does_not_show():
    images, operations = natural(100), drawn(AutoAugment(), 100)
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    expected = apply_operations(images, operations)[order]
    assert torch.equal(apply_operations(images[order], operations[order]), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_floats_are_levels_over_255(dtype):
    images, operations = natural(100), drawn(AutoAugment(), 100)
    result = apply_operations((images.double() / 255).to(dtype), operations)
    assert result.dtype == dtype
    assert torch.equal(result, (apply_operations(images, operations).double() / 255).to(dtype))


def test_inputs_are_left_alone():
    images, operations = natural(100), drawn(AutoAugment(), 100)
    before = images.clone()
    apply_operations(images, operations)
    assert torch.equal(images, before)


@pytest.mark.parametrize("shape", [(0, 3, 32, 32), (1, 3, 32, 32), (2, 3, 0, 4), (5, 1, 9, 6)])
def test_odd_batches(shape):
    images = torch.zeros(shape, dtype=torch.uint8)
    assert apply_operations(images, drawn(AutoAugment(), shape[0])).shape == shape


def test_grey_images_are_pillows():
    images, operations = natural(200)[:, :1], drawn(RandAugment(2, 8), 200)
    expected = pillow.in_rounds(images, operations)
    assert (apply_operations(images, operations) == expected).double().mean() >= 1 - 0.001 * pillow.BLEND_TOLERANCE


def test_no_rounds_at_all():
    images = natural(2)
    nothing = Operations(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(2, 0))
    assert torch.equal(apply_operations(images, nothing), images)


def test_wrong_number_of_operations():
    with pytest.raises(InputError, match="operations for 3 examples were given for 2 images"):
        apply_operations(natural(2), drawn(AutoAugment(), 3))


@pytest.mark.parametrize("code", [-1, len(Operation)])
def test_unknown_operations(code):
    with pytest.raises(InputError, match="from 0 to 14"):
        apply_operations(natural(1), Operations(torch.tensor([[code]]), torch.zeros(1, 1)))
