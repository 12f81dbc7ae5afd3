"""Descent with rounding in one launch, beside the steps it stands for. All of this needs a GPU."""

import copy

import pytest
import torch
from torch import nn

from prune4rel.gpu.layers import Halves
from prune4rel.networks import make
from prune4rel.training.step import SGD

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def network_and_gradients(*, channels_last):
    torch.manual_seed(0)
    network = make("small-cnn", 10, shape=(3, 8, 8), width=24).cuda()
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
    return network, [[torch.randn_like(p) for p in network.parameters()] for _ in range(4)]


def give(network, halves, gradients):
    halved = {id(whole): half for whole, half in halves.pairs()}
    for parameter, gradient in zip(network.parameters(), gradients, strict=True):
        half = halved.get(id(parameter))
        if half is None:
            parameter.grad = gradient.clone()
        else:
            half.grad, parameter.grad = gradient.bfloat16(), None


def at_once(descent, halves):
    assert descent.step_from(halves)


def one_by_one(descent, halves):
    halves.collect()
    descent.step()
    halves.round()


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_all_at_once_is_one_by_one(channels_last, momentum, nesterov, weight_decay):
    first, gradients = network_and_gradients(channels_last=channels_last)
    found = []
    for network, step in ((first, at_once), (copy.deepcopy(first), one_by_one)):
        halves = Halves(network)
        descent = SGD(network.parameters(), momentum=momentum, nesterov=nesterov, weight_decay=weight_decay)
        descent.set_rate(0.1)
        for some in gradients:
            give(network, halves, some)
            step(descent, halves)
        assert all(torch.equal(half, whole.bfloat16()) for whole, half in halves.pairs())
        found.append(([p.detach() for p in network.parameters()], descent.momenta if momentum else []))
    for mine, other in zip(*found, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


def test_it_can_be_recorded_and_follows_the_rate():
    network, (gradients, *_) = network_and_gradients(channels_last=True)
    halves = Halves(network)
    descent = SGD(network.parameters(), momentum=0.0, nesterov=False, weight_decay=0.0)
    give(network, halves, gradients)
    descent.set_rate(0.0)
    at_once(descent, halves)  # compiles
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        at_once(descent, halves)
    before = [p.detach().clone() for p in network.parameters()]
    graph.replay()
    assert all(map(torch.equal, before, network.parameters()))
    descent.set_rate(1.0)
    graph.replay()
    for old, new, gradient in zip(before, network.parameters(), gradients, strict=True):
        torch.testing.assert_close(new, old - gradient, rtol=1e-2, atol=2e-2)
    assert all(torch.equal(half, whole.bfloat16()) for whole, half in halves.pairs())


def test_where_a_gradient_is_missing_or_lies_otherwise_nothing_is_done():
    network, (gradients, *_) = network_and_gradients(channels_last=True)
    halves = Halves(network)
    descent = SGD(network.parameters(), momentum=0.9, nesterov=True, weight_decay=0.0)
    descent.set_rate(1.0)
    before = [p.detach().clone() for p in network.parameters()]
    give(network, halves, gradients)
    half = halves.pairs()[1][1]
    half.grad = half.grad.contiguous()
    assert not descent.step_from(halves)
    half.grad = None
    assert not descent.step_from(halves)
    assert all(map(torch.equal, before, network.parameters()))


def test_frozen_weights_stay_as_they_are():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)).cuda()
    network[0].requires_grad_(requires_grad=False)
    before = network[0].weight.clone()
    halves = Halves(network)
    descent = SGD(network.parameters(), momentum=0.9, nesterov=True, weight_decay=0.1)
    descent.set_rate(1.0)
    ((_, half),) = halves.pairs()
    half.grad = torch.ones_like(half)
    at_once(descent, halves)
    assert torch.equal(network[0].weight, before)
    assert torch.equal(network[1].weight.bfloat16(), half)
