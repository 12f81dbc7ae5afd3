from itertools import product

import pytest
import torch
from torch import nn

from prune4rel.training.step import SGD


def networks():
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    second = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    second.load_state_dict(first.state_dict())
    return first, second


@pytest.mark.parametrize(("momentum", "nesterov", "weight_decay"), list(product([0.0, 0.9], [False, True], [0.0, 0.1])))
def test_it_descends_as_pytorch_does(momentum, nesterov, weight_decay):
    first, second = networks()
    nesterov_there = nesterov and momentum > 0  # PyTorch refuses what means nothing
    theirs = torch.optim.SGD(
        second.parameters(), lr=1.0, momentum=momentum, nesterov=nesterov_there, weight_decay=weight_decay
    )
    ours = SGD(first.parameters(), momentum=momentum, nesterov=nesterov, weight_decay=weight_decay)
    for step in range(6):
        rate = 0.3 / (1 + step)
        ours.set_rate(rate)
        theirs.param_groups[0]["lr"] = rate
        x = torch.randn(7, 5)
        for network, descend in ((first, ours.step), (second, theirs.step)):
            network.zero_grad()
            (network(x) ** 2).mean().backward()
            descend()
    for mine, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-7)


def test_what_has_no_gradient_stays():
    first, _ = networks()
    before = [weights.detach().clone() for weights in first.parameters()]
    descent = SGD(first.parameters(), momentum=0.9, nesterov=True, weight_decay=0.5)
    descent.set_rate(1.0)
    descent.step()
    first[0].bias.grad = torch.ones(4)
    descent.step()
    changed = [not torch.equal(old, new) for old, new in zip(before, first.parameters(), strict=True)]
    assert changed == [False, True, False, False]


def test_momenta_are_all_there_is_to_save():
    first, second = networks()
    descents = [SGD(n.parameters(), momentum=0.9, nesterov=True, weight_decay=0.0) for n in (first, second)]
    for weights in first.parameters():
        weights.grad = torch.ones_like(weights)
    descents[0].set_rate(0.1)
    descents[0].step()
    descents[1].load_state_dict(descents[0].state_dict())
    assert all(map(torch.equal, descents[0].momenta, descents[1].momenta))
    assert all((momentum == 1).all() for momentum in descents[1].momenta)


def test_frozen_weights_are_left_out():
    first, _ = networks()
    first[0].requires_grad_(requires_grad=False)
    assert len(SGD(first.parameters(), momentum=0.9, nesterov=True, weight_decay=0.0).targets) == 2
