import pytest

from prune4rel.errors import InputError
from prune4rel.networks import make


def test_parameters_counted_by_hand():
    network = make("small-cnn", 10, shape=(1, 8, 8), width=16)
    convolutions = 9 * (1 * 16 + 16 * 32 + 32 * 64)
    normalisations = 2 * (16 + 32 + 64)
    assert sum(weights.numel() for weights in network.parameters()) == convolutions + normalisations + 64 * 10 + 10
    assert network.dim == 64


def test_no_width_is_refused():
    with pytest.raises(InputError, match="width must be 1 or more, not 0"):
        make("small-cnn", 10, width=0)
