"""The same result on a GPU, to the last bit."""

import pytest
import torch
from tests.oracles.images import awkward, natural

from prune4rel import augment
from prune4rel.augment import AutoAugment, RandAugment, StrongView, WeakView
from prune4rel.augment.views import crop_mirror_and_normalise_into

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("name", ["auto_contrast", "equalize", "invert"])
def test_operations_without_magnitude(name):
    images, function = torch.cat([awkward(32, 32), natural(200)]), getattr(augment, name)
    assert torch.equal(function(images.cuda()).cpu(), function(images))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("shear_x", -0.5, 0.5),
        ("shear_y", -0.5, 0.5),
        ("translate_x", -12, 12),
        ("translate_y", -12, 12),
        ("rotate", -180, 180),
        ("solarize", 0, 256),
        ("posterize", 0, 8),
        ("brightness", 0, 2),
        ("contrast", 0, 2),
        ("color", 0, 2),
        ("sharpness", 0, 2),
    ],
)
def test_operations_with_magnitude(name, low, high):
    images, function = natural(300, height=24, width=40), getattr(augment, name)
    magnitudes = torch.linspace(low, high, 300, dtype=torch.float64)
    magnitudes = magnitudes.round() if name in ("solarize", "posterize") else magnitudes
    assert torch.equal(function(images.cuda(), magnitudes).cpu(), function(images, magnitudes))
    assert torch.equal(function(images.cuda(), magnitudes.cuda()).cpu(), function(images, magnitudes))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32])
@pytest.mark.parametrize("policy", [AutoAugment(), RandAugment(3, 5)])
def test_mixed_batches(policy, dtype):
    images = natural(2000) if dtype == torch.uint8 else (natural(2000).double() / 255).to(dtype)
    operations = policy.draw(2000, generator())
    expected = augment.apply_operations(images, operations)
    assert torch.equal(augment.apply_operations(images.cuda(), operations).cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("view", [WeakView, StrongView])
def test_views(view, dtype):
    images = natural(2000)
    expected = view(MEAN, STD, dtype=dtype)(images, generator())
    assert torch.equal(view(MEAN, STD, dtype=dtype)(images.cuda(), generator()).cpu(), expected)


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("channels", "height", "width", "padding"), [(3, 32, 32, 4), (1, 28, 20, 0), (3, 7, 45, 6)])
def test_frames_in_one_go(channels, height, width, padding, dtype, order):
    """Also far outside of the image, and into memory that holds something else."""
    images = natural(300, height=height, width=width)[:, :channels].contiguous()
    frames = augment.draw_frames(300, generator(), padding=padding)
    values = torch.full(images.shape, torch.nan, dtype=dtype, device="cuda").to(memory_format=order)
    crop_mirror_and_normalise_into(values, images.cuda(), frames, MEAN[:channels], STD[:channels], padding=padding)
    framed = augment.crop_and_mirror(images, frames, padding=padding)
    assert torch.equal(values.cpu(), augment.normalise(framed, MEAN[:channels], STD[:channels], dtype=dtype))


def test_mixup():
    images, mixture = natural(100).float(), augment.draw_mixture(100, 1.0, generator())
    torch.testing.assert_close(augment.mix(images.cuda(), mixture).cpu(), augment.mix(images, mixture))


def test_generators_may_live_there():
    drawn = StrongView(MEAN, STD).draw((100, 3, 32, 32), torch.Generator("cuda").manual_seed(0))
    assert drawn.operations.codes.device.type == drawn.frames.mirrored.device.type == "cpu"
    assert augment.draw_mixture(10, 1.0, torch.Generator("cuda").manual_seed(0)).shares.device.type == "cpu"


@pytest.mark.parametrize("count", [0, 1])
def test_none_and_one(count):
    assert StrongView(MEAN, STD)(natural(count).cuda(), generator()).shape == (count, 3, 32, 32)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_nothing_waits_for_the_device():
    images, view = natural(500).cuda(), StrongView(MEAN, STD)
    view(images, generator())
    torch.cuda.set_sync_debug_mode("error")
    try:
        view(images, generator())
    finally:
        torch.cuda.set_sync_debug_mode("default")
