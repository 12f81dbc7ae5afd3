"""The learner of features: labels are judged, and a linear classifier learns what they are judged to be."""

import json

import numpy as np
import pytest
import torch

import prune4rel as p4r
from prune4rel.data import Dataset, Split
from prune4rel.inference.model import load_model
from prune4rel.judging import judge
from prune4rel.judging.logistic import fit_logistic
from prune4rel.learners import Setting, make_learner
from prune4rel.loading.schedule import seed_of
from prune4rel.networks import make
from prune4rel.training import make_plan, train, usual_learner
from prune4rel.training.hyperparameters import judge_all


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 24))
    truth, asked = rng.integers(0, 4, 500), rng.integers(0, 4, 300)
    given = np.where(rng.random(500) < 0.3, (truth + 1) % 4, truth)
    rows, others = (centres[y] + 1.2 * rng.normal(size=(len(y), 24)) for y in (truth, asked))
    return Dataset(
        name="mine",
        train=Split(labels=given, clean_labels=truth, features=rows.astype(np.float32)),
        test=Split(labels=asked, features=others.astype(np.float32)),
        class_names=tuple("abcd"),
    )


@pytest.fixture(scope="module")
def trained(vectors, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logistic") / "run"
    return folder, train(vectors, folder=folder, device="cpu")


def chances(fitted, vectors):
    return torch.softmax(torch.from_numpy(fitted.logits(vectors.test.features)), dim=1).numpy()


def test_it_is_what_features_are_trained_with(vectors):
    assert usual_learner("features", whole=False) == "logistic"
    plan = make_plan(vectors, "logistic", epochs=70)
    assert (plan.network, plan.hyperparameters.epochs) == ("linear", 1)


def test_the_model_is_the_regression_on_what_labels_are_judged_to_be(vectors, trained):
    folder, result = trained
    rows, given = vectors.train.features, vectors.train.labels
    fitted = fit_logistic(rows, judge(rows, given, n_classes=4).probabilities, seed=seed_of(0, 3))
    np.testing.assert_allclose(
        load_model(folder).probabilities(vectors.test.features), chances(fitted, vectors), atol=0.01
    )
    right = (fitted.logits(vectors.test.features).argmax(axis=1) == vectors.test.labels).mean()
    assert result.test_accuracy == pytest.approx(right, abs=0.005)


def test_it_is_ahead_of_regression_on_given_labels_and_finds_the_wrong_ones(vectors, trained):
    _, result = trained
    plain = fit_logistic(vectors.train.features, vectors.train.labels)
    right = (plain.logits(vectors.test.features).argmax(axis=1) == vectors.test.labels).mean()
    assert result.test_accuracy > right
    assert result.wrong_label_ap > 0.9
    assert result.steps == 2  # it looked at 500 examples once


def test_labels_are_those_that_were_judged(vectors, trained):
    folder, _ = trained
    labels = p4r.Labels.load(folder / "corrected_labels.parquet")
    found = judge(vectors.train.features, vectors.train.labels, n_classes=4)
    np.testing.assert_allclose(labels.label_score, found.label_score, atol=1e-6)
    np.testing.assert_array_equal(labels.is_label_issue, found.is_label_issue)
    np.testing.assert_array_equal(labels.predicted_label, found.predicted_label)
    (line,) = (folder / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["loss"] > 0


def test_on_some_examples_the_labels_of_all_have_a_say(vectors, tmp_path):
    some = np.arange(0, 500, 5)
    everyone = judge_all(vectors, make_plan(vectors, "logistic")).probabilities
    train(vectors, some, folder=tmp_path / "run", device="cpu")
    fitted = fit_logistic(vectors.train.features[some], everyone[some], seed=seed_of(0, 3))
    found = load_model(tmp_path / "run").probabilities(vectors.test.features)
    np.testing.assert_allclose(found, chances(fitted, vectors), atol=0.01)


@pytest.mark.parametrize("equal", [False, True])
def test_a_run_on_features_takes_it_unless_told(vectors, tmp_path, equal):
    train_, test = vectors.train, vectors.test
    data = tmp_path / "data.npz"
    np.savez(
        data,
        features=train_.features,
        labels=train_.labels,
        test_features=test.features,
        test_labels=test.labels,
    )
    options = {"equal_steps": True, "steps": 500} if equal else {"everything": True}
    config = p4r.Config(dataset="arrays", data=str(data), methods=("small-loss",), ratios=(0.2,), **options)
    done = p4r.run(config, tmp_path / "run")
    assert done.config.learners == ("logistic",)
    names = sorted(path.name for path in (tmp_path / "run" / "trainings").iterdir())
    assert names == ["everything-logistic-seed0", "small-loss-0.2-logistic-seed0"]


def test_where_nobody_takes_steps_a_time_budget_has_none_to_share(vectors, tmp_path):
    np.savez(tmp_path / "data.npz", features=vectors.train.features, labels=vectors.train.labels)
    config = p4r.Config(dataset="arrays", data=str(tmp_path / "data.npz"), methods=("uniform",), equal_steps=True)
    done = p4r.run(config, tmp_path / "run", time_budget=600)
    assert all(step.done for step in done.steps)


def test_images_are_refused_and_so_are_other_networks(vectors, tmp_path):
    with pytest.raises(p4r.InputError, match="goes by features, and the examples are images"):
        train(p4r.load_dataset("digits"), folder=tmp_path / "run", learner="logistic")
    assert not (tmp_path / "run").exists()
    with pytest.raises(p4r.InputError, match="trains the network 'linear', not 'mlp'"):
        make_plan(vectors, "logistic", network="mlp")
    with pytest.raises(p4r.InputError, match="needs labels that were judged"):
        make_learner("logistic", Setting(lambda: make("linear", 2, shape=(3,)), np.array([0, 1]), 2))
