"""The GPU's arithmetic, held against the processor's: on a GPU where there is one, else by PyTorch on the CPU."""

import sys

import numpy as np
import pytest

from prune4rel.judging import judge
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
    labels, folds, use = rng.integers(0, 7, 1000), rng.integers(0, 5, 1000), rng.random(1000) < 0.9
    rows = rng.normal(size=(1000, 40)) + 2 * np.eye(7, 40)[labels]
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
    found = [each.host(each.posterior(each.bring(scores), labels, 0.5, fits[0].matrix)) for each in pair]
    np.testing.assert_allclose(*found, atol=1e-5)
    for each, q in zip(pair, found, strict=True):
        moved = each.bring(q)
        each.pin(moved, some, np.array([1, 2, 6]))
        np.testing.assert_array_equal(each.host(moved, some), np.eye(7)[[1, 2, 6]])
    soft = [each.soft_sums(each.bring(features), folds, each.bring(found[1]), use) for each in pair]
    for ours, theirs in zip(*soft, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-3)
    near = [each.similar(each.bring(features), 5) for each in pair]
    assert (near[0].indices == near[1].indices).mean() > 0.999
    np.testing.assert_allclose(near[0].similarities, near[1].similarities, atol=1e-5)
    weights = rng.random((1000, 5)).astype(np.float32) * use[near[1].indices]
    weights[7] = 0
    votes = [each.host(each.votes(each.bring(found[1]), near[1].indices, weights)) for each in pair]
    np.testing.assert_allclose(*votes, atol=1e-4)


def test_a_whole_judging_agrees(pair, monkeypatch):
    rng = np.random.default_rng(1)
    true = rng.integers(0, 6, 600)
    given = np.where(rng.random(600) < 0.2, (true + 1) % 6, true)
    rows = (3 * np.eye(6, 30)[true] + rng.normal(size=(600, 30))).astype(np.float32)
    here = judge(rows, given)
    monkeypatch.setattr(sys.modules["prune4rel.judging.judge"], "arithmetic_on", lambda _: pair[0])
    for embeddings in (rows, torch.from_numpy(rows)):
        there = judge(embeddings, given)
        assert (here.is_label_issue == there.is_label_issue).mean() > 0.995
        np.testing.assert_allclose(here.label_score, there.label_score, atol=0.02)
