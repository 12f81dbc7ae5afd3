import pytest
import torch

from prune4rel.loading import Batch
from prune4rel.loading.schedule import cut, views_of


def test_views_are_a_tuple_also_of_one():
    x, y = torch.zeros(2, 3), torch.ones(2, 4)
    numbers = torch.tensor([0, 1])
    assert Batch(numbers, x, numbers).views == (x,)
    assert Batch(numbers, (x, y), numbers).views == (x, y)


def test_cutting_shares_memory():
    x = torch.arange(6)
    assert cut(x, 2, 4).data_ptr() == x[2:].data_ptr()
    assert [view.tolist() for view in cut((x, -x), 2, 4)] == [[2, 3], [-2, -3]]


@pytest.mark.parametrize("result", [torch.zeros(2, 3), (torch.zeros(3), torch.zeros(4))])
def test_a_transform_that_loses_rows_is_refused(result):
    with pytest.raises(ValueError, match=r"the transform made [24] rows of 3 inputs"):
        views_of(result, 3)
