import numpy as np
import pytest
from tests.oracles.gradients import instance

from prune4rel.gradients import gradients_of, on_grid
from prune4rel.signals import Signals


@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_gradients_written_out(seed):
    drawn = instance(seed)
    rows = drawn.rows
    found = gradients_of(drawn.signals, slice(None))
    some = np.flatnonzero(np.arange(len(drawn)) % 2 == 0)
    weights = np.random.default_rng(seed).random(len(drawn))
    shape = found.errors.shape[1], found.features.shape[1]
    np.testing.assert_allclose(found.squares(), np.square(rows).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found.inner(found[some]), rows @ rows[some].T, atol=1e-12)
    np.testing.assert_allclose(found.total(), rows.sum(axis=0).reshape(shape), atol=1e-12)
    np.testing.assert_allclose(found.total(weights), (weights @ rows).reshape(shape), atol=1e-12)
    direction = np.random.default_rng(seed).normal(size=shape)
    np.testing.assert_allclose(found.along(direction), rows @ direction.ravel(), atol=1e-12)


def test_is_the_gradient_of_the_cross_entropy():
    drawn = instance(3)
    x, width = 0, 1e-6
    z, p, y = np.append(drawn.embeddings[x], 1.0).astype(float), drawn.probabilities[x], drawn.labels[x]

    def loss(weights):
        logits = np.log(p) + weights @ z
        return np.log(np.exp(logits).sum()) - logits[y]

    analytic = gradients_of(drawn.signals, np.array([x])).total()
    for place in np.ndindex(analytic.shape):
        nudge = np.zeros_like(analytic)
        nudge[place] = width
        assert analytic[place] == pytest.approx((loss(nudge) - loss(-nudge)) / (2 * width), abs=1e-6)


def test_half_precision_is_widened_before_anything_is_computed():
    half = np.array([[300.0, 0.25]], dtype=np.float16)
    signals = Signals(labels=[0], probabilities=np.array([[0.25, 0.75]], dtype=np.float16), embeddings=half)
    assert gradients_of(signals, slice(None)).squares()[0] == (300.0**2 + 0.25**2 + 1) * (0.75**2 + 0.75**2)


def test_on_grid_keeps_zeros_and_merges_rounding_errors():
    assert on_grid(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert on_grid(np.empty(0)).size == 0
    values = np.array([5.0, 1 / 3, 1 / 3 * (1 + 1e-14)])
    assert on_grid(values)[1] == on_grid(values)[2]
