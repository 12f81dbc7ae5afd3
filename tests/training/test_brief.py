import pytest
import torch
from tests.training.small import features, same_state, shop_of

from prune4rel import InputError
from prune4rel.progress import Progress
from prune4rel.training.brief import train_briefly


class Listening(Progress):
    def __init__(self):
        self.lines = []

    def say(self, message):
        self.lines.append(message)

    def status(self, message):
        self.lines.append(message)


def train(shop, folder=None, epochs=2, **identity):
    train_briefly(shop, epochs, title="trial", folder=folder, save_every=0.0, **identity)
    return shop.training


def test_it_runs_up_to_an_epoch_and_tells_how_it_stands():
    shop = shop_of(features(), subset=range(9))
    shop.progress = Listening()
    assert train(shop, epochs=3).epoch == 3
    assert "a batch of 16" in shop.progress.lines[0]
    assert shop.progress.lines[-1].startswith("trial, epoch 3/3, loss ")


def test_done_it_is_not_done_again(tmp_path):
    folder = tmp_path / "states"
    first = train(shop_of(features()), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prune4rel.training.loop.Training.run_epoch", None)
        assert same_state(first, train(shop_of(features()), folder))


def test_what_it_has_to_agree_with(tmp_path):
    train(shop_of(features()), tmp_path, more=1)
    for epochs, identity, name in ((3, {"more": 1}, "until"), (2, {"more": 2}, "more"), (2, {}, "more")):
        with pytest.raises(InputError, match=f"begun with {name}"):
            train(shop_of(features()), tmp_path, epochs, **identity)


def test_running_out_of_memory_is_explained():
    shop = shop_of(features())

    def run(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    shop.training.stepper._run = run
    with pytest.raises(InputError, match="a batch of 16 does not fit"):
        train(shop)
