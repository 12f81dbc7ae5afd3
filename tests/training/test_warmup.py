import numpy as np
import pytest
import torch
from tests.training.small import TINY, digits, features, write_images

from prune4rel import InputError
from prune4rel.data import load_dataset
from prune4rel.training import make_plan, warm_up
from prune4rel.training.loop import Training
from prune4rel.training.warmup import warm_up_in_parts

OPTIONS = {**TINY, "warmup_epochs": 2, "device": "cpu"}


def test_signals_are_of_the_network_after_the_warm_up():
    data = features()
    signals = warm_up(data, **OPTIONS)
    assert signals.arrays().keys() == {"labels", "probabilities", "embeddings", "losses", "ids", "class_names"}
    assert signals.probabilities.shape == (60, 3)
    assert signals.embeddings.shape == (60, 8)
    rows = np.arange(60)
    np.testing.assert_allclose(signals.losses, -np.log(signals.probabilities[rows, data.train.labels]), rtol=1e-4)
    assert (signals.labels == data.train.labels).all()
    assert (signals.ids == data.train.ids).all()
    again = warm_up(data, **OPTIONS)
    np.testing.assert_array_equal(signals.probabilities, again.probabilities)
    np.testing.assert_array_equal(signals.embeddings, again.embeddings)


def test_longer_training_believes_more():
    short, long = (warm_up(features(), **OPTIONS | {"warmup_epochs": n, "lr": 0.1}).losses.mean() for n in (1, 8))
    assert long < short


def test_the_rate_falls_as_in_the_whole_training(monkeypatch):
    rates = []
    real = Training.run_epoch
    monkeypatch.setattr(
        Training, "run_epoch", lambda self, f: rates.append(self.hyperparameters.rate(self.epoch)) or real(self, f)
    )
    warm_up(features(), **OPTIONS | {"epochs": 50})
    assert rates == [make_plan(features(), epochs=50).hyperparameters.rate(epoch) for epoch in range(2)]


def test_views_are_averaged():
    plan = make_plan(features(), **{k: v for k, v in OPTIONS.items() if k != "device"})
    found = {views: warm_up(features(), plan=plan, views=views, device="cpu") for views in (1, 3)}
    assert not np.allclose(found[1].probabilities, found[3].probabilities)
    np.testing.assert_allclose(found[3].probabilities.sum(1), 1, atol=1e-5)
    plain = warm_up(features(), plan=plan, view="none", device="cpu").probabilities
    weak = warm_up(features(), plan=plan, view="weak", device="cpu").probabilities
    far = [np.abs(each - plain).mean() for each in (weak, found[3].probabilities, found[1].probabilities)]
    assert far[0] < far[1] < far[2]
    many = warm_up(features(), plan=plan, view="none", views=2, device="cpu").probabilities
    np.testing.assert_allclose(many, plain, atol=1e-6)


def test_norms_are_those_of_numpy():
    signals = warm_up(features(), extras=["el2n", "grad_norms"], **OPTIONS)
    error = np.asarray(signals.probabilities, dtype=np.float64) - np.eye(3)[signals.labels]
    z = np.concatenate([signals.embeddings.astype(np.float64), np.ones((60, 1))], axis=1)
    outer = error[:, :, None] * z[:, None, :]
    np.testing.assert_allclose(signals.el2n, np.sqrt((error**2).sum(1)), rtol=1e-6)
    np.testing.assert_allclose(signals.grad_norms, np.sqrt((outer**2).sum((1, 2))), rtol=1e-6)


def test_norms_are_averaged_over_warm_ups_with_other_seeds():
    def norms(seed, repeats):
        return warm_up(features(), extras=["el2n"], repeats=repeats, seed=seed, **OPTIONS)

    both = norms(5, 2)
    np.testing.assert_allclose(both.el2n, (norms(5, 1).el2n + norms(6, 1).el2n) / 2, rtol=1e-6)
    np.testing.assert_array_equal(both.probabilities, norms(5, 1).probabilities)


def test_histories_come_along():
    signals = warm_up(features(), extras=["forgetting", "aum"], learner="cross-entropy", **OPTIONS | {"lr": 0.1})
    assert ((signals.aum >= -1) & (signals.aum <= 1)).all()
    assert signals.aum[signals.labels == features().train.clean_labels].mean() > signals.aum.mean()
    assert set(signals.forgetting) <= {0.0, 1.0, np.inf}


def test_self_supervised_embeddings_have_seen_no_label():
    signals = warm_up(features(), extras=["ssl_embeddings"], **OPTIONS)
    wrong = features().train.labels[::-1].copy()
    from dataclasses import replace

    other = replace(features(), train=replace(features().train, labels=wrong))
    np.testing.assert_array_equal(
        signals.ssl_embeddings, warm_up(other, extras=["ssl_embeddings"], **OPTIONS).ssl_embeddings
    )
    assert signals.ssl_embeddings.shape == (60, 8)
    assert not np.allclose(signals.ssl_embeddings, signals.embeddings)


