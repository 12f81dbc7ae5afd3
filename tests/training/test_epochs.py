import json

import pytest
import torch
from tests.training.small import digits, features, trainer_of

from prune4rel.progress import Progress
from prune4rel.training.checkpoint import Checkpoints, Saver
from prune4rel.training.result import Trackers
from prune4rel.training.train import METRICS, SPEED, Epochs


class Listening(Progress):
    def __init__(self):
        self.lines = []

    def say(self, message):
        self.lines.append(message)

    status = say


class Told(Trackers):
    def __init__(self):
        self.told = []

    def log(self, numbers, epoch):
        self.told.append((epoch, numbers))


def epochs_in(folder, evaluate_every=None, dataset=None, **options):
    trainer = trainer_of(dataset or features(), **options)
    trainer.progress = Listening()
    saver = Saver(trainer.training, Checkpoints(folder / "states", {}), 0.0)
    return Epochs(trainer, folder, saver, Told(), evaluate_every)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_epoch_is_told_to_everybody(tmp_path):
    epochs = epochs_in(tmp_path, epochs=3)
    epochs.run()
    assert lines(tmp_path / METRICS) == epochs.history
    assert [numbers["epoch"] for numbers in epochs.history] == [0, 1, 2]
    assert all(0 <= numbers["test_accuracy"] <= 1 for numbers in epochs.history)
    assert [entry["epoch"] for entry in lines(tmp_path / SPEED)] == [0, 1, 2]
    assert all(entry["images_per_second"] > 0 for entry in lines(tmp_path / SPEED))
    assert [epoch for epoch, _ in epochs.trackers.told] == [0, 1, 2]
    assert "images_per_second" in epochs.trackers.told[0][1]
    last = epochs.trainer.progress.lines[-1]
    for words in ("epoch 3/3", "loss", "agrees with", "test accuracy", "examples/s"):
        assert words in last


@pytest.mark.parametrize(("evaluate_every", "expected"), [(None, [0, 1, 2, 3, 4]), (2, [1, 3, 4]), (9, [4])])
def test_the_test_split_is_looked_at_every_so_often_and_at_last(tmp_path, evaluate_every, expected):
    epochs = epochs_in(tmp_path, evaluate_every, epochs=5)
    epochs.run()
    assert [numbers["epoch"] for numbers in epochs.history if "test_accuracy" in numbers] == expected


def test_long_trainings_look_twenty_times(tmp_path):
    assert epochs_in(tmp_path, epochs=300).evaluate_every == 15


def test_without_a_test_split_there_is_nothing_to_look_at(tmp_path):
    from dataclasses import replace

    epochs = epochs_in(tmp_path, dataset=replace(digits(), test=None))
    epochs.run()
    assert not any("test_accuracy" in numbers for numbers in epochs.history)


def test_true_labels_of_the_test_split_count_where_they_are_known(tmp_path):
    from dataclasses import replace

    test = features().test
    wrong = replace(test, labels=(test.labels + 1) % 3, clean_labels=test.labels)
    found = []
    for number, split in enumerate((test, wrong)):
        (tmp_path / str(number)).mkdir()
        epochs = epochs_in(tmp_path / str(number), dataset=replace(features(), test=split))
        epochs.run()
        found.append(epochs.history)
    assert found[0] == found[1]


def test_metrics_written_past_the_last_checkpoint_are_taken_back(tmp_path):
    first = epochs_in(tmp_path, epochs=3)
    first.run()
    (tmp_path / METRICS).write_text("half a li")
    again = epochs_in(tmp_path, epochs=3)
    again.run()
    assert again.history == lines(tmp_path / METRICS) == first.history
    assert again.trainer.progress.lines[0] == "going on in epoch 3 of 3"
    assert torch.equal(again.training.learner.networks[0].head.weight, first.training.learner.networks[0].head.weight)
