import torch
from torch import nn

from prune4rel.learners.learner import Follower


def test_follows_weights_and_statistics_and_takes_counts_over():
    network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    follower = Follower(network)
    before = {name: values.clone() for name, values in follower.network.state_dict().items()}
    network.train()
    with torch.no_grad():
        network[0].weight.add_(1.0)
        network(torch.randn(8, 2))
    follower.follow(network, torch.tensor(0.25))
    for name, values in follower.network.state_dict().items():
        new = network.state_dict()[name]
        expected = 0.25 * before[name] + 0.75 * new if values.is_floating_point() else new
        torch.testing.assert_close(values, expected)
    assert int(follower.network[1].num_batches_tracked) == 1


def test_stays_in_evaluation_mode_and_out_of_training():
    follower = Follower(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    nn.ModuleList([follower]).train()
    assert not any(module.training for module in follower.modules())
    assert not any(weights.requires_grad for weights in follower.parameters())
    assert not follower(torch.randn(3, 2, requires_grad=True)).requires_grad


def test_is_a_copy():
    network = nn.Linear(1, 1)
    follower = Follower(network)
    before = follower.network.weight.clone()
    nn.init.constant_(network.weight, 7.0)
    assert torch.equal(follower.network.weight, before)
