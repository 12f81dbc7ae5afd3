"""Data with real structure against the dense float64 loop: the same examples in the same order."""

from functools import cache

import numpy as np
import pytest
from sklearn.decomposition import PCA
from tests.instances import noisy_digits, warm_up
from tests.oracles import prune4rel as oracle
from tests.oracles import similarity

from prune4rel import load_dataset, select
from prune4rel.methods.prune4rel import PRESETS
from prune4rel.neighbours import build
from prune4rel.neighbours.cuda import TorchBackend
from prune4rel.signals import Signals


@cache
def noisy_cifar(folder):
    """2000 photographs with the labels people gave them, by their main components."""
    train = load_dataset("cifar10n", folder, noise="worst").train
    pixels = train.images[:2000, ::2, ::2].reshape(2000, -1) / 255
    labels = train.labels[:2000]
    features = PCA(96, svd_solver="covariance_eigh").fit_transform(pixels)
    return Signals(labels=labels, embeddings=features, probabilities=warm_up(features[:, :20], labels))


@pytest.fixture(params=["digits", "cifar10n"])
def signals(request):
    if request.param == "digits":
        return noisy_digits()
    return noisy_cifar(request.getfixturevalue("real_cifar"))


def textbook(signals, chosen):
    asked = chosen.options
    dense = similarity.fast_weights(signals.embeddings, asked["tau"], asked["similarity"], strict=asked["strict"])
    confidence = oracle.confidence_of(signals.probabilities, signals.labels, asked["confidence"])
    groups = signals.labels if asked["balanced"] else None
    return oracle.greedy(dense, confidence / asked["eta"], len(chosen), gain=asked["gain"], groups=groups)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("balanced", [False, True])
def test_every_preset_picks_what_the_textbook_loop_picks(signals, preset, balanced):
    chosen = select(signals=signals, ratio=0.2, preset=preset, balanced=balanced, device="cpu")
    wanted = textbook(signals, chosen)
    assert wanted.clear
    assert chosen.indices.tolist() == wanted.indices
    np.testing.assert_allclose(chosen.gains, wanted.gains, rtol=1e-6)
    assert chosen.objective == pytest.approx(wanted.objective, rel=1e-9)


@pytest.mark.parametrize("gain", ["paper", "coverage"])
def test_every_path_picks_the_same(signals, gain, monkeypatch):
    asked = {"signals": signals, "ratio": 0.3, "tau": 0.97, "gain": gain, "device": "cpu"}
    plain = select(screening="none", **asked)
    found = {"projection": select(screening="projection", **asked)}
    monkeypatch.setenv("PRUNE4REL_THREADS", "1")
    found["one thread"] = select(**asked)
    if gain == "paper":
        found["streaming"] = select(memory=1, **asked)
    monkeypatch.setattr(
        build,
        "_make_backend",
        lambda points, _, **__: TorchBackend.from_points(points, "cpu", tile=512, capacity=2**20),
    )
    found["torch"] = select(**asked)
    for way, other in found.items():
        np.testing.assert_array_equal(other.indices, plain.indices, err_msg=way)
        np.testing.assert_array_equal(other.gains, plain.gains, err_msg=way)


def test_auto_tau_gives_about_twenty_neighbours(signals):
    chosen = select(signals=signals, ratio=0.05, device="cpu")
    assert chosen.stats["mean_degree"] == pytest.approx(20, rel=0.15)


def test_label_aware_picks_are_cleaner_than_the_set():
    from sklearn.datasets import load_digits

    signals = noisy_digits()
    wrong = signals.labels != load_digits().target
    chosen = select(signals=signals, ratio=0.3, balanced=True, device="cpu")
    assert wrong[chosen.indices].mean() < 0.5 * wrong.mean()
