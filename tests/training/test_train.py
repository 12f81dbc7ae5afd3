from importlib import import_module

import numpy as np
import pytest
from tests.training.small import BY_METHOD, LEARNERS, TINY, digits, features, learner_of, write_images

from prune4rel import InputError
from prune4rel.progress import Progress
from prune4rel.training import load_model, train
from prune4rel.training.loop import Training

SAME = ("metrics.jsonl", "model.safetensors", "model.json", "corrected_labels.parquet", "training.json")
OPTIONS = {**TINY, "learner": "sop+", "device": "cpu"}


class StopError(Exception):
    pass


class Listening(Progress):
    def __init__(self):
        self.lines = []

    def say(self, message):
        self.lines.append(message)


def contents(folder):
    return {name: (folder / name).read_bytes() for name in SAME}


def die_in_save(patch, number):
    """Let a training end when it is about to be saved for the n-th time."""
    saves = 0
    real = Training.is_sound

    def dying(self):
        nonlocal saves
        saves += 1
        if saves == number:
            raise StopError
        return real(self)

    patch.setattr(Training, "is_sound", dying)


def test_twice_the_same(tmp_path):
    first, second = (train(digits(), folder=tmp_path / name, **OPTIONS) for name in ("a", "b"))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert first.history == second.history
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted([*SAME, "result.json", "speed.jsonl"])


@pytest.mark.parametrize("name", [*LEARNERS, BY_METHOD])
def test_interrupted_again_and_again_it_ends_in_the_same_bytes(tmp_path, monkeypatch, name):
    options = {**OPTIONS, **learner_of(name), "epochs": 3, "save_every": 0.0}
    train(digits(), folder=tmp_path / "whole", **options)
    rng = np.random.default_rng(len(name))
    for _ in range(4):
        with monkeypatch.context() as patch:
            die_in_save(patch, int(rng.integers(2, 6)))
            with pytest.raises(StopError):
                train(digits(), folder=tmp_path / "torn", **options)
    train(digits(), folder=tmp_path / "torn", **options)
    assert contents(tmp_path / "torn") == contents(tmp_path / "whole")
    assert not (tmp_path / "torn" / "checkpoints").exists()


