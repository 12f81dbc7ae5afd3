import numpy as np
import pytest
import torch
from tests.oracles.memory import SlowMemory

from prune4rel.learners import memory as module
from prune4rel.learners.memory import Memory

M, C = 12, 5


def visits(seed=0, rounds=4):
    """Batches of examples, each once a batch, with random predictions."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        for rows in np.split(rng.permutation(M), 3):
            yield rows, rng.dirichlet(np.full(C, 0.3), len(rows))


def given(seed=0):
    return np.random.default_rng(seed).integers(0, C - 1, M)  # the last class is never given


def filled(memory, seed=0):
    for rows, p in visits(seed):
        memory.add(torch.from_numpy(rows), torch.from_numpy(p))
    return memory


@pytest.mark.parametrize("newest", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_running_mean_of_corrected_predictions(seed, newest):
    memory = filled(Memory(torch.from_numpy(given(seed)), C, newest=newest).double(), seed)
    slow = SlowMemory(given(seed).tolist(), C, newest)
    for rows, p in visits(seed):
        slow.add(rows.tolist(), p.tolist())
    found = memory.of(torch.arange(M))
    np.testing.assert_allclose(found.numpy(), slow.rows, atol=1e-6)
    assert memory.seen.tolist() == slow.seen
    own, other = memory.of_labels(torch.from_numpy(given(seed)))
    for k, y in enumerate(given(seed)):
        assert own[k] == pytest.approx(slow.rows[k][y], abs=1e-5)
        assert other[k] == pytest.approx(max(np.delete(slow.rows[k], y)), abs=1e-5)


def test_the_likeliest_classes_are_enough_where_the_others_are_nothing():
    labels = torch.zeros(M, dtype=torch.int64)
    whole, short = Memory(labels, C, newest=0.3), Memory(labels, C, newest=0.3, top=2)
    for rows, _ in visits():
        p = torch.zeros(len(rows), C)
        p[:, 1], p[:, 4] = 0.75, 0.25
        whole.add(torch.from_numpy(rows), p)
        short.add(torch.from_numpy(rows), p)
    every = torch.arange(M)
    torch.testing.assert_close(short.of(every), whole.of(every), atol=1e-5, rtol=0)


def test_what_is_left_is_spread_over_the_other_classes(monkeypatch):
    monkeypatch.setattr(module, "TOP", 2)
    monkeypatch.setattr(module, "MOST_NUMBERS", M * C - 1)
    memory = filled(Memory(torch.from_numpy(given()), C, newest=0.3))
    found = memory.of(torch.arange(M))
    assert memory.top == 2
    torch.testing.assert_close(found.sum(1), torch.ones(M))
    for row in found:
        assert len(row.sort(descending=True).values[2:].unique()) == 1
    monkeypatch.setattr(module, "MOST_NUMBERS", M * C)
    assert Memory(torch.from_numpy(given()), C).top == C


def test_nothing_is_known_before_the_first_visit():
    memory = Memory(torch.tensor([0, 1]), 4, top=3)
    torch.testing.assert_close(memory.of(torch.arange(2)), torch.full((2, 4), 0.25))


def test_blocks_are_the_whole(monkeypatch):
    memory = filled(Memory(torch.from_numpy(given()), C))
    monkeypatch.setattr(module, "BLOCK", 2 * C)
    parts = list(memory.blocks())
    assert len(parts) == M // 2
    assert torch.equal(torch.cat([p for _, p in parts]), memory.of(torch.arange(M)))


@pytest.mark.parametrize("most", [M * C - 1, M * C])
def test_its_size_is_known_before_it_is_made(monkeypatch, most):
    monkeypatch.setattr(module, "TOP", 2)
    monkeypatch.setattr(module, "MOST_NUMBERS", most)
    memory = Memory(torch.from_numpy(given()), C)
    kept = [*memory.values.shape, *memory.classes.shape]
    assert kept == ([M, C, 0, C] if most == M * C else [M, 2, M, 2])
    per_example = (memory.values, memory.classes, memory.seen)
    assert module.bytes_of(M, C) == sum(each.numel() * each.element_size() for each in per_example)
