import torch

from prune4rel.augment import AutoAugment, StrongView, draw_frames
from prune4rel.augment.draws import integers, uniform


def test_a_seed_says_it_all():
    first, second = (AutoAugment().draw(100, torch.Generator().manual_seed(7)) for _ in range(2))
    other = AutoAugment().draw(100, torch.Generator().manual_seed(8))
    assert torch.equal(first.codes, second.codes)
    assert torch.equal(first.magnitudes, second.magnitudes)
    assert not torch.equal(first.codes, other.codes)


def test_nothing_else_is_drawn_from():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    StrongView((0.5,) * 3, (0.5,) * 3).draw((10, 3, 32, 32), torch.Generator().manual_seed(0))
    assert torch.equal(torch.get_rng_state(), before)


def test_parts_of_nested_draws():
    drawn = StrongView((0.5,) * 3, (0.5,) * 3).draw((10, 3, 32, 32), torch.Generator().manual_seed(0))
    order = torch.tensor([3, 1])
    assert len(drawn) == 10
    assert len(drawn[4:6]) == len(drawn[order]) == 2
    assert torch.equal(drawn[order].operations.codes, drawn.operations.codes[order])
    assert torch.equal(drawn[4:6].centres.rows, drawn.centres.rows[4:6])


def test_none():
    assert len(draw_frames(0, torch.Generator())) == 0


def test_a_default_device_does_not_matter():
    with torch.device("meta"):
        generator = torch.Generator("cpu").manual_seed(0)
        drawn = StrongView((0.5,) * 3, (0.5,) * 3).draw((10, 3, 32, 32), generator)
    assert drawn.operations.magnitudes.device.type == drawn.frames.rows.device.type == "cpu"


def test_numbers_are_in_range():
    generator = torch.Generator().manual_seed(0)
    numbers = uniform((1000,), generator)
    assert 0 <= numbers.min() < 0.01
    assert 0.99 < numbers.max() < 1
    assert integers(3, (1000,), generator).unique().tolist() == [0, 1, 2]
