import pytest
import torch
from tests.oracles.images import natural
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from prune4rel.augment import (
    PlainView,
    RandAugment,
    StrongView,
    Views,
    WeakView,
    apply_operations,
    crop_and_mirror,
    cutout,
    normalise,
)
from prune4rel.errors import InputError

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_weak_view_step_by_step():
    images, view = natural(50, height=20, width=28), WeakView(MEAN, STD)
    frames = view.draw(images.shape, generator())
    expected = normalise(crop_and_mirror(images, frames), MEAN, STD)
    assert torch.equal(view.apply(images, frames), expected)
    assert torch.equal(view(images, generator()), expected)


def test_the_strong_view_step_by_step():
    images, view = natural(50, height=20, width=28), StrongView(MEAN, STD)
    drawn = view.draw(images.shape, generator())
    framed = crop_and_mirror(apply_operations(images, drawn.operations), drawn.frames)
    expected = cutout(normalise(framed, MEAN, STD), drawn.centres)
    assert torch.equal(view.apply(images, drawn), expected)
    assert torch.equal(view(images, generator()), expected)


def test_the_plain_view_only_normalises():
    images = natural(5)
    assert torch.equal(PlainView(MEAN, STD)(images), normalise(images, MEAN, STD))
    assert torch.equal(PlainView(MEAN, STD)(images, generator()), normalise(images, MEAN, STD))


@pytest.mark.parametrize("chunk", [1, 13, 64, 1000])
def test_chunks_do_not_show(chunk):
    images, view = natural(1000), StrongView(MEAN, STD)
    drawn = view.draw(images.shape, generator())
    whole = view.apply(images, drawn)
    starts = range(0, 1000 if chunk > 1 else 50, chunk)
    pieces = [view.apply(images[k : k + chunk], drawn[k : k + chunk]) for k in starts]
    assert torch.equal(torch.cat(pieces), whole[: len(starts) * chunk])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("view", [PlainView, WeakView, StrongView])
def test_types(view, dtype):
    images = natural(70)
    result = view(MEAN, STD, dtype=dtype)(images, generator())
    assert result.dtype == dtype
    assert torch.equal(result, view(MEAN, STD)(images, generator()).to(dtype))


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("view", [PlainView, WeakView, StrongView])
def test_none_and_one(view, count):
    assert view(MEAN, STD)(natural(count), generator()).shape == (count, 3, 32, 32)


def test_options():
    images = torch.full((40, 3, 32, 32), 255, dtype=torch.uint8)
    plain = normalise(images, MEAN, STD)
    still = {"padding": 0, "mirror_probability": 0.0}
    assert torch.equal(WeakView(MEAN, STD, **still)(images, generator()), plain)
    zero_level = RandAugment(1, 0)
    whole = StrongView(MEAN, STD, policy=zero_level, cutout_size=0, **still)(images, generator())
    holed = StrongView(MEAN, STD, policy=zero_level, cutout_size=8, **still)(images, generator())
    assert (whole != 0).all()
    assert (holed == 0).flatten(1).sum(1).max() == 3 * 8 * 8


def test_grey_images():
    images = natural(40, height=8, width=8)[:, :1]
    assert StrongView((0.5,), (0.5,))(images, generator()).shape == (40, 1, 8, 8)


def test_what_is_no_batch_of_images_is_refused():
    for view in (PlainView, WeakView, StrongView):
        with pytest.raises(InputError, match="images must"):
            view(MEAN, STD)(torch.zeros(3, 32, 32), generator())


def test_several_views_are_drawn_one_after_the_other():
    images, weak, strong = natural(40), WeakView(MEAN, STD), StrongView(MEAN, STD)
    seeded = generator()
    expected = [weak(images, seeded), weak(images, seeded), strong(images, seeded)]
    result = Views((weak, weak, strong))(images, generator())
    assert all(torch.equal(*pair) for pair in zip(result, expected, strict=True))
    assert not torch.equal(result[0], result[1])


BOTH = Views((WeakView(MEAN, STD), StrongView(MEAN, STD)))


@pytest.mark.parametrize("view", [PlainView(MEAN, STD), WeakView(MEAN, STD), StrongView(MEAN, STD), BOTH])
@pytest.mark.parametrize("where", [slice(5, 30), slice(7, 7), torch.tensor([39, 0, 11])])
def test_drawn_for_all_and_applied_to_some(view, where):
    images = natural(40, height=20, width=28)
    drawn = view.draw(images.shape, generator())
    some, all_of_them = view.apply(images[where], drawn[where]), view.apply(images, drawn)
    called = view(images, generator())
    if not isinstance(view, Views):
        some, all_of_them, called = [some], [all_of_them], [called]
    assert len(drawn) == 40
    for part, whole, direct in zip(some, all_of_them, called, strict=True):
        assert torch.equal(part, whole[where])
        assert torch.equal(whole, direct)


@pytest.mark.parametrize("view", [PlainView(MEAN, STD), WeakView(MEAN, STD), StrongView(MEAN, STD), BOTH])
def test_shapes_that_are_none_of_images_are_refused(view):
    with pytest.raises(InputError, match=r"images must have the shape .* not \(10, 4\)"):
        view.draw((10, 4), generator())


def test_no_views_are_refused():
    with pytest.raises(InputError, match="no views were given"):
        Views(())


@pytest.mark.parametrize("view", [WeakView(MEAN, STD), StrongView(MEAN, STD)])
@pytest.mark.parametrize("count", [3, 500, 900])
def test_parameters_of_other_images_are_refused(view, count):
    with pytest.raises(InputError, match=f"parameters of {count} examples were given for 700 images"):
        view.apply(natural(700), view.draw((count, 3, 32, 32), generator()))


class KernelCount(TorchDispatchMode):
    """How many operations made something on the device that holds shapes only."""

    def __init__(self):
        super().__init__()
        self.kernels = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        made = [value for value in tree_leaves(result) if isinstance(value, torch.Tensor)]
        self.kernels += function.is_view is False and any(value.is_meta for value in made)
        return result


@pytest.mark.parametrize(("view", "most"), [(WeakView, 20), (StrongView, 400)])
def test_everything_happens_on_the_images_device_in_as_many_kernels_whatever_the_batch(view, most):
    counts = []
    for size in (2000, 20_000):
        images = torch.empty((size, 3, 32, 32), dtype=torch.uint8, device="meta")
        with KernelCount() as count:
            result = view(MEAN, STD)(images, generator())
        assert result.is_meta
        assert result.shape == images.shape
        counts.append(count.kernels)
    assert counts[0] == counts[1] <= most
