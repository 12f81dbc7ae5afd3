from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score
from tests.training.small import LEARNERS, features, nothing, trainer_of

from prune4rel import Labels
from prune4rel.machine import Clock
from prune4rel.training import Result, load_model
from prune4rel.training.result import finish

SUBSET = np.arange(5, 55)


def finished(folder, learner="cross-entropy", dataset=None, history=(), **options):
    trainer = trainer_of(dataset or features(), learner, subset=SUBSET, **{"epochs": 3, "lr": 0.1, **options})
    for _ in range(3):
        trainer.training.run_epoch(nothing)
    return finish(trainer, folder, list(history), Clock())


@pytest.mark.parametrize("ema", [None, 0.8])
@pytest.mark.parametrize("learner", LEARNERS)
def test_numbers_are_those_of_the_model_on_disk(tmp_path, learner, ema):
    result = finished(tmp_path, learner, ema=ema)
    train = features().train
    corrected, clean, given = load_model(tmp_path).predict(train.features), train.clean_labels, train.labels
    wrong = SUBSET[(given != clean)[SUBSET]]
    assert result.relabel_accuracy == pytest.approx((corrected == clean).mean())
    assert result.self_correction == pytest.approx((corrected == clean)[wrong].mean())
    assert result.subset_noise == pytest.approx(len(wrong) / len(SUBSET))
    assert (result.size, result.epochs) == (50, 3)
    assert Result.load(tmp_path) == result


@pytest.mark.parametrize("learner", LEARNERS)
def test_labels_are_judged_without_having_been_learnt_from(tmp_path, learner):
    """By a memory of what was said before; by the model only where it has not seen the example."""
    trainer = trainer_of(features(), learner, subset=SUBSET, remember=True, epochs=3, lr=0.1)
    for _ in range(3):
        trainer.training.run_epoch(nothing)
    result = finish(trainer, tmp_path, [], Clock())
    train, labels = features().train, Labels.load(tmp_path / "corrected_labels.parquet")
    said = load_model(tmp_path).probabilities(train.features)
    memory = trainer.training.memory
    said[SUBSET] = memory.of(torch.arange(len(SUBSET))).numpy()
    seen = np.ones(len(train), dtype=bool)
    seen[SUBSET] = memory.seen.numpy() > 0
    assert (labels.source == np.where(seen, "training", "nobody")).all()
    every = np.arange(len(train))
    np.testing.assert_allclose(labels.confidence[seen], said[every, labels.predicted_label][seen], atol=1e-5)
    other = np.where(np.arange(said.shape[1]) == train.labels[:, None], -1, said).argmax(1)
    expected = np.where(labels.is_label_issue, other, train.labels)
    assert labels.predicted_label.tolist() == labels.corrected_label.tolist() == expected.tolist()
    assert labels.ids.tolist() == train.ids.tolist()
    wrong = train.labels != train.clean_labels
    assert result.wrong_label_ap == pytest.approx(average_precision_score(wrong, -labels.label_score))
    assert result.labels_changed == (labels.corrected_label != train.labels).sum()


def test_without_true_labels_nothing_is_claimed(tmp_path):
    blind = replace(features(), train=replace(features().train, clean_labels=None))
    result = finished(tmp_path, dataset=blind)
    assert (result.relabel_accuracy, result.self_correction, result.subset_noise) == (None, None, None)
    assert result.wrong_label_ap is None


def test_the_last_look_is_the_result_and_the_best_is_only_shown(tmp_path):
    history = [{"test_accuracy": 0.1}, {"test_accuracy": 0.9}, {"loss": 1.0}, {"test_accuracy": 0.5}]
    result = finished(tmp_path, history=history)
    assert (result.test_accuracy, result.best_accuracy) == (0.5, 0.9)
    assert finished(tmp_path).test_accuracy is None


def test_other_ranks_write_nothing(tmp_path):
    trainer = trainer_of(features(), subset=SUBSET)
    trainer.training.learner.ranks.rank = 1
    finish(trainer, tmp_path, [], Clock())
    assert not list(tmp_path.iterdir())
