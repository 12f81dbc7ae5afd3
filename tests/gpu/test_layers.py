"""Copies in half precision, beside what autocast does."""

import copy

import pytest
import torch
from torch import nn

from prune4rel.gpu.layers import Halves
from prune4rel.networks import make

NAMES = ["small-cnn", "preact-resnet18"]


def gradients(network, x, halves=None):
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        if halves is None:
            loss = network(x).square().sum()
        else:
            halves.round()
            with halves.swapped():
                loss = network(x).square().sum()
    loss.backward()
    if halves is not None:
        halves.collect()
    return [parameter.grad for parameter in network.parameters()]


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_autocasts_bit_for_bit(name):
    torch.manual_seed(0)
    plain = make(name, 3, shape=(3, 16, 16))
    ours = copy.deepcopy(plain)
    halves = Halves(ours)
    x = torch.randn(4, 3, 16, 16)
    for _ in range(2):  # the second time weights have changed, and nothing of the first is left
        wanted, found = gradients(plain, x), gradients(ours, x, halves)
        assert all(map(torch.equal, found, wanted))
        with torch.no_grad():
            for network in (plain, ours):
                for parameter in network.parameters():
                    parameter.add_(parameter.grad, alpha=-0.01)
                    parameter.grad = None


def test_the_network_has_its_own_weights_afterwards_also_after_a_failure():
    network = make("small-cnn", 3, shape=(3, 8, 8))
    before = dict(network.named_parameters())
    halves = Halves(network)
    with pytest.raises(RuntimeError, match="channels"), halves.swapped():
        network(torch.zeros(1, 1, 8, 8))
    after = dict(network.named_parameters())
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in before)


def test_frozen_weights_stay_frozen():
    layer = nn.Conv2d(1, 1, 1, bias=False).requires_grad_(requires_grad=False)
    halves = Halves(layer)
    with halves.swapped():
        y = layer(torch.ones(1, 1, 1, 1, dtype=torch.bfloat16))
    assert not y.requires_grad
    halves.collect()
    assert layer.weight.grad is None
