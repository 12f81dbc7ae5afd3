import pytest
import torch
from tests.oracles import pillow
from tests.oracles.images import awkward, natural

from prune4rel.augment import Frames, crop_and_mirror, draw_frames, normalise
from prune4rel.augment.views import crop_mirror_and_normalise_into
from prune4rel.errors import InputError


def every_frame(padding):
    rows, columns, mirrored = torch.cartesian_prod(
        torch.arange(2 * padding + 1), torch.arange(2 * padding + 1), torch.arange(2)
    ).unbind(1)
    return Frames(rows, columns, mirrored.bool())


@pytest.mark.parametrize("padding", [0, 1, 4])
@pytest.mark.parametrize("size", [(32, 32), (24, 40), (3, 2), (1, 1)])
def test_every_frame_is_pillows(size, padding):
    frames = every_frame(padding)
    for image in awkward(*size)[:3]:
        images = image.expand(len(frames), -1, -1, -1)
        expected = pillow.crop_and_mirror(images, frames, padding)
        assert torch.equal(crop_and_mirror(images, frames, padding=padding), expected)


def test_the_middle_frame_is_the_image_and_mirroring_twice_too():
    images = natural(3)
    middle = Frames(torch.full((3,), 4), torch.full((3,), 4), torch.zeros(3, dtype=torch.bool))
    mirror = Frames(middle.rows, middle.columns, torch.ones(3, dtype=torch.bool))
    assert torch.equal(crop_and_mirror(images, middle), images)
    assert torch.equal(crop_and_mirror(images, mirror), images.flip(3))
    assert torch.equal(crop_and_mirror(crop_and_mirror(images, mirror), mirror), images)


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_normalised_in_one_go(dtype, order):
    images, frames = natural(50), draw_frames(50, torch.Generator().manual_seed(0), padding=5)
    mean, std = (0.5, 0.4, 0.3), (0.1, 0.2, 0.3)
    values = torch.full(images.shape, torch.nan, dtype=dtype).to(memory_format=order)
    crop_mirror_and_normalise_into(values, images, frames, mean, std, padding=5)
    assert torch.equal(values, normalise(crop_and_mirror(images, frames, padding=5), mean, std, dtype=dtype))
    with pytest.raises(InputError, match="50 frames were given for 49 images"):
        crop_mirror_and_normalise_into(values[1:], images[1:], frames, mean, std, padding=5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_floats_are_moved_unchanged(dtype):
    images = natural(50)
    frames = draw_frames(50, torch.Generator().manual_seed(0))
    assert torch.equal(crop_and_mirror(images.to(dtype), frames), crop_and_mirror(images, frames).to(dtype))


def test_distribution():
    count = 90_000
    frames = draw_frames(count, torch.Generator().manual_seed(0))
    for corners in (frames.rows, frames.columns):
        shares = torch.bincount(corners).double() / count
        assert len(shares) == 9
        assert (shares - 1 / 9).abs().max() < 5 * (1 / 9 / count) ** 0.5
    assert abs(frames.mirrored.double().mean() - 0.5) < 5 * 0.5 / count**0.5
    together = torch.stack([frames.rows.double(), frames.columns.double(), frames.mirrored.double()])
    assert (torch.corrcoef(together) - torch.eye(3)).abs().max() < 0.02


@pytest.mark.parametrize(("probability", "share"), [(0.0, 0), (1.0, 1)])
def test_mirroring_never_or_always(probability, share):
    frames = draw_frames(100, torch.Generator().manual_seed(0), mirror_probability=probability)
    assert frames.mirrored.double().mean() == share


@pytest.mark.parametrize("count", [0, 1])
def test_batches_of_none_and_one(count):
    frames = draw_frames(3, torch.Generator().manual_seed(0))
    images = natural(3)
    assert torch.equal(crop_and_mirror(images[:count], frames[:count]), crop_and_mirror(images, frames)[:count])


def test_wrong_number_of_frames():
    with pytest.raises(InputError, match="3 frames were given for 2 images"):
        crop_and_mirror(natural(2), draw_frames(3, torch.Generator()))
