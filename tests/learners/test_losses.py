import numpy as np
import pytest
import torch
from tests.oracles import learners as oracle

from prune4rel.learners import losses


def logits(n=5, seed=0, scale=3.0):
    return scale * torch.randn(n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_cross_entropies():
    labels = torch.tensor([0, 3, 1, 1, 2])
    expected = oracle.cross_entropy(logits().tolist(), labels.tolist())
    assert losses.cross_entropy(logits(), labels, 5).item() == pytest.approx(expected)
    hot = losses.one_hot(labels, 4)
    assert losses.soft_cross_entropy(logits(), hot, 5).item() == pytest.approx(expected)
    soft = np.random.default_rng(0).dirichlet(np.ones(4), 5)
    expected = oracle.soft_cross_entropy(logits().tolist(), soft)
    assert losses.soft_cross_entropy(logits(), torch.from_numpy(soft), 5).item() == pytest.approx(expected)


def test_consistency_teaches_the_strong_view_only():
    weak, strong = logits().requires_grad_(), logits(seed=1).requires_grad_()
    total = losses.consistency(weak, strong, 5)
    total.backward()
    assert total.item() == pytest.approx(oracle.kl(weak.tolist(), strong.tolist()))
    assert weak.grad is None
    expected = torch.softmax(strong, 1) - torch.softmax(weak, 1)
    torch.testing.assert_close(strong.grad, expected.detach() / 5)


def test_negative_entropy():
    expected = np.mean([sum(p * np.log(p) for p in oracle.softmax(row)) for row in logits().tolist()])
    assert losses.negative_entropy(logits(), 5).item() == pytest.approx(expected)
    assert losses.negative_entropy(1e4 * logits(), 5).item() == pytest.approx(0)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_halves_are_widened(kind):
    rough, labels = logits().to(kind), torch.tensor([0, 3, 1, 1, 2])
    for total in (
        losses.cross_entropy(rough, labels, 5),
        losses.soft_cross_entropy(rough, losses.one_hot(labels, 4), 5),
        losses.consistency(rough, rough, 5),
        losses.negative_entropy(rough, 5),
    ):
        assert total.dtype == torch.float32


def test_doubles_stay_doubles():
    assert losses.cross_entropy(logits(), torch.tensor([0, 3, 1, 1, 2]), 5).dtype == torch.float64
