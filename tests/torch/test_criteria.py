"""Losses as modules come to what the formulas say, and keep their state."""

import numpy as np
import pytest
import torch
from tests.oracles import learners as oracle

import prune4rel as p4r
from prune4rel.torch import ELRLoss, SOPLoss, SOPPlusLoss, TrustLoss

GIVEN = [0, 2, 1, 1, 0, 2]
ROWS = [4, 1, 3]


def some_logits(seed=0):
    return torch.randn(
        len(ROWS), 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    ).requires_grad_()


def test_elr_is_what_its_formula_says_and_remembers():
    criterion = ELRLoss(GIVEN, 3, beta=0.6, lambda_elr=2.5)
    memories = [[0.0] * 3 for _ in ROWS]
    for seed in range(3):
        logits = some_logits(seed)
        rows = logits.detach().tolist()
        said = [oracle.clamped(oracle.softmax(row)) for row in rows]
        memories = [oracle.memory(old, p, 0.6) for old, p in zip(memories, said, strict=True)]
        expected = oracle.cross_entropy(rows, [GIVEN[row] for row in ROWS]) + 2.5 * oracle.disagreement(rows, memories)
        assert criterion(logits, ROWS).item() == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(criterion.learner.targets[ROWS], memories, atol=1e-6)
    assert not criterion.learner.targets[[0, 2, 5]].any()


def test_sop_is_what_its_formula_says_and_its_error_terms_descend_by_themselves():
    criterion = SOPLoss(GIVEN, 3, rate_u=5.0, rate_v=5.0)
    for table in (criterion.learner.u, criterion.learner.v):
        table.values.fill_(0.3)
    logits = some_logits()
    rows, given = logits.detach().tolist(), [GIVEN[row] for row in ROWS]
    v = [[0.3] * 3] * 3
    expected, _ = oracle.sop(rows, given, [0.3] * 3, v, frozen_logits=rows, frozen_v=v)
    loss = criterion(logits, torch.tensor(ROWS))
    assert loss.item() == pytest.approx(expected, abs=1e-5)
    loss.backward()
    before = criterion.learner.u.values.clone()
    criterion(some_logits(1), ROWS)
    moved = (criterion.learner.u.values != before).any(dim=1)
    assert np.flatnonzero(moved.numpy()).tolist() == sorted(ROWS)


def test_trust_trusts_everybody_at_first_and_then_whom_it_remembers():
    plus, trust = SOPPlusLoss(GIVEN, 3, seed=1), TrustLoss(GIVEN, 3, epochs=2, trust_from=0.5, least=0.0, seed=1)
    weak, strong = some_logits(0), some_logits(1)
    trust.begin_epoch(0)
    assert trust(weak, strong, ROWS).item() == pytest.approx(plus(weak, strong, ROWS).item())
    against = torch.full((6, 3), -5.0)
    against[range(6), [(label + (row < 3)) % 3 for row, label in enumerate(GIVEN)]] = 5.0
    for _ in range(20):
        trust(against.clone().requires_grad_(), against, range(6))
    trust.begin_epoch(1)
    assert (trust.learner.trusted[:3] < 0.5).all()
    assert (trust.learner.trusted[3:] == 1).all()


@pytest.mark.parametrize("kind", [SOPLoss, ELRLoss])
def test_the_state_of_every_example_goes_into_checkpoints(kind):
    first, second = kind(GIVEN, 3, seed=0), kind(GIVEN, 3, seed=5)
    first(some_logits(), ROWS).backward()
    first.step()
    second.load_state_dict(first.state_dict())
    assert first(some_logits(3), ROWS).item() == second(some_logits(3), ROWS).item()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SOPLoss([[0, 1]], 2), "labels: have shape"),
        (lambda: SOPLoss([0, 5], 2), "row 1 is 5; expected 0 to 1"),
        (lambda: SOPLoss([0, 1], 2, rate=3), "has no option 'rate'"),
        (lambda: ELRLoss([0, 1], 2, beta=2.0), "beta must be between 0 and 1"),
        (lambda: ELRLoss([0, 1], 2)(torch.zeros(2, 3), [0, 1]), r"logits: have shape \(2, 3\); expected \(2, 2\)"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(p4r.InputError, match=words):
        make()
