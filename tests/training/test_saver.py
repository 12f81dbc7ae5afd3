import torch
from tests.training.small import features, nothing, same_state, trainer_of

from prune4rel.loading.schedule import Ranks
from prune4rel.progress import Progress
from prune4rel.training.checkpoint import Checkpoints, Saver


def saver(tmp_path, every=0.0, training=None):
    training = training or trainer_of(features()).training
    return Saver(training, Checkpoints(tmp_path / "states", {}), every)


def saved(tmp_path):
    return sorted(int(path.name) for path in (tmp_path / "states").glob("*"))


def test_what_was_saved_is_taken_up_with_what_lay_beside_it(tmp_path):
    first = saver(tmp_path)
    first.training.run_epoch(nothing)
    first.save({"history": [1, 2]})
    second = saver(tmp_path)
    assert second.resume(Progress())["history"] == [1, 2]
    assert same_state(first.training, second.training)


def test_nothing_saved_nothing_taken_up(tmp_path):
    assert saver(tmp_path).resume(Progress()) == {}
    nowhere = Saver(trainer_of(features()).training, None, 0.0)
    nowhere.save(now=True)
    assert nowhere.resume(Progress()) == {}


def test_it_waits_until_it_is_time(tmp_path):
    patient = saver(tmp_path, every=1000)
    patient.save()
    assert saved(tmp_path) == []
    patient.save(now=True)
    assert saved(tmp_path) == [1]


def test_after_the_last_step_and_after_the_epoch_are_two_states(tmp_path):
    each = saver(tmp_path)
    each.training.run_epoch(lambda *_: each.save())
    assert saved(tmp_path) == [4, 6]
    each.save()
    assert saved(tmp_path) == [6, 7]


def test_a_training_that_went_wrong_is_not_saved(tmp_path):
    broken = saver(tmp_path)
    with torch.no_grad():
        broken.training.learner.networks[0].head.bias[0] = torch.inf
    broken.save(now=True)
    assert saved(tmp_path) == []


def test_only_the_first_rank_saves(tmp_path):
    class Second(Ranks):
        rank, world = 1, 2

    training = trainer_of(features()).training
    training.learner.ranks = Second()
    saver(tmp_path, training=training).save(now=True)
    assert saved(tmp_path) == []
