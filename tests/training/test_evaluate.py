from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.training.small import digits, features, trainer_of
from torch import nn

from prune4rel.loading import make_loader
from prune4rel.training import evaluate
from prune4rel.training.evaluate import accuracy, ask, self_correction

NAN = [np.nan, np.nan]


def test_accuracy_by_hand():
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], NAN])
    assert accuracy(logits, np.array([0, 1, 1, 0])) == 2 / 3
    assert accuracy(torch.tensor([NAN]), np.array([0])) is None


def test_self_correction_by_hand():
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], NAN])
    given, clean = np.array([1, 0, 0, 1]), np.array([0, 1, 1, 0])
    assert self_correction(logits, given, clean) == 2 / 3
    assert self_correction(logits, clean, clean) is None
    assert self_correction(logits[3:], given[3:], clean[3:]) is None


def test_answers_come_in_the_order_of_the_loader_whatever_the_batch(monkeypatch):
    data = features()
    order = np.random.default_rng(0).permutation(60)[:50]
    loader = make_loader(data.train, "cpu", subset=order, shuffle=True, batch=7)
    view = trainer_of(data).views["plain"]
    found = []
    for size in (512, 7):
        monkeypatch.setattr(evaluate, "EVALUATION_BATCH", size)
        found.append(ask(nn.Identity(), lambda x: (x[:, :3], x), loader, view))
    values = data.train.features
    expected = ((values - values.mean(0)) / values.std(0))[order]
    for said in found:
        np.testing.assert_allclose(said.embeddings.numpy(), expected, atol=1e-3)
        np.testing.assert_allclose(said.logits.numpy(), expected[:, :3], atol=1e-3)


def test_the_model_is_asked_in_evaluation_mode_without_gradients():
    seen = []

    class Watch(nn.Module):
        def forward(self, x):
            seen.append((self.training, torch.is_grad_enabled()))
            return x.flatten(1)[:, :10]

    trainer, watch = trainer_of(), Watch()
    told = []
    ask(watch, lambda x: (watch(x), None), trainer.loader, trainer.views["plain"], advance=told.append)
    assert set(seen) == {(False, False)}
    assert sum(told) == len(digits().train)


def test_large_images_come_in_smaller_batches(monkeypatch):
    monkeypatch.setattr(evaluate, "MOST_NUMBERS", 3 * 8 * 8 * 5)
    sizes = []

    def answer(x):
        sizes.append(len(x))
        return x.flatten(1)[:, :10], None

    trainer = trainer_of()
    ask(nn.Identity(), answer, trainer.loader, trainer.views["plain"])
    assert set(sizes) == {5}


def test_the_seed_decides_the_view():
    trainer = trainer_of()

    def look(seed):
        return ask(
            nn.Identity(), lambda x: (x.flatten(1), None), trainer.loader, trainer.views["strong"], seed=seed
        ).logits

    assert torch.equal(look(0), look(0))
    assert not torch.equal(look(0), look(1))


@pytest.mark.parametrize(
    ("device", "shape", "batch"),
    [
        ("cpu", (3, 32, 32), 512),
        ("cuda", (3, 32, 32), 2048),
        ("cuda", (3, 64, 64), 682),
        ("cuda", (3, 224, 224), 222),
        ("cpu", (3, 224, 224), 222),
        ("cuda", (20,), 2048),
        ("cuda", (3, 4000, 4000), 1),
    ],
)
def test_small_images_are_asked_about_in_large_batches_on_a_gpu(device, shape, batch):
    assert evaluate.batch_of(SimpleNamespace(device=torch.device(device), shape=shape)) == batch
