import numpy as np
import pytest
import torch
from tests.learners.loop import train_on_digits
from tests.learners.tiny import CLASSES, gradient_of, logits_by, some_examples, tiny_learner, weights_of
from tests.oracles import learners as oracle

ROWS = [5, 0, 3, 6]


def with_memories(seed=0, **options):
    learner = tiny_learner("elr", weights_seed=seed, **options)
    rng = np.random.default_rng(seed)
    learner.targets.copy_(torch.from_numpy(0.9 * rng.dirichlet(np.ones(CLASSES), learner.m)))
    return learner, some_examples(learner, ROWS, seed=seed)


@pytest.mark.parametrize("seed", range(4))
def test_loss_gradient_and_memory(seed):
    learner, examples = with_memories(seed, beta=0.6, lambda_elr=2.5)
    theta, old = weights_of(learner.networks[0]), learner.targets.double().numpy().copy()
    said = [oracle.clamped(oracle.softmax(row)) for row in logits_by(theta, examples.views[0])]
    memories = [oracle.memory(old[row], p, 0.6) for row, p in zip(ROWS, said, strict=True)]

    def expected(weights):
        logits = logits_by(weights, examples.views[0])
        fit = oracle.cross_entropy(logits, examples.labels.tolist())
        return fit + 2.5 * oracle.disagreement(logits, memories)

    loss = learner.loss((examples,), ())
    loss.total.backward()
    assert loss.total.item() == pytest.approx(expected(theta), abs=1e-6)
    np.testing.assert_allclose(gradient_of(learner.networks[0]), oracle.numeric_gradient(expected, theta), atol=1e-6)
    np.testing.assert_allclose(learner.targets[ROWS].numpy(), memories, atol=1e-6)
    others = [row for row in range(learner.m) if row not in ROWS]
    np.testing.assert_allclose(learner.targets[others].numpy(), old[others])


def test_certainty_has_a_finite_price():
    learner, examples = with_memories()
    learner.targets[:, 0] = 1.0
    with torch.no_grad():
        learner.networks[0].head.bias[0] = 1e4
    loss = learner.loss((examples,), ())
    loss.total.backward()
    assert torch.isfinite(loss.total)
    assert np.isfinite(gradient_of(learner.networks[0])).all()


def test_describes_whom_it_relabels():
    learner = tiny_learner("elr")
    assert learner.describe() == {"relabelled": 0.0}
    learner.targets[0, (learner.given[0] + 1) % CLASSES] = 0.5
    learner.targets[1, learner.given[1]] = 0.5
    assert learner.describe() == {"relabelled": 0.5}


@pytest.mark.parametrize("option", [{"beta": 1.1}, {"beta": -0.1}, {"lambda_elr": -1}])
def test_impossible_options_are_refused(option):
    with pytest.raises(ValueError, match=f"{next(iter(option))} must be"):
        tiny_learner("elr", **option)


def test_corrects_labels_that_cross_entropy_memorises(memorised):
    loop, true = train_on_digits("elr")
    assert loop.correction(true) > memorised + 0.65
    assert loop.learner.describe()["relabelled"] > 0.25
