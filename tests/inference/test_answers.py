from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.training.small import digits, features, trainer_of
from torch import nn

from prune4rel import InputError
from prune4rel.augment import PlainView, RandAugment, StrongView, WeakView
from prune4rel.inference import answers, collect, predict, predict_and_embed
from prune4rel.inference import answers as room
from prune4rel.inference.answers import make_views
from prune4rel.loading import make_loader


def images():
    return torch.from_numpy(digits().train.images[:6]).permute(0, 3, 1, 2)


def shown(view, inputs, seed=0):
    return view(inputs, torch.Generator().manual_seed(seed))


def test_images_get_the_views_of_their_size_and_colours():
    data = digits()
    views = make_views(data)
    assert views["plain"] == PlainView(data.mean, data.std)
    assert views["weak"] == WeakView(data.mean, data.std, 1, 0.5)
    assert views["strong"] == StrongView(data.mean, data.std, cutout_size=4, padding=1)


def test_options_are_passed_on():
    data = digits()
    views = make_views(data, mirror=0.0, padding=2, policy="randaugment", cutout=3, dtype=torch.bfloat16)
    assert views["weak"] == WeakView(data.mean, data.std, 2, 0.0, torch.bfloat16)
    assert isinstance(views["strong"].policy, RandAugment)
    assert (views["strong"].policy.rounds, views["strong"].policy.level) == (3, 5)
    assert views["strong"].cutout_size == 3
    assert {view.dtype for view in views.values()} == {torch.bfloat16}


def test_the_policy_none_does_nothing_besides_cropping_and_cutting():
    views = make_views(digits(), policy="none", cutout=0, padding=0, mirror=0.0)
    assert torch.equal(shown(views["strong"], images()), shown(views["plain"], images()))


def test_features_are_standardised_and_disturbed():
    data = features()
    views = make_views(data)
    x = torch.from_numpy(data.train.features)
    plain = shown(views["plain"], x)
    np.testing.assert_allclose(plain.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(plain.std(0, correction=0), 1, atol=1e-3)
    weak, strong = (shown(views[name], x) - plain for name in ("weak", "strong"))
    assert 0.03 < float(weak.std()) < 0.07
    assert (weak.abs() > 0).all()
    forgotten = (shown(views["strong"], x).abs() < 1e-4).float().mean()
    assert 0.1 < float(forgotten) < 0.3
    assert float(strong.std()) > float(weak.std())


def test_means_are_taken_from_a_sample_of_large_sets(monkeypatch):
    monkeypatch.setattr(room, "SAMPLE", 20)
    x = features().train.features
    np.testing.assert_allclose(make_views(features())["plain"].mean, x[::3].mean(0), rtol=1e-5)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"policy": "autoaugmant"}, "did you mean 'autoaugment'"),
        ({"padding": -1}, "padding must be 0 or more"),
        ({"cutout": -1}, "cutout must be 0 or more"),
        ({"mirror": 2}, "mirror must be from 0 to 1"),
        ({"mirror": "often"}, "mirror must be from 0 to 1, not 'often'"),
        ({"padding": "some"}, "padding must be 0 or more pixels, not 'some'"),
        ({"cutout": 1.5}, "cutout must be 0 or more pixels, not 1.5"),
    ],
)
def test_bad_options_are_named(option, message):
    with pytest.raises(InputError, match=message):
        make_views(digits(), **option)


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
