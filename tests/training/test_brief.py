import pytest
import torch
from tests.training.small import features, same_state, trainer_of

from prune4rel import InputError
from prune4rel.progress import Progress
from prune4rel.training.trainer import train_briefly


class Listening(Progress):
    def __init__(self):
        self.lines = []

    def say(self, message):
        self.lines.append(message)

    def status(self, message):
        self.lines.append(message)


def train(trainer, folder=None, epochs=2, **identity):
    train_briefly(trainer, epochs, title="trial", folder=folder, save_every=0.0, **identity)
    return trainer.training


def test_it_runs_up_to_an_epoch_and_tells_how_it_stands():
    trainer = trainer_of(features(), subset=range(9))
    trainer.progress = Listening()
    assert train(trainer, epochs=3).epoch == 3
    assert "a batch of 16" in trainer.progress.lines[0]
    assert trainer.progress.lines[-1].startswith("trial, epoch 3/3, loss ")


def test_done_it_is_not_done_again(tmp_path):
    folder = tmp_path / "states"
    first = train(trainer_of(features()), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prune4rel.training.loop.Training.run_epoch", None)
        assert same_state(first, train(trainer_of(features()), folder))


def test_what_it_has_to_agree_with(tmp_path):
    train(trainer_of(features()), tmp_path, more=1)
    for epochs, identity, name in ((3, {"more": 1}, "until"), (2, {"more": 2}, "more"), (2, {}, "more")):
        with pytest.raises(InputError, match=f"begun with {name}"):
            train(trainer_of(features()), tmp_path, epochs, **identity)


def test_running_out_of_memory_is_explained():
    trainer = trainer_of(features())

    def run(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    trainer.training.stepper._run = run
    with pytest.raises(InputError, match="a batch of 16 does not fit"):
        train(trainer)
