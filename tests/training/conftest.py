import pytest
import torch
from tests.training.small import Dropping
from threadpoolctl import threadpool_limits

from prune4rel.networks.network import NETWORKS


@pytest.fixture(autouse=True)
def _one_thread():
    """Small work loses by being shared among threads, above all where tests run side by side."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(before)


@pytest.fixture
def dropping():
    """The name of a network with dropout, while the test lasts."""
    NETWORKS["dropping"] = Dropping
    yield "dropping"
    del NETWORKS["dropping"]
