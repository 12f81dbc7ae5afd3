"""The GPU's arithmetic, held against the processor's: on a GPU where there is one, else by PyTorch on the CPU."""

import numpy as np
import pytest

from prune4rel.judging.arithmetic import Processor
from prune4rel.judging.heads import discriminants

torch = pytest.importorskip("torch")


@pytest.fixture
def pair():
    from prune4rel.judging.cuda import Accelerator

    return Accelerator("cuda:0" if torch.cuda.is_available() else "cpu"), Processor()


def test_every_part_agrees(pair):
    there, here = pair
    rng = np.random.default_rng(0)
    labels, folds, use = rng.integers(0, 7, 3000), rng.integers(0, 5, 3000), rng.random(3000) < 0.9
    rows = rng.normal(size=(3000, 40)) + 2 * np.eye(7, 40)[labels]
    features = here.features(rows)
    np.testing.assert_allclose(there.host(there.features(rows)), features, atol=1e-4)
    sums = here.sums(features, folds, labels, 7, use)
    for ours, theirs in zip(sums, there.sums(there.bring(features), folds, labels, 7, use), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-3)
    heads = discriminants(sums)[2]
    scores = here.scores(features, folds, heads)
    some = np.array([5, 3, 100])
    np.testing.assert_allclose(
        there.host(there.scores(there.bring(features), folds, heads), some), scores[some], atol=1e-3
    )
    fits = [each.fit(each.bring(scores), labels, use, 0.5, 10.0) for each in pair]
    np.testing.assert_allclose(fits[0].matrix, fits[1].matrix, atol=1e-5)
    assert fits[0].loss == pytest.approx(fits[1].loss, abs=1e-5)
    found = [each.posterior(each.bring(scores), labels, 0.5, fits[0].matrix) for each in pair]
    np.testing.assert_allclose(*found, atol=1e-5)
