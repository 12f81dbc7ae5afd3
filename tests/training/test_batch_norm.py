from copy import deepcopy

import pytest
import torch
from tests.learners.pretend_ranks import in_ranks
from torch import nn

from prune4rel.errors import InputError
from prune4rel.loading.schedule import Ranks
from prune4rel.networks import make
from prune4rel.training.batch_norm import SynchronisedBatchNorm, synchronise

SHAPES = {nn.BatchNorm1d: (7, 3), nn.BatchNorm2d: (7, 3, 2, 2), nn.BatchNorm3d: (7, 3, 2, 1, 2)}


class Activating(nn.BatchNorm2d):
    """As in timm: also drops and activates."""

    def __init__(self, features):
        super().__init__(features)
        self.drop, self.act = nn.Identity(), nn.PReLU()

    def forward(self, x):
        return self.act(self.drop(super().forward(x)))


class Odd(nn.BatchNorm2d):
    """Does something that nobody knows of."""


def inputs_for(kind):
    return torch.randn(SHAPES[kind], generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def two_batches(layer, x, ranks):
    """Outputs, gradients and running statistics after two batches of which all ranks hold a part."""
    x = x.clone().requires_grad_()
    first = layer(x)
    second = layer(2 * x + first**2)
    ranks.once((ranks.sum((second**3).sum(0)) ** 2).sum()).backward()
    gradients = [parameter.grad for parameter in layer.parameters()]
    ranks.reduce_(gradients)
    return [ranks.gather(second), ranks.gather(x.grad), *gradients, *layer.buffers()]


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}])
@pytest.mark.parametrize("kind", SHAPES)
def test_ranks_normalise_as_one(kind, options, world):
    layer, x = kind(3, **options).double(), inputs_for(kind)
    expected = two_batches(deepcopy(layer), x, Ranks())
    found = in_ranks(
        world, lambda ranks: two_batches(SynchronisedBatchNorm(deepcopy(layer), ranks), ranks.mine(x), ranks)
    )
    for each in found:
        for values, wanted in zip(each, expected, strict=True):
            torch.testing.assert_close(values, wanted)


def test_a_rank_without_rows_takes_part():
    layer, x = nn.BatchNorm2d(3).double(), inputs_for(nn.BatchNorm2d)[:1]
    expected = two_batches(deepcopy(layer), x, Ranks())
    for each in in_ranks(
        2, lambda ranks: two_batches(SynchronisedBatchNorm(deepcopy(layer), ranks), ranks.mine(x), ranks)
    ):
        for values, wanted in zip(each, expected, strict=True):
            torch.testing.assert_close(values, wanted)


@pytest.mark.parametrize("rows", [0, 2])
def test_weights_of_the_layer_for_gpus_get_a_gradient_on_a_rank_without_rows(rows):
    layer = nn.Sequential(nn.BatchNorm2d(3))
    synchronise(layer, Ranks(), fused=True)
    (hook,) = layer[0]._forward_hooks.values()
    y = torch.ones(rows, 3, 2, 2)
    found = hook(layer[0], (y,), y)  # the layer itself needs a GPU
    if rows:
        assert found is None
        return
    found.sum().backward()
    assert all(torch.equal(parameter.grad, torch.zeros(3)) for parameter in layer.parameters())


def test_in_evaluation_the_running_statistics_count():
    layer = nn.BatchNorm1d(3)
    x = torch.randn(5, 3)
    layer(x)
    layer.eval()
    stand_in = SynchronisedBatchNorm(layer, Ranks())
    assert not stand_in.training
    assert torch.equal(stand_in(x[:1]), layer(x[:1]))


def test_half_precision_stays_what_it_is():
    x = 300 + torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    y = SynchronisedBatchNorm(nn.BatchNorm1d(3), Ranks())(x.bfloat16())
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), nn.BatchNorm1d(3)(x.bfloat16().float()), atol=0.02, rtol=0.02)


def network():
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.ModuleDict({"inner": nn.BatchNorm2d(4)}), Activating(4), nn.Flatten())


def test_weights_and_names_stay():
    model = network()
    before, names = dict(model.named_parameters()), list(model.state_dict())
    synchronise(model, Ranks(), fused=False)
    assert isinstance(model[1]["inner"], SynchronisedBatchNorm)
    assert list(model.state_dict()) == names
    assert all(after is before[name] for name, after in model.named_parameters())
    first = model[2]
    synchronise(model, Ranks(), fused=False)
    assert model[2] is first


def test_layers_that_activate_go_on_doing_so():
    layer = Activating(3)
    x = torch.randn(4, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(SynchronisedBatchNorm(layer, Ranks())(x), layer(x))


def test_on_a_gpu_the_fused_layer_is_taken_where_it_does_the_same():
    model = network()
    names = list(model.state_dict())
    synchronise(model, Ranks(), fused=True)
    assert type(model[1]["inner"]) is nn.SyncBatchNorm
    assert type(model[2]) is SynchronisedBatchNorm
    assert list(model.state_dict()) == names


def test_an_unknown_kind_of_normalisation_is_refused():
    with pytest.raises(InputError, match="a layer of type Odd"):
        synchronise(nn.Sequential(Odd(3)), Ranks(), fused=False)


def test_a_network_whose_branches_meet_in_its_normalisations_computes_the_same():
    torch.manual_seed(0)
    plain = make("preact-resnet18", 3, shape=(3, 16, 16)).double()
    spread = deepcopy(plain)
    synchronise(spread, Ranks(), fused=False)
    x = torch.randn(4, 3, 16, 16).double()
    outputs = [network(x) for network in (plain, spread)]
    torch.testing.assert_close(*outputs)
    gradients = [
        torch.autograd.grad(y.square().sum(), list(network.parameters()))
        for network, y in zip((plain, spread), outputs, strict=True)
    ]
    torch.testing.assert_close(*gradients)
