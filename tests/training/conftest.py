import pytest
from tests.training.small import Dropping

from prune4rel.networks import registry


@pytest.fixture
def dropping():
    """The name of a network with dropout, while the test lasts."""
    registry._registry["dropping"] = Dropping
    yield "dropping"
    del registry._registry["dropping"]
