import numpy as np
import pytest

from prune4rel.judging.choose import choose_voice, held_out_loss, plain_loss
from prune4rel.judging.transition import BELIEF, Evidence, fit_transition, posterior, softmax


def slow_fit(q, labels, rounds):
    """Expectation and maximisation, one example at a time."""
    n, n_classes = q.shape
    shares = np.array([(labels == y).sum() + 0.5 for y in range(n_classes)])
    shares = shares / shares.sum()
    matrix = 0.8 * np.eye(n_classes) + 0.2 * shares
    for _ in range(rounds):
        counts, loss = np.zeros((n_classes, n_classes)), 0.0
        for i, y in enumerate(labels):
            joint = q[i] * matrix[:, y]
            counts[:, y] += joint / joint.sum()
            loss -= np.log(joint.sum())
        wrong = 1 - np.trace(counts) / counts.sum()
        for c in range(n_classes):
            prior = np.array([0.0 if y == c else shares[y] for y in range(n_classes)])
            prior = wrong * prior / prior.sum()
            prior[c] = 1 - wrong
            matrix[c] = (counts[c] + BELIEF * prior) / (counts[c].sum() + BELIEF)
    return matrix, counts, loss / n


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_matrix_is_the_one_found_one_example_at_a_time(n_classes):
    rng = np.random.default_rng(n_classes)
    scores = rng.normal(size=(200, n_classes)).astype(np.float32) * 3
    labels = np.where(rng.random(200) < 0.7, scores.argmax(axis=1), rng.integers(0, n_classes, 200))
    fit = fit_transition(Evidence.of(scores, labels, 0.7), rounds=6)
    matrix, counts, loss = slow_fit(softmax(scores, 0.7).astype(np.float64), labels, 6)
    np.testing.assert_allclose(fit.matrix, matrix, atol=1e-4)
    np.testing.assert_allclose(fit.counts, counts, atol=1e-2)
    assert fit.loss == pytest.approx(loss, abs=1e-4)


def test_the_posterior_is_bayes():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(30, 3)).astype(np.float32), rng.integers(0, 3, 30)
    matrix = rng.dirichlet(np.ones(3), 3)
    found = posterior(scores, labels, 2.0, matrix)
    for i in range(30):
        joint = np.exp(2.0 * scores[i]) * matrix[:, labels[i]]
        np.testing.assert_allclose(found[i], joint / joint.sum(), rtol=1e-4)


def made(wrong, n=4000, seed=0):
    """Labels drawn from known probabilities, a share of them moved."""
    rng = np.random.default_rng(seed)
    scores = (2.5 * rng.normal(size=(n, 4))).astype(np.float32)
    true = (softmax(scores, 1.0).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    moved = rng.random(n) < wrong
    return scores, np.where(moved, (true + rng.integers(1, 4, n)) % 4, true), np.arange(n) % 2 == 0


def test_the_sharpness_that_made_the_labels_is_found():
    scores, labels, halves = made(0.0)
    assert plain_loss(scores, labels)[1] == pytest.approx(1.0, rel=0.15)
    assert choose_voice(scores, labels, halves).sharpness == pytest.approx(1.0, rel=0.3)


def test_noise_is_told_from_uncertainty():
    scores, labels, halves = made(0.3)
    voice = choose_voice(scores, labels, halves)
    assert voice.plain < 0.7  # as if heads knew less
    assert 0.9 < voice.sharpness < 1.5  # rather too sharp than too blunt
    assert held_out_loss(scores, labels, halves, voice.sharpness) < plain_loss(scores, labels)[0]
    matrix = fit_transition(Evidence.of(scores, labels, voice.sharpness)).matrix
    np.testing.assert_allclose(np.diag(matrix), 0.7, atol=0.08)
