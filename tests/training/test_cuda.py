"""Steps as CUDA graphs beside the same steps run as they are. All of this needs a GPU."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.training.small import LEARNERS, digits, features, nothing, trainer_of

from prune4rel.data import Dataset, Split
from prune4rel.gpu.streams import WARM, SideStream
from prune4rel.training import train, warm_up
from prune4rel.training.step import Stepper

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

CNN = {"network": "small-cnn", "network_options": {"width": 8}, "batch": 16}
SAME = ("metrics.jsonl", "model.safetensors", "corrected_labels.parquet")


def trainer_on_gpu(learner, dataset=None, **options):
    options = {**CNN, "epochs": 4, "precision": "float32", "deterministic": True, **options}
    if learner == "dividemix":
        options.setdefault("learner_options", {"warmup_epochs": 1})
    return trainer_of(dataset or digits(), learner, device="cuda", **options)


def weights(training):
    return torch.cat([p.detach().flatten().cpu() for p in training.learner.networks.parameters()])


def run(trainer, epochs=3, *, recorded=True):
    if not recorded:
        trainer.training.stepper.recorder = None
    with trainer.settings():
        numbers = [trainer.training.run_epoch(nothing) for _ in range(epochs)]
    torch.cuda.synchronize()
    return numbers, weights(trainer.training)


@pytest.mark.parametrize("learner", LEARNERS)
def test_recorded_steps_do_what_steps_do(learner):
    trainer = trainer_on_gpu(learner)
    recorded, ours = run(trainer)
    assert trainer.training.stepper.recorder.recorded
    eager, theirs = run(trainer_on_gpu(learner), recorded=False)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    for mine, other in zip(recorded, eager, strict=True):
        assert mine.keys() == other.keys()
        assert mine["loss"] == pytest.approx(other["loss"], rel=1e-3)


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_gpu_learns_what_the_cpu_learns(learner):
    options = {"network": "mlp", "network_options": {"width": 8}, "lr": 0.01, "epochs": 2}
    if learner == "dividemix":
        options["learner_options"] = {"warmup_epochs": 1}
    here = trainer_of(features(), learner, precision="float32", **options)
    there = trainer_of(features(), learner, device="cuda", precision="float32", **options)
    first, second = (run(trainer, 1) for trainer in (here, there))
    torch.testing.assert_close(first[1], second[1], rtol=1e-2, atol=1e-3)
    assert first[0][0]["loss"] == pytest.approx(second[0][0]["loss"], rel=1e-2)


def test_batches_made_beside_the_steps_are_those_made_alone(monkeypatch):
    real = Stepper._run

    def late(self, *given):
        torch.cuda._sleep(5_000_000)  # so that the host and the side are far ahead of the steps
        real(self, *given)

    monkeypatch.setattr(Stepper, "_run", late)
    monkeypatch.setattr("prune4rel.loading.loader.default_chunk", lambda *_: 2)  # several pieces of memory an epoch
    beside, alone = trainer_on_gpu("sop+"), trainer_on_gpu("sop+")
    alone.training.feed._side = None
    assert torch.equal(run(beside)[1], run(alone)[1])


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_work_done_aside_changes_not_a_bit(learner, precision, recorded):
    trainer, other = (trainer_on_gpu(learner, precision=precision) for _ in range(2))
    other.training.stepper._side = SideStream(torch.device("cpu"))
    assert torch.equal(run(trainer, recorded=recorded)[1], run(other, recorded=recorded)[1])


def test_the_rate_may_change_between_replays():
    trainer = trainer_on_gpu("cross-entropy", scheme="constant", momentum=0.0, weight_decay=0.0)
    run(trainer, 2)
    assert trainer.training.stepper.recorder.recorded
    before = weights(trainer.training)
    trainer.training.hyperparameters = replace(trainer.training.hyperparameters, lr=0.0)
    run(trainer, 1)
    assert torch.equal(weights(trainer.training), before)


def test_every_step_of_an_epoch_is_booked_and_histories_are_kept():
    trainer = trainer_of(digits(), "sop+", keep=("forgetting", "aum"), device="cuda", **{**CNN, "epochs": 4})
    run(trainer, 4)
    record = trainer.training.record
    assert record.step.item() == 80 // 16
    assert record.seen.sum().item() == 4 * 80
    assert (record.histories()["aum"].abs() <= 1).all()


@pytest.mark.parametrize("clip", [None, 0.5])
def test_averages_and_clipping_are_part_of_a_recorded_step(clip):
    options = {"ema": 0.9, "clip": clip}
    trainer, other = (trainer_on_gpu("sop+", **options) for _ in range(2))
    run(trainer)
    run(other, recorded=False)
    with trainer.training.averaged(), other.training.averaged():
        torch.testing.assert_close(weights(trainer.training), weights(other.training), rtol=1e-3, atol=1e-4)


def test_dropout_draws_anew_in_every_replay_and_the_same_again(dropping):
    options = {"network": dropping, "network_options": {}, "lr": 0.0, "lr_min": 0.0, "weight_decay": 0.0}
    first, second = (run(trainer_on_gpu("cross-entropy", **options), 4)[0] for _ in range(2))
    losses = [numbers["loss"] for numbers in first]
    assert losses == [numbers["loss"] for numbers in second]
    assert len(set(losses)) == 4


def test_bfloat16_and_channels_last_learn():
    data = digits(800, 200)
    trainer = trainer_on_gpu("sop+", data, precision="auto", deterministic=False, epochs=12, batch=32, lr=0.05)
    assert trainer.training.stepper.half
    numbers, _ = run(trainer, 12)
    assert numbers[-1]["loss"] < numbers[0]["loss"]
    said = trainer.predict(data.test).argmax(1).numpy()
    assert (said == data.test.labels).mean() > 0.5


def test_steps_of_a_kind_are_recorded_once():
    trainer = trainer_on_gpu("cross-entropy")
    steps = 80 // 16
    assert steps > WARM
    run(trainer, 3)
    assert len(trainer.training.stepper.recorder.recorded) == 1
    graph = next(iter(trainer.training.stepper.recorder.recorded.values()))
    run(trainer, 1)
    assert list(trainer.training.stepper.recorder.recorded.values()) == [graph]


class StopError(Exception):
    pass


@pytest.mark.parametrize("learner", LEARNERS)
def test_left_at_any_step_and_entered_again_it_ends_in_the_same_bits(learner):
    whole = trainer_on_gpu(learner)
    _, expected = run(whole)
    total = whole.training.steps
    for stop in np.random.default_rng(0).choice(np.arange(1, total), 3, replace=False).tolist():
        first = trainer_on_gpu(learner)

        def after_step(*_, training=first.training, stop=stop):
            if training.steps == stop:
                raise StopError

        def leave(training=first.training, after_step=after_step):
            for _ in range(3):
                training.run_epoch(after_step)

        with pytest.raises(StopError), first.settings():
            leave()
        tensors, facts = first.training.state()
        state = {name: tensor.clone() for name, tensor in tensors.items()}
        second = trainer_on_gpu(learner)
        second.training.restore(state, facts)
        _, found = run(second, 3 - second.training.epoch)
        assert torch.equal(found, expected), stop


def test_a_whole_training_is_deterministic_and_resumed(tmp_path, monkeypatch):
    from prune4rel.training.loop import Training

    options = {**CNN, "epochs": 3, "device": "cuda", "deterministic": True, "save_every": 0.0}
    train(digits(), folder=tmp_path / "whole", **options)
    train(digits(), folder=tmp_path / "again", **options)
    saves, real = 0, Training.is_sound

    def dying(self):
        nonlocal saves
        saves += 1
        if saves == 9:
            raise StopError
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "is_sound", dying)
        with pytest.raises(StopError):
            train(digits(), folder=tmp_path / "torn", **options)
    train(digits(), folder=tmp_path / "torn", **options)
    for name in SAME:
        whole = (tmp_path / "whole" / name).read_bytes()
        assert (tmp_path / "again" / name).read_bytes() == whole
        assert (tmp_path / "torn" / name).read_bytes() == whole


def test_what_the_paper_trains_is_recorded_and_runs():
    """PreAct-ResNet-18 on images of 32 by 32, in mixed precision, by SOP+ and DivideMix."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 640)
    images = rng.integers(0, 256, (640, 32, 32, 3), dtype=np.uint8)
    data = Dataset(
        name="noise",
        train=Split(labels=labels, images=images),
        class_names=tuple("abcdefghij"),
        mean=(0.5,) * 3,
        std=(0.25,) * 3,
        image_size=32,
    )
    for learner in ("sop+", "dividemix"):
        trainer = trainer_of(
            data,
            learner,
            device="cuda",
            network="preact-resnet18",
            network_options={},
            batch=64,
            epochs=4,
            **({"learner_options": {"warmup_epochs": 1}} if learner == "dividemix" else {}),
        )
        numbers, _ = run(trainer, 2)
        assert all(np.isfinite(each["loss"]) for each in numbers)
        assert trainer.training.stepper.recorder.recorded


