"""Made-up results, and one folder in which every recipe has been smoked."""

import pytest

from prune4rel.recipes.cells import ACCURACY, PaperCell
from prune4rel.recipes.harvest import Finding


@pytest.fixture
def finding():
    def make(method, value, *, seed=0, labels="worst", metric=ACCURACY, noise="worst", ratio=0.2, learner="sop+"):
        return Finding(PaperCell("cifar10n", noise, learner, method, ratio), labels, seed, {metric: value})

    return make
