import pytest
import torch

from prune4rel.augment import Centres, cutout, draw_centres
from prune4rel.errors import InputError


def slow_cutout(image, row, column, size):
    top, left = row - size // 2, column - size // 2
    result = image.clone()
    result[:, max(0, top) : max(0, top + size), max(0, left) : max(0, left + size)] = 0
    return result


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [1, 2, 5, 16, 100])
@pytest.mark.parametrize(("height", "width"), [(32, 32), (9, 20), (1, 1)])
def test_every_centre(height, width, size, dtype):
    rows, columns = torch.cartesian_prod(torch.arange(height), torch.arange(width)).view(-1, 2).unbind(1)
    images = (torch.rand(len(rows), 3, height, width, generator=torch.Generator().manual_seed(0)) * 200 + 1).to(dtype)
    expected = [slow_cutout(*item, size) for item in zip(images, rows.tolist(), columns.tolist(), strict=True)]
    result = cutout(images, Centres(rows, columns), size=size)
    assert result.dtype == dtype
    assert torch.equal(result, torch.stack(expected))


def test_sixteen_pixels_are_the_default_and_the_input_is_left_alone():
    images = torch.ones(1, 3, 32, 32)
    result = cutout(images, Centres(torch.tensor([16]), torch.tensor([16])))
    assert result[0, 0].sum() == 32 * 32 - 16 * 16
    assert images.sum() == 3 * 32 * 32


def test_distribution():
    count = 64_000
    centres = draw_centres(count, 32, 40, torch.Generator().manual_seed(0))
    for places, length in ((centres.rows, 32), (centres.columns, 40)):
        shares = torch.bincount(places, minlength=length).double() / count
        assert len(shares) == length
        assert (shares - 1 / length).abs().max() < 5 * (1 / length / count) ** 0.5


def test_none():
    assert cutout(torch.zeros(0, 3, 8, 8), draw_centres(0, 8, 8, torch.Generator())).shape == (0, 3, 8, 8)


def test_wrong_number_of_centres():
    with pytest.raises(InputError, match="3 centres were given for 2 images"):
        cutout(torch.zeros(2, 3, 8, 8), draw_centres(3, 8, 8, torch.Generator()))