def test_a_batch_that_does_not_fit_is_answered_with_one_that_does(monkeypatch):
    from prune4rel import InputError
    from prune4rel.training.step import Stepper
    from prune4rel.training.trainer import train_briefly

    real = Stepper._run

    def hungry(self, one, streams, drawn):
        held = torch.empty(len(streams[0].rows), 2**30, dtype=torch.uint8, device="cuda")  # a GiB an example
        real(self, one, streams, drawn)
        del held

    monkeypatch.setattr(Stepper, "_run", hungry)
    torch.cuda.empty_cache()
    room = torch.cuda.mem_get_info()[0] // 2**30
    data = digits(800, 200)
    if room >= 790:
        pytest.skip("the GPU is too large for this")
    trainer = trainer_on_gpu("cross-entropy", data, batch=790)
    with pytest.raises(InputError, match="a batch of 790 does not fit into the memory of cuda") as error:
        train_briefly(trainer, 1, title="trial", folder=None, save_every=60.0)
    fits = int(str(error.value).rpartition("batch=")[2].rstrip(")"))
    assert room / 2 < fits <= room


def test_a_warm_up_on_the_gpu(tmp_path):
    signals = warm_up(
        digits(), warmup_epochs=2, device="cuda", extras=["aum", "el2n", "ssl_embeddings"], folder=tmp_path / "w", **CNN
    )
    assert np.isfinite(signals.embeddings).all()
    assert np.isfinite(signals.ssl_embeddings).all()
