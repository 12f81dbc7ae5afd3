import pytest
import torch

from prune4rel.errors import InputError
from prune4rel.networks import make


@pytest.mark.parametrize(("depth", "hidden"), [(1, 64 * 32 + 32), (3, 64 * 32 + 32 + 2 * (32 * 32 + 32))])
def test_parameters_counted_by_hand(depth, hidden):
    network = make("mlp", 10, shape=(64,), width=32, depth=depth)
    normalisations = 2 * 32 * depth
    assert sum(weights.numel() for weights in network.parameters()) == hidden + normalisations + 32 * 10 + 10


def test_images_are_flattened():
    network = make("mlp", 10, shape=(3, 8, 8))
    x = torch.randn(2, 3, 8, 8)
    assert torch.equal(network(x), network(x.flatten(1)))


def test_trains_on_a_batch_of_one():
    assert make("mlp", 10, shape=(4,)).train()(torch.zeros(1, 4)).isfinite().all()


@pytest.mark.parametrize("option", ["width", "depth"])
def test_nothing_inside_is_refused(option):
    with pytest.raises(InputError, match=f"{option} must be 1 or more, not 0"):
        make("mlp", 10, **{option: 0})


def test_an_empty_input_is_refused():
    with pytest.raises(InputError, match="size of an input must be 1 or more"):
        make("mlp", 10, shape=(0,))
