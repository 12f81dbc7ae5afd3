from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.training.small import LEARNERS, features, nothing, trainer_of

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
def test_the_model_on_disk_gives_the_corrected_labels(tmp_path, learner, ema):
    result = finished(tmp_path, learner, ema=ema)
    train = features().train
    table = pq.read_table(tmp_path / "corrected_labels.parquet")
    probabilities = load_model(tmp_path).probabilities(train.features)
    assert table["corrected_label"].to_pylist() == probabilities.argmax(1).tolist()
    np.testing.assert_allclose(table["confidence"].to_numpy(), probabilities.max(1), atol=1e-5)
    assert table["id"].to_pylist() == train.ids.tolist()
    assert table["given_label"].to_pylist() == train.labels.tolist()

    corrected, clean, given = probabilities.argmax(1), train.clean_labels, train.labels
    wrong = SUBSET[(given != clean)[SUBSET]]
    assert result.relabel_accuracy == pytest.approx((corrected == clean).mean())
    assert result.self_correction == pytest.approx((corrected == clean)[wrong].mean())
    assert result.subset_noise == pytest.approx(len(wrong) / len(SUBSET))
    assert result.labels_changed == (corrected != given).sum() == table["changed"].to_numpy().sum()
    assert (result.size, result.epochs) == (50, 3)
    assert Result.load(tmp_path) == result


def test_without_true_labels_nothing_is_claimed(tmp_path):
    blind = replace(features(), train=replace(features().train, clean_labels=None))
    result = finished(tmp_path, dataset=blind)
    assert (result.relabel_accuracy, result.self_correction, result.subset_noise) == (None, None, None)


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
