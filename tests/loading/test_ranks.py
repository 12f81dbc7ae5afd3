import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.learners.pretend_ranks import in_ranks

from prune4rel.loading.ranks import Ranks, first_and_last


@given(st.integers(0, 200), st.integers(1, 9))
def test_parts_cover_everything_once_and_evenly(count, world):
    parts = [range(*first_and_last(count, rank, world)) for rank in range(world)]
    assert [row for part in parts for row in part] == list(range(count))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_alone_everything_is_mine():
    ranks, rows = Ranks(), torch.arange(3.0, requires_grad=True)
    assert (ranks.rank, ranks.world) == (0, 1)
    assert ranks.mine(rows) is rows
    assert ranks.sum(rows) is rows
    assert ranks.once(rows) is rows
    assert not ranks.gather(rows).requires_grad
    gradients = [torch.ones(2)]
    ranks.reduce_(gradients)
    assert gradients[0].tolist() == [1, 1]
    ranks.barrier()


@pytest.mark.parametrize("world", [1, 2, 3])
def test_what_the_tests_pretend_is_what_is_promised(world):
    rows = torch.arange(7.0)

    def work(ranks):
        mine = ranks.mine(rows).clone().requires_grad_()
        (ranks.once(ranks.sum(mine.sum()) ** 2) + (mine**2).sum()).backward()
        return ranks.gather(mine), mine.grad

    results = in_ranks(world, work)
    assert all(torch.equal(whole, rows) for whole, _ in results)
    torch.testing.assert_close(torch.cat([grad for _, grad in results]), 2 * rows.sum() + 2 * rows)
