import math

import numpy as np
import pytest
from tests.oracles.ranking import (
    assert_follows_the_examples,
    assert_ranks_by,
    assert_same_from_disk_in_blocks,
    distinct,
    instance,
)
from tests.planted import EASY, HARD, MISLABELLED, N, assert_twins_side_by_side, places

import prune4rel as p4r


def gradient_norm(p, y, z):
    """Length of the last layer's gradient, written out: one row a class, the bias in its last column."""
    columns = [*map(float, np.asarray(z, dtype=np.float32)), 1.0]
    gradient = [(float(p[c]) - (c == y)) * x for c in range(len(p)) for x in columns]
    return math.sqrt(math.fsum(g * g for g in gradient))


@pytest.mark.parametrize("seed", range(12))
def test_ranks_by_the_length_of_the_gradient_written_out(seed):
    arrays = instance(seed)
    every = zip(arrays["probabilities"], arrays["labels"], arrays["embeddings"], strict=True)
    assert_ranks_by("grand", arrays, [gradient_norm(p, y, z) for p, y, z in every], keep="highest")


def test_is_what_autograd_computes(rng):
    import torch

    layer = torch.nn.Linear(4, 3).double()
    z = torch.tensor(rng.normal(size=(5, 4)).astype(np.float32)).double()
    labels = torch.tensor([0, 1, 2, 0, 1])
    norms = []
    for x in range(5):
        loss = torch.nn.functional.cross_entropy(layer(z[x : x + 1]), labels[x : x + 1])
        parts = torch.autograd.grad(loss, (layer.weight, layer.bias))
        norms.append(math.sqrt(sum(float((part**2).sum()) for part in parts)))
    probabilities = layer(z).softmax(dim=1).detach()
    chosen = p4r.select("grand", embeddings=z, probabilities=probabilities, labels=labels, size=2)
    np.testing.assert_allclose(chosen.scores, norms, rtol=1e-6)


def test_given_averages_need_nothing_else():
    chosen = p4r.select("grand", grad_norms=[1.0, 3.0, 2.0], labels=[0, 0, 0], size=2)
    assert chosen.indices.tolist() == [1, 2]


@pytest.mark.parametrize("missing", ["probabilities", "embeddings"])
def test_without_averages_both_of_the_others_are_needed(small, missing):
    del small[missing]
    with pytest.raises(p4r.InputError, match=f"grad_norms or {missing}"):
        p4r.select("grand", **small, size=2)


def test_follows_the_examples():
    assert_follows_the_examples("grand", distinct())


def test_blocks_on_disk(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("grand", monkeypatch, tmp_path)


def test_mislabelled_first_then_hard_and_easy_last():
    place = places("grand")
    assert place[MISLABELLED] == 0
    assert place[HARD] == 1
    assert place[EASY] == N - 1
    assert_twins_side_by_side(place)
