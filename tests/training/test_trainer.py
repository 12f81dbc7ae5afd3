from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.training.small import TINY, digits, features, look_at_all, nothing, trainer_of, write_images

from prune4rel import InputError, loading
from prune4rel.loading import StreamLoader
from prune4rel.training import make_plan
from prune4rel.training.hyperparameters import resolve_subset
from prune4rel.training.trainer import Trainer

TRAINER = "prune4rel.training.trainer"


def files_trainer(data, subset=None, *, skip_broken=False, **options):
    plan = make_plan(data, "cross-entropy", **{**TINY, "batch": 4, **options})
    return Trainer(replace(data, skip_broken=skip_broken), resolve_subset(data, subset), plan, device="cpu")


def test_a_batch_larger_than_the_subset_becomes_the_subset():
    trainer = trainer_of(features(), subset=np.arange(9), batch=16)
    assert trainer.training.feed.batch == 9
    assert trainer.notes == ["a batch of 16 is more than the 9 examples; all of them are one batch"]


def test_classes_without_an_example_are_named():
    data = features()
    trainer = trainer_of(data, subset=np.flatnonzero(data.train.labels != 1))
    assert trainer.notes == ["no example of class b is trained on; it will hardly be predicted"]
    trainer = trainer_of(digits(), subset=np.flatnonzero(digits().train.labels == 3), batch=1)
    assert "class 0, 1, 2, 4, 5 and 4 more is" in trainer.notes[0]


def test_notes_of_the_learner_are_passed_on():
    trainer = trainer_of(features(), "dividemix", epochs=2)
    assert any("DivideMix warms up for 1 instead of 10" in note for note in trainer.notes)


@pytest.mark.parametrize("streaming", [False, True])
def test_broken_files_are_left_out_before_training(tmp_path, monkeypatch, streaming):
    if streaming:
        monkeypatch.setattr(
            f"{TRAINER}.make_loader", lambda split, device, **o: StreamLoader(split, device=device, **o)
        )
    data = write_images(tmp_path, n=10, broken=[1, 6])
    with pytest.raises(InputError, match="--skip-broken"):
        files_trainer(data).training.run_epoch(nothing)
    trainer = files_trainer(data, [9, 6, 3, 1, 0], skip_broken=True)
    assert trainer.subset.tolist() == [9, 3, 0]
    assert trainer.notes[0] == "2 of 5 images to train on could not be read and were left out"
    assert trainer.training.learner.m == 3
    logits = trainer.predict(data.train)
    assert torch.isnan(logits).any(1).nonzero().flatten().tolist() == [1, 6]


def test_whole_splits_are_read_once(tmp_path, monkeypatch):
    data = write_images(tmp_path, n=6)
    made = []
    real = loading.make_loader
    monkeypatch.setattr(f"{TRAINER}.make_loader", lambda split, *a, **o: made.append(split) or real(split, *a, **o))
    order = np.array([3, 1, 2, 0, 5, 4])
    trainer = files_trainer(data, order)
    first = trainer.predict(data.train)
    assert made == [data.train]
    torch.testing.assert_close(first, files_trainer(data).predict(data.train))
    made.clear()
    trainer = trainer_of(digits())
    trainer.predict(digits().test)
    trainer.predict(digits().test)
    assert made == [digits().train, digits().test]


def test_a_part_of_the_files_is_enough_to_train_on_and_all_are_asked_about(tmp_path):
    data = write_images(tmp_path, n=8)
    trainer = files_trainer(data, [1, 3, 5, 6])
    assert len(trainer.loader.examples) == 4
    assert trainer.predict(data.train).shape == (8, 2)


def test_a_look_gives_logits_and_embeddings_of_one_network_and_view():
    trainer = trainer_of(features(), "elr+")
    trainer.training.run_epoch(nothing)
    logits, embeddings = look_at_all(trainer, "strong", seed=3)
    network = trainer.training.learner.networks[0]
    torch.testing.assert_close(network.head(embeddings), logits)
    (again, _), (other, _) = look_at_all(trainer, "strong", seed=3), look_at_all(trainer, "strong", seed=4)
    assert torch.equal(logits, again)
    assert not torch.equal(logits, other)
    both = torch.stack(
        [
            n(trainer.views["plain"](torch.from_numpy(features().train.features), torch.Generator()))
            for n in trainer.training.learner.networks.eval()
        ]
    ).mean(0)
    torch.testing.assert_close(trainer.predict(features().train), both.detach())


def test_the_averaged_weights_are_asked():
    trainer = trainer_of(features(), ema=0.99)
    trainer.training.run_epoch(nothing)
    averaged = trainer.predict(features().train)
    with trainer.training.averaged():
        trainer.training.stepper.averages.clear()
        torch.testing.assert_close(trainer.predict(features().train), averaged)


def test_several_looks_at_once_all_see_the_averaged_weights():
    trainer = trainer_of(features(), ema=0.9)
    trainer.training.run_epoch(nothing)
    before = [tensor.clone() for tensor in trainer.training.learner.state_dict().values()]
    alone = [look_at_all(trainer, "strong", seed=seed)[0] for seed in (0, 1)]
    both = list(zip(*[trainer.predict_and_embed("strong", seed=seed) for seed in (0, 1)], strict=True))
    for number, logits in enumerate(alone):
        assert torch.equal(torch.cat([said[number].logits for said in both]), logits)
    after = trainer.training.learner.state_dict().values()
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_small_work_runs_in_one_thread_and_threads_come_back():
    torch.set_num_threads(2)
    trainer = trainer_of(features())

    def fail():
        assert torch.get_num_threads() == 1
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), trainer.settings():
        fail()
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(("allowed", "used"), [("1", 1), ("2", 2), ("5", 3)])
def test_large_work_runs_in_as_many_threads_as_there_may_be(monkeypatch, allowed, used):
    monkeypatch.setattr(f"{TRAINER}.WORTH_SHARING", 1)
    monkeypatch.setenv("PRUNE4REL_THREADS", allowed)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with trainer_of(features()).settings():
            assert torch.get_num_threads() == used
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("deterministic", [False, True])
def test_cudnn_is_set_for_a_while_only(deterministic, monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    trainer = trainer_of(features(), deterministic=deterministic)
    assert (cudnn.benchmark, cudnn.deterministic) == before
    with trainer.settings():
        assert (cudnn.benchmark, cudnn.deterministic) == (not deterministic, deterministic)
    assert (cudnn.benchmark, cudnn.deterministic) == before


def test_images_are_half_precision_where_networks_are():
    assert trainer_of(digits(), precision="bfloat16").views["weak"].dtype == torch.bfloat16
    assert trainer_of(digits()).views["weak"].dtype == torch.float32
