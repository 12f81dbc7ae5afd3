import copy

import pytest
import torch
from torch import nn

from prune4rel.learners.ranks import Ranks
from prune4rel.networks import make
from prune4rel.networks.aside import Aside, beside, join
from prune4rel.networks.norm_relu import NormReLU
from prune4rel.networks.two_passes import noted_apart
from prune4rel.training.batch_norm import SynchronisedBatchNorm


def images(count=6, channels=3, seed=0):
    return torch.randn(count, channels, 4, 4, generator=torch.Generator().manual_seed(seed)) * (seed + 1) + seed


LAYERS = {
    "batch normalisation": lambda: nn.BatchNorm2d(3),
    "another momentum": lambda: nn.BatchNorm2d(3, momentum=0.7),
    "mean over all batches": lambda: nn.BatchNorm2d(3, momentum=None),
    "double precision": lambda: nn.BatchNorm2d(3, momentum=None).double(),
    "with ReLU": lambda: NormReLU(3),
    "over all ranks": lambda: SynchronisedBatchNorm(nn.BatchNorm2d(3), Ranks()),
    "two kinds": lambda: nn.Sequential(nn.BatchNorm2d(3, momentum=0.7), nn.Conv2d(3, 5, 1), nn.BatchNorm2d(5)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_what_is_noted_apart_is_remembered_after_the_other(name):
    layer = LAYERS[name]()
    kind = next(iter(layer.state_dict().values())).dtype
    before, other, noted = (images(seed=seed).to(kind) for seed in range(3))
    layer(before)
    in_turn = copy.deepcopy(layer)
    with noted_apart(layer) as remember:
        found = layer(noted)
    layer(other)
    remember()
    in_turn(other)
    torch.testing.assert_close(found, in_turn(noted))
    for key, value in in_turn.state_dict().items():
        torch.testing.assert_close(layer.state_dict()[key], value, msg=key)


def test_nothing_is_remembered_before_it_is_told():
    layer = nn.BatchNorm2d(3)
    state = {name: value.clone() for name, value in layer.state_dict().items()}
    memory = layer.running_mean
    with noted_apart(layer):
        layer(images())
    assert layer.running_mean is memory
    assert layer.momentum == 0.1
    for name, value in state.items():
        assert torch.equal(layer.state_dict()[name], value)


def test_layers_that_do_not_learn_go_by_what_they_remember():
    frozen = nn.BatchNorm2d(3)
    frozen(images(seed=3))
    frozen.eval()
    network = nn.Sequential(frozen, nn.BatchNorm2d(3))
    expected = frozen(images())
    with noted_apart(network[:1]) as remember:
        assert torch.equal(network[:1](images()), expected)
    remember()
    assert frozen.num_batches_tracked == 1


def test_networks_that_remember_nothing():
    network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False))
    with noted_apart(network) as remember:
        network(torch.randn(3, 2))
    remember()


def test_after_an_error_the_layers_have_their_memory_again():
    layer = nn.BatchNorm2d(3)
    memory = layer.running_var
    with pytest.raises(ValueError, match="no"), noted_apart(layer):
        raise ValueError("no")
    assert layer.running_var is memory


def test_gradients_are_those_of_a_pass_as_any_other():
    network = make("preact-resnet18", 3)
    other = copy.deepcopy(network)
    x = torch.randn(2, 3, 16, 16)
    with noted_apart(network) as remember:
        loss = network(x).square().sum()
    remember()
    loss.backward()
    other(x).square().sum().backward()
    for mine, expected in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, expected.grad)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_two_passes_at_a_time_on_a_gpu_give_the_bits_of_two_in_turn(kind, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    network = make("preact-resnet18", 10).to("cuda", memory_format=torch.channels_last)
    in_turn = copy.deepcopy(network)
    first, second = (torch.randn(256, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last) for _ in range(2))

    def step(one, aside):
        with aside.offered(), torch.autocast("cuda", torch.bfloat16, enabled=kind == torch.bfloat16):
            with torch.no_grad():
                looked = beside(lambda: one(first), first)
            with noted_apart(one) as remember:
                logits = one(second)
            join()
            remember()
            (logits * looked).sum().backward()
        return logits, looked

    for _ in range(10):
        found = step(network, Aside(torch.device("cuda")))
        expected = step(in_turn, Aside(torch.device("cpu")))
        assert all(map(torch.equal, found, expected))
        for mine, other in zip(network.parameters(), in_turn.parameters(), strict=True):
            assert torch.equal(mine.grad, other.grad)
            mine.grad = other.grad = None
        for mine, other in zip(network.buffers(), in_turn.buffers(), strict=True):
            assert torch.equal(mine, other)
