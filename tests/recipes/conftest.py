"""Made-up results, and one folder in which every recipe has been smoked."""

import functools

import pytest

from prune4rel import registry
from prune4rel.recipes.cells import ACCURACY, Cell
from prune4rel.recipes.harvest import Finding


@pytest.fixture(scope="session", autouse=True)
def _entry_points_do_not_change():
    """Hundreds of tiny trainings look names up thousands of times, and every time all installed packages are read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "entry_points", functools.cache(registry.entry_points))
        yield


@pytest.fixture
def finding():
    def make(method, value, *, seed=0, labels="worst", metric=ACCURACY, noise="worst", ratio=0.2, learner="sop+"):
        return Finding(Cell("cifar10n", noise, learner, method, ratio), labels, seed, {metric: value})

    return make
