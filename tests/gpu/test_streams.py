import pytest
import torch

from prune4rel.gpu import streams as module
from prune4rel.gpu.streams import SideStream, beside, current, join

CPU = torch.device("cpu")


def test_without_an_offer_work_is_done_at_once():
    assert current() is None
    assert beside(lambda: 3) == 3
    join()


def test_an_offer_ends_with_its_block():
    side = SideStream(CPU)
    with side.active():
        assert current() is side
        assert beside(lambda: 3) == 3
    assert current() is None


def test_an_offer_ends_with_an_error():
    side = SideStream(CPU)
    with pytest.raises(ValueError, match="no"), side.active():
        raise ValueError("no")
    assert current() is None


def test_offers_can_be_nested():
    outer, inner = SideStream(CPU), SideStream(CPU)
    with outer.active():
        with inner.active():
            assert current() is inner
        assert current() is outer


def test_uses_are_counted_anew_in_every_block():
    side = SideStream(CPU)
    with side.active():
        side.uses[1] += 1
    with side.active():
        assert not side.uses


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestOnAGpu:
    def test_what_is_begun_sees_what_came_before_and_is_seen_after_join(self):
        side = SideStream(torch.device("cuda"))
        for number in range(20):
            with side.active():
                x = torch.full((4096, 4096), 1.0 + number, device="cuda")
                for _ in range(5):
                    x = x @ torch.eye(4096, device="cuda")
                twice = beside(lambda x=x: 2 * x, x)
                del x  # its memory must not be had by others yet
                other = [torch.zeros((4096, 4096), device="cuda") for _ in range(3)]
                join()
                assert torch.equal(twice, torch.full_like(twice, 2.0 + 2 * number)), len(other)

    def test_no_more_than_a_few_are_kept(self):
        side = SideStream(torch.device("cuda"))
        with side.active():
            for _ in range(10):
                side.make_room()
                beside(lambda: torch.ones(3, device="cuda").sum())
                assert len(side._unfinished) <= module.MOST_UNFINISHED
        assert not side._unfinished