def test_dividemix_warms_up_by_cross_entropy_all_along(monkeypatch):
    told = []
    real = Training.run_epoch
    monkeypatch.setattr(Training, "run_epoch", lambda self, f: told.append(real(self, f)) or told[-1])
    warm_up(features(), learner="dividemix", learner_options={"warmup_epochs": 0}, **OPTIONS | {"epochs": 20})
    assert all("labelled_by_first" not in numbers for numbers in told)
    assert all("train_accuracy" in numbers for numbers in told)


class StopError(Exception):
    pass


@pytest.mark.parametrize("stop", [1, 4, 8, 12, 15])
def test_killed_and_run_again_it_gives_the_same(tmp_path, monkeypatch, stop):
    options = {**OPTIONS, "extras": ["forgetting", "aum", "el2n", "ssl_embeddings"], "repeats": 2, "save_every": 0.0}
    expected = warm_up(features(), **options)
    steps = 0
    real = Training.is_sound

    def dying(self):  # asked before every save
        nonlocal steps
        steps += 1
        if steps == stop:
            raise StopError
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "is_sound", dying)
        with pytest.raises(StopError):
            warm_up(features(), folder=tmp_path / "work", **options)
    found = warm_up(features(), folder=tmp_path / "work", **options)
    for name, array in expected.arrays().items():
        np.testing.assert_array_equal(found.arrays()[name], array)


def test_a_folder_of_another_warm_up_is_refused_unless_restarted(tmp_path):
    folder = tmp_path / "work"
    warm_up(features(), folder=folder, **OPTIONS)
    with pytest.raises(InputError, match=r"training\.lr = 0\.02, not 0\.1.*--restart"):
        warm_up(features(), folder=folder, **OPTIONS | {"lr": 0.1})
    with pytest.raises(InputError, match=r"histories = \[\], not \[\"aum\"\]"):
        warm_up(features(), folder=folder, extras=["aum"], **OPTIONS)
    warm_up(features(), folder=folder, restart=True, **OPTIONS | {"lr": 0.1})


def test_broken_images_get_nothing_that_would_have_them_picked(tmp_path):
    data = write_images(tmp_path, n=10, broken=[2])
    extras = ["forgetting", "aum", "el2n", "grad_norms", "ssl_embeddings"]
    signals = warm_up(data, extras=extras, skip_broken=True, **OPTIONS | {"batch": 4})
    assert signals.probabilities[2].tolist() == [0.5, 0.5]
    assert np.isinf(signals.losses[2])
    assert (signals.el2n[2], signals.grad_norms[2], signals.aum[2], signals.forgetting[2]) == (0, 0, -1, 0)
    assert not signals.embeddings[2].any()
    assert not signals.ssl_embeddings[2].any()
    assert np.isfinite(signals.losses).sum() == 9
    assert np.flatnonzero(~signals.known).tolist() == [2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extras": ["forgeting"]}, "did you mean 'forgetting'"),
        ({"view": "storng"}, "did you mean 'strong'"),
        ({"views": 0}, "must be from 1 to 1,000"),
        ({"repeats": 0}, "must be from 1 to 1,000"),
        ({"extras": ["aum"], "learner": "elr+"}, "mixes examples"),
        ({"lr": 1e30, "weight_decay": 0.1}, "NaN or infinite"),
        ({"device": "gpu"}, "device must be"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(InputError, match=message):
        warm_up(features(), **OPTIONS | options)


def test_images_look_at_a_strong_view():
    signals = warm_up(digits(), **OPTIONS)
    plain = warm_up(digits(), view="none", **OPTIONS)
    assert not np.allclose(signals.embeddings, plain.embeddings)
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize("rows", [1, 600, 100_000])
def test_parts_are_those_of_the_whole_number_for_number(rows):
    data = load_dataset("digits")
    options = {"extras": ["aum", "el2n", "forgetting"], "view": "strong", "views": 2, "repeats": 2, **OPTIONS}
    whole = warm_up(data, **options)
    parts = list(warm_up_in_parts(data, rows=rows, **options))
    sizes = [len(part) for part in parts]
    assert sizes == {1: [512, 512, 324], 600: [1024, 324], 100_000: [1348]}[rows]
    for name, array in whole.arrays().items():
        if name != "class_names":
            np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), array, err_msg=name)


def test_a_warm_up_may_be_longer_than_the_training():
    signals = warm_up(features(), learner="dividemix", extras=["forgetting"], **OPTIONS | {"epochs": 1})
    assert np.isfinite(signals.losses).all()
