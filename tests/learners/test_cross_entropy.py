import numpy as np
import pytest
from tests.learners.tiny import gradient_of, logits_by, some_examples, tiny_learner, weights_of
from tests.oracles import learners as oracle


def test_loss_and_gradient():
    learner = tiny_learner("cross-entropy")
    examples = some_examples(learner, [4, 1, 2])
    theta = weights_of(learner.networks[0])

    def expected(weights):
        return oracle.cross_entropy(logits_by(weights, examples.views[0]), examples.labels.tolist())

    loss = learner.loss((examples,), ())
    loss.total.backward()
    assert loss.total.item() == pytest.approx(expected(theta))
    np.testing.assert_allclose(gradient_of(learner.networks[0]), oracle.numeric_gradient(expected, theta), atol=1e-8)
    np.testing.assert_allclose(loss.logits.numpy(), logits_by(theta, examples.views[0]))
    assert learner.describe() == {}


def test_a_share_is_over_the_whole_batch():
    learner = tiny_learner("cross-entropy")
    examples = some_examples(learner, [4, 1, 2])
    half = learner.loss((examples._replace(batch=6),), ()).total
    assert half.item() == pytest.approx(learner.loss((examples,), ()).total.item() / 2)


def test_memorises(memorised):
    assert memorised < 0.3
