"""The callbacks, in trainings by the real frameworks; those are no part of `make test`: `make test-bridges`."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import prune4rel as p4r
from prune4rel.lightning import LabelsCallback
from prune4rel.torch.watcher import Watcher
from prune4rel.transformers import LabelsTrainerCallback


def some_data(n=240, wrong=30, seed=0):
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randint(0, 3, (n,), generator=generator)
    x = 2 * torch.eye(3, 8)[truth] + 0.5 * torch.randn(n, 8, generator=generator)
    given = truth.clone()
    given[:wrong] = (truth[:wrong] + 1) % 3
    return x, given, truth.numpy()


def check(labels, wrong=30):
    """Wrong labels are told from right ones, and some are called so."""
    is_wrong = np.arange(len(labels)) < wrong
    assert roc_auc_score(is_wrong, -labels.label_score) > 0.95
    assert labels.is_label_issue[is_wrong].mean() > labels.is_label_issue[~is_wrong].mean() + 0.5
    assert set(labels.source) == {"training"}


def test_a_watcher_needs_no_framework(tmp_path):
    x, given, _ = some_data()
    loader = DataLoader(TensorDataset(x, given), batch_size=32, shuffle=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    watcher = Watcher(tmp_path / "labels.csv", labels=None, class_names="abc", logits=None, newest=0.0, force=False)
    assert watcher.begin(model, loader)
    train(model, loader, watcher.note)
    labels = watcher.finish()
    check(labels)
    assert labels.class_names == ("a", "b", "c")
    assert p4r.Labels.load(tmp_path / "labels.csv").label_score.tolist() == labels.label_score.tolist()
    assert not any(module._forward_hooks for module in model.modules())


def train(model, loader, note, epochs=5):
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            note()


def test_a_watcher_says_what_it_cannot_see():
    x, given, _ = some_data()
    loader = DataLoader(TensorDataset(x, given), batch_size=32)
    model = nn.Linear(8, 5)
    watcher = Watcher(None, labels=None, class_names=None, logits=None, newest=0.0, force=False)
    watcher.begin(model, loader)
    with pytest.raises(p4r.InputError, match="no module of the model returned logits of shape"):
        train(model, loader, watcher.note)
    absent = Watcher(None, labels=None, class_names=None, logits="hed", newest=0.0, force=False)
    with pytest.raises(p4r.InputError, match="no module 'hed'"):
        absent.begin(model, loader)
    with pytest.warns(UserWarning, match="nothing was trained on"):
        assert absent.finish() is None


def test_without_the_framework_the_callback_says_what_to_install(monkeypatch):
    monkeypatch.setattr("prune4rel.lightning.Callback", object)
    monkeypatch.setattr("prune4rel.transformers._HERE", False)
    with pytest.raises(p4r.InputError, match="pip install lightning"):
        LabelsCallback()
    with pytest.raises(p4r.InputError, match=r"pip install 'transformers\[torch\]'"):
        LabelsTrainerCallback()


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [0, 2])
def test_lightning_writes_labels(tmp_path, workers):
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
    x, given, _ = some_data()

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, _):
            self.net(batch[0])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 0.01)

    callback = LabelsCallback(tmp_path / "labels.parquet")
    data = TensorDataset(x, given)
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    trainer = lightning.Trainer(
        max_epochs=5,
        callbacks=[callback],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), loader, DataLoader(data, batch_size=100))
    check(callback.labels)
    assert callback.watcher.memory.memory.seen.tolist() == [5] * 240
    assert (
        p4r.Labels.load(tmp_path / "labels.parquet").is_label_issue.tolist() == callback.labels.is_label_issue.tolist()
    )


def small_model(transformers):
    class Model(transformers.PreTrainedModel):
        config_class = transformers.PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
            self.post_init()

        def forward(self, x, labels=None):
            logits = self.net(x)
            loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
            return transformers.modeling_outputs.SequenceClassifierOutput(loss=loss, logits=logits)

    return Model(transformers.PretrainedConfig(num_labels=3))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_trainer_of_hugging_face_writes_labels(tmp_path, accumulate):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    x, given, _ = some_data()
    features = datasets.Features(
        {"x": datasets.Sequence(datasets.Value("float32")), "label": datasets.ClassLabel(names=["a", "b", "c"])}
    )
    data = datasets.Dataset.from_dict({"x": x.tolist(), "label": given.tolist()}, features=features)
    callback = LabelsTrainerCallback(tmp_path / "labels.parquet")
    arguments = transformers.TrainingArguments(
        str(tmp_path / "out"),
        num_train_epochs=5,
        per_device_train_batch_size=16,
        gradient_accumulation_steps=accumulate,
        learning_rate=0.02,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        eval_strategy="epoch",
    )
    trainer = transformers.Trainer(
        small_model(transformers), arguments, train_dataset=data, eval_dataset=data, callbacks=[callback]
    )
    trainer.train()
    check(callback.labels)
    assert callback.labels.class_names == ("a", "b", "c")
    assert callback.watcher.memory.memory.seen.tolist() == [5] * 240
    assert np.array_equal(p4r.Labels.load(tmp_path / "labels.parquet").given_label, given.numpy())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accumulate", [1, 2])  # 15 batches an epoch, which is 15 steps, or 8
def test_the_trainer_goes_on_in_the_middle_of_an_epoch(tmp_path, accumulate):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    x, given, _ = some_data()
    data = datasets.Dataset.from_dict({"x": x.tolist(), "label": given.tolist()})

    def trainer(callback, **more):
        arguments = transformers.TrainingArguments(
            str(tmp_path / "out"),
            per_device_train_batch_size=16,
            gradient_accumulation_steps=accumulate,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            save_steps=10,
            learning_rate=0.02,
            num_train_epochs=3,
            **more,
        )
        return transformers.Trainer(small_model(transformers), arguments, train_dataset=data, callbacks=[callback])

    def go_on():
        callback = LabelsTrainerCallback(None)
        trainer(callback).train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-10"))
        return callback

    trainer(LabelsTrainerCallback(None), max_steps=10).train()
    (tmp_path / "out" / "checkpoint-10" / "label_memory.safetensors").rename(tmp_path / "aside")
    with pytest.warns(UserWarning, match="before this checkpoint do not count"):
        seen = go_on().watcher.memory.memory.seen
    assert int(seen.sum()) == 3 * 240 - {1: 10 * 16, 2: 240 + 2 * 2 * 16}[accumulate]
    (tmp_path / "aside").rename(tmp_path / "out" / "checkpoint-10" / "label_memory.safetensors")
    whole = go_on()
    assert whole.watcher.memory.memory.seen.tolist() == [3] * 240
    check(whole.labels)


@pytest.mark.filterwarnings("ignore")
def test_a_loss_of_ones_own_may_ask_the_model_twice(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    x, given, _ = some_data()

    class Twice(transformers.Trainer):
        def compute_loss(self, model, inputs, *_, **__):
            return model(**inputs).loss + model(**inputs).loss

    data = [{"x": row, "labels": label} for row, label in zip(x, given, strict=True)]
    callback = LabelsTrainerCallback(None, labels=given)
    arguments = transformers.TrainingArguments(
        str(tmp_path), num_train_epochs=4, report_to=[], use_cpu=True, disable_tqdm=True, learning_rate=0.02
    )
    Twice(small_model(transformers), arguments, train_dataset=data, callbacks=[callback]).train()
    assert callback.watcher.memory.memory.seen.tolist() == [4] * 240
    check(callback.labels)


def lightning_parts(lightning):
    """A module and a function that makes a quiet trainer."""

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 0.01)

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    return Module(), lambda **more: lightning.Trainer(**quiet | more)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("steps", [16, 20])  # eight an epoch: at its end, and in the middle
def test_lightning_goes_on_with_what_it_remembered(tmp_path, steps):
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
    x, given, _ = some_data()
    loader = DataLoader(TensorDataset(x, given), batch_size=30, shuffle=True)
    module, trainer = lightning_parts(lightning)
    first = trainer(max_steps=steps, enable_checkpointing=False, callbacks=[LabelsCallback(None)])
    first.fit(module, loader)
    first.save_checkpoint(tmp_path / "half.ckpt")
    callback = LabelsCallback(None)
    second = trainer(max_epochs=5, enable_checkpointing=False, callbacks=[callback])
    second.fit(module, loader, ckpt_path=tmp_path / "half.ckpt")
    assert second.global_step > 30
    assert int(callback.watcher.memory.memory.seen.sum()) == 30 * second.global_step
    check(callback.labels)


@pytest.mark.filterwarnings("ignore")
def test_lightning_may_make_another_loader_every_epoch_and_add_gradients_up():
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
    x, given, _ = some_data()
    module, trainer = lightning_parts(lightning)
    module.train_dataloader = lambda: DataLoader(TensorDataset(x, given), batch_size=32, shuffle=True)
    callback = LabelsCallback(None)
    trainer(
        max_epochs=6,
        reload_dataloaders_every_n_epochs=1,
        accumulate_grad_batches=2,
        enable_checkpointing=False,
        callbacks=[callback],
    ).fit(module)
    assert callback.watcher.memory.memory.seen.tolist() == [6] * 240
    check(callback.labels)


@pytest.mark.parametrize("framework", ["lightning", "transformers"])
def test_several_processes_put_together_what_they_remember(tmp_path, framework):
    pytest.importorskip({"transformers": "accelerate"}.get(framework, framework), reason=f"{framework} is missing")
    script = Path(__file__).parent / "two_processes.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", script]
    own = os.environ | {
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": os.pathsep.join([str(script.parents[2]), *filter(None, sys.path)]),
    }
    done = subprocess.run(
        [*command, framework, tmp_path], env=own, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    labels = p4r.Labels.load(tmp_path / "labels.parquet")
    check(labels)
    assert labels.about["unseen"] == 0
    assert labels.about["visits"] == 5
