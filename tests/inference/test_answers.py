from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.training.small import digits, features, trainer_of
from torch import nn

from prune4rel.inference import answers, collect, predict, predict_and_embed
from prune4rel.loading import make_loader


class FirstThree(nn.Module):
    """Embeds inputs as they are, and takes the first three numbers for logits."""

    def embed(self, x):
        return x

    def classify(self, z):
        return z[:, :3]


def test_answers_come_in_the_order_of_the_loader_whatever_the_batch(monkeypatch):
    data = features()
    order = np.random.default_rng(0).permutation(60)[:50]
    loader = make_loader(data.train, "cpu", subset=order, shuffle=True, batch=7)
    view = trainer_of(data).views["plain"]
    found = []
    for size in (512, 7):
        monkeypatch.setattr(answers, "EVALUATION_BATCH", size)
        parts = (
            (said.places, (said.logits, said.embeddings)) for said in predict_and_embed(FirstThree(), loader, view)
        )
        found.append((*collect(parts, 50), predict(nn.Identity(), lambda x: x[:, :3], loader, view)))
    values = data.train.features
    expected = ((values - values.mean(0)) / values.std(0))[order]
    for logits, embeddings, predicted in found:
        np.testing.assert_allclose(embeddings.numpy(), expected, atol=1e-3)
        np.testing.assert_allclose(logits.numpy(), expected[:, :3], atol=1e-3)
        assert torch.equal(predicted, logits)


def test_the_model_is_asked_in_evaluation_mode_without_gradients():
    seen = []

    class Watch(nn.Module):
        def forward(self, x):
            seen.append((self.training, torch.is_grad_enabled()))
            return x.flatten(1)[:, :10]

    trainer, watch = trainer_of(), Watch()
    told = []
    predict(watch, watch, trainer.loader, trainer.views["plain"], advance=told.append)
    assert set(seen) == {(False, False)}
    assert sum(told) == len(digits().train)


def test_large_images_come_in_smaller_batches(monkeypatch):
    monkeypatch.setattr(answers, "MOST_NUMBERS", 3 * 8 * 8 * 5)
    sizes = []

    def answer(x):
        sizes.append(len(x))
        return x.flatten(1)[:, :10]

    trainer = trainer_of()
    predict(nn.Identity(), answer, trainer.loader, trainer.views["plain"])
    assert set(sizes) == {5}


def test_the_seed_decides_the_view():
    trainer = trainer_of()

    def shown(seed):
        strong = trainer.views["strong"]
        return predict(nn.Identity(), lambda x: x.flatten(1), trainer.loader, strong, seed=seed)

    assert torch.equal(shown(0), shown(0))
    assert not torch.equal(shown(0), shown(1))


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
    assert answers.batch_of(SimpleNamespace(device=torch.device(device), shape=shape)) == batch