def test_interrupted_while_finishing(tmp_path, monkeypatch):
    train(features(), folder=tmp_path / "whole", **OPTIONS)

    def fail(*_):
        raise StopError

    for name in ("save_model", "write_corrected"):
        with monkeypatch.context() as patch:
            patch.setattr(f"prune4rel.training.result.{name}", fail)
            with pytest.raises(StopError):
                train(features(), folder=tmp_path / "torn", **OPTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(Training, "run_epoch", fail)  # nothing is left to train
        train(features(), folder=tmp_path / "torn", **OPTIONS)
    assert contents(tmp_path / "torn") == contents(tmp_path / "whole")


def test_a_corrupt_newest_checkpoint_costs_only_time(tmp_path, monkeypatch):
    train(features(), folder=tmp_path / "whole", **OPTIONS)
    with monkeypatch.context() as patch:
        die_in_save(patch, 5)
        with pytest.raises(StopError):
            train(features(), folder=tmp_path / "torn", save_every=0.0, **OPTIONS)
    newest = max((tmp_path / "torn" / "checkpoints").iterdir()) / "state.safetensors"
    newest.write_bytes(newest.read_bytes()[:-100])
    listener = Listening()
    train(features(), folder=tmp_path / "torn", progress=listener, **OPTIONS)
    assert "going back to the one before" in listener.lines[0]
    assert contents(tmp_path / "torn") == contents(tmp_path / "whole")


def test_networks_with_dropout_and_averages_are_resumed_as_well(tmp_path, monkeypatch, dropping):
    options = {"network": dropping, "epochs": 2, "batch": 16, "device": "cpu", "ema": 0.9, "clip": 1.0}
    train(digits(), folder=tmp_path / "whole", **options)
    with monkeypatch.context() as patch:
        die_in_save(patch, 7)
        with pytest.raises(StopError):
            train(digits(), folder=tmp_path / "torn", save_every=0.0, **options)
    train(digits(), folder=tmp_path / "torn", **options)
    assert contents(tmp_path / "torn") == contents(tmp_path / "whole")


def test_finished_it_is_not_repeated_unless_asked(tmp_path, monkeypatch):
    first = train(features(), folder=tmp_path, **OPTIONS)
    (tmp_path / "checkpoints").mkdir()  # left where the process was killed at the very end
    before, listener = contents(tmp_path), Listening()
    with monkeypatch.context() as patch:
        patch.setattr(import_module("prune4rel.training.train"), "Trainer", None)
        assert train(features(), folder=tmp_path, progress=listener, **OPTIONS) == first
    assert "finished before" in listener.lines[0]
    assert not (tmp_path / "checkpoints").exists()
    train(features(), folder=tmp_path, restart=True, **OPTIONS | {"seed": 1})
    assert contents(tmp_path)["model.safetensors"] != before["model.safetensors"]


def test_another_training_in_the_same_folder_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        die_in_save(patch, 2)
        with pytest.raises(StopError):
            train(features(), folder=tmp_path, save_every=0.0, **OPTIONS)
    for change, name in (
        ({"lr": 0.5}, r"training\.lr"),
        ({"subset": [1, 2]}, "subset"),
        ({"learner": "elr"}, "learner"),
    ):
        with pytest.raises(InputError, match=f"begun with {name}.*--restart"):
            train(features(), folder=tmp_path, **OPTIONS | change)
    train(features(), folder=tmp_path, **OPTIONS)
    with pytest.raises(InputError, match=r"training\.lr = 0\.02, not 0\.5"):
        train(features(), folder=tmp_path, **OPTIONS | {"lr": 0.5})


def test_beginning_anew_clears_what_was_there(tmp_path, monkeypatch):
    train(features(), folder=tmp_path, **OPTIONS)
    (tmp_path / ".model.safetensors.77.part").write_bytes(b"left by a killed process")
    with monkeypatch.context() as patch:
        die_in_save(patch, 1)
        with pytest.raises(StopError):
            train(features(), folder=tmp_path, restart=True, save_every=0.0, **OPTIONS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl", "training.json"]


def test_a_diverging_training_stops_and_keeps_the_last_good_checkpoint(tmp_path):
    from prune4rel.training.checkpoint import Checkpoints
    from prune4rel.training.hyperparameters import identity_of, make_plan, resolve_subset

    options = {**TINY, "learner": "sop+", "lr": 1e12, "weight_decay": 0.1, "epochs": 9, "rise": 8}
    with pytest.raises(InputError, match=r"NaN or infinite .*smaller learning rate") as error:
        train(features(), folder=tmp_path, save_every=0.0, device="cpu", **options)
    assert "checkpoint" in str(error.value)
    plan = make_plan(features(), **options)
    states = Checkpoints(tmp_path / "checkpoints", identity_of(plan, features(), resolve_subset(features(), None)))
    import torch

    tensors, _ = states.newest(Progress(), torch.device("cpu"))
    assert all(tensor.isfinite().all() for name, tensor in tensors.items() if name.startswith("learner."))
    assert not (tmp_path / "result.json").exists()


def test_image_files_train_end_to_end_without_the_broken_ones(tmp_path):
    import pyarrow.parquet as pq

    data = write_images(tmp_path / "data", n=14, broken=[0, 5])
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="skip_broken=True"):
        train(data, folder=tmp_path / "run", **OPTIONS)
    result = train(
        data,
        np.arange(1, 10),
        folder=tmp_path / "run",
        skip_broken=True,
        restart=True,
        **OPTIONS | {"lr": 0.1, "epochs": 9},
    )
    assert result.size == 8
    assert "1 of 9 images to train on could not be read and were left out" in result.notes
    assert "2 of 14 images could not be read; their labels are as given" in result.notes
    table = pq.read_table(tmp_path / "run" / "corrected_labels.parquet")
    assert len(table) == 14
    assert np.flatnonzero(np.array(table["source"].to_pylist()) == "nobody").tolist() == [0, 5]
    assert not table["changed"].to_numpy()[[0, 5]].any()
    readable = np.delete(table["corrected_label"].to_numpy(), [0, 5])
    assert (readable == np.delete(data.train.labels, [0, 5])).mean() > 0.8


def test_features_train_end_to_end_and_correct_labels(tmp_path):
    data = features()
    result = train(data, folder=tmp_path, **OPTIONS | {"lr": 0.1, "epochs": 20, "learner": "elr"})
    assert result.relabel_accuracy > 0.95
    assert result.self_correction > 0.8
    assert (load_model(tmp_path).predict(data.train.features) == data.train.clean_labels).mean() > 0.95


def test_a_class_without_examples_is_no_obstacle(tmp_path):
    data = features()
    for learner in LEARNERS:
        rows = np.flatnonzero(data.train.labels != 2)
        result = train(data, rows, folder=tmp_path / learner, **OPTIONS | {"learner": learner})
        assert any("no example of class c" in note for note in result.notes)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_handful_of_examples_is_enough(tmp_path, learner, m):
    result = train(features(), np.arange(m), folder=tmp_path / "run", **OPTIONS | {"learner": learner})
    assert result.size == m
    assert f"a batch of 16 is more than the {m} examples; all of them are one batch" in result.notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluate_every": 0}, "evaluate_every must be 1 or more"),
        ({"save_every": -1}, "save_every must be 0 or more"),
        ({"save_every": float("nan")}, "save_every must be"),
        ({"subset": []}, "is empty"),
        ({"track": ("tensorbord",)}, "did you mean 'tensorboard'"),
        ({"learner": "sup"}, "did you mean 'sop'"),
        ({"network": "small-cnn", "network_options": {}}, "takes images"),
    ],
)
def test_bad_input_is_named(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        train(features(), folder=tmp_path / "run", **OPTIONS | options)


def test_folders_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        train(features(), folder=tmp_path / "file", **OPTIONS)
    with pytest.raises(InputError, match="does not exist"):
        train(features(), folder=tmp_path / "no" / "run", **OPTIONS)


def test_trackers_hear_every_epoch_and_the_result(tmp_path, monkeypatch):
    from prune4rel.training import result as track

    told = []

    class Own(track.Tracker):
        def __init__(self, folder, config):
            assert (folder, config["learner"]) == (tmp_path, "sop+")

        def log(self, numbers, epoch):
            told.append((epoch, dict(numbers)))

        def close(self):
            told.append("closed")

    monkeypatch.setitem(track.TRACKERS, "own", Own)
    result = train(features(), folder=tmp_path, track=("own",), **OPTIONS)
    assert [epoch for epoch, _ in told[:-1]] == [0, 1, 1]
    assert told[-2][1] == {name: value for name, value in result.accuracies().items() if value is not None}
    assert told[-1] == "closed"
