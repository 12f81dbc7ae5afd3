import pytest
import torch
from torch import nn

from prune4rel.training.step import Average


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))


def test_it_follows_weights_and_statistics_and_takes_counts_over():
    torch.manual_seed(1)
    live = network()
    average = Average(live, decay=0.9)
    expected = {name: tensor.detach().clone().double() for name, tensor in live.state_dict().items()}
    for _ in range(4):
        live(torch.randn(5, 3))
        with torch.no_grad():
            live[0].weight += 1
        average.update()
        for name, tensor in live.state_dict().items():
            expected[name] = 0.9 * expected[name] + 0.1 * tensor if tensor.is_floating_point() else tensor.clone()
    with average.swapped():
        for name, tensor in live.state_dict().items():
            torch.testing.assert_close(tensor.double(), expected[name].double())
        assert live[1].num_batches_tracked == 4


def test_weights_come_back_also_after_an_error():
    live = network()
    average = Average(live, decay=0.5)
    with torch.no_grad():
        live[0].weight.fill_(3)

    def fail():
        assert (live[0].weight != 3).all()
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"), average.swapped():
        fail()
    assert (live[0].weight == 3).all()


def test_weights_stay_where_they_are_in_memory():
    live = network()
    average = Average(live, decay=0.5)
    before = [tensor.data_ptr() for tensor in live.parameters()]
    with average.swapped():
        assert [tensor.data_ptr() for tensor in live.parameters()] == before


def test_it_is_saved_and_restored():
    live = network()
    first, second = Average(live, 0.5), Average(live, 0.5)
    with torch.no_grad():
        live[0].weight += 1
    first.update()
    second.load_state_dict(first.state_dict())
    assert all(map(torch.equal, first._kept, second._kept))
