import pytest
import torch

from prune4rel.networks import aside as module
from prune4rel.networks.aside import Aside, beside, join, offered

CPU = torch.device("cpu")


def test_without_an_offer_work_is_done_at_once():
    assert offered() is None
    assert beside(lambda: 3) == 3
    join()


def test_an_offer_ends_with_its_block():
    aside = Aside(CPU)
    with aside.offered():
        assert offered() is aside
        assert beside(lambda: 3) == 3
    assert offered() is None


def test_an_offer_ends_with_an_error():
    aside = Aside(CPU)
    with pytest.raises(ValueError, match="no"), aside.offered():
        raise ValueError("no")
    assert offered() is None


def test_offers_can_be_nested():
    outer, inner = Aside(CPU), Aside(CPU)
    with outer.offered():
        with inner.offered():
            assert offered() is inner
        assert offered() is outer


def test_uses_are_counted_anew_in_every_block():
    aside = Aside(CPU)
    with aside.offered():
        aside.uses[1] += 1
    with aside.offered():
        assert not aside.uses


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestOnAGpu:
    def test_what_is_begun_sees_what_came_before_and_is_seen_after_join(self):
        aside = Aside(torch.device("cuda"))
        for number in range(20):
            with aside.offered():
                x = torch.full((4096, 4096), 1.0 + number, device="cuda")
                for _ in range(5):
                    x = x @ torch.eye(4096, device="cuda")
                twice = beside(lambda x=x: 2 * x, x)
                del x  # its memory must not be had by others yet
                other = [torch.zeros((4096, 4096), device="cuda") for _ in range(3)]
                join()
                assert torch.equal(twice, torch.full_like(twice, 2.0 + 2 * number)), len(other)

    def test_no_more_than_a_few_are_kept(self):
        aside = Aside(torch.device("cuda"))
        with aside.offered():
            for _ in range(10):
                aside.make_room()
                beside(lambda: torch.ones(3, device="cuda").sum())
                assert len(aside._unfinished) <= module.MOST_UNFINISHED
        assert not aside._unfinished
