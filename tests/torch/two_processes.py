"""A training by two processes, each of which sees half of the examples: python two_processes.py FRAMEWORK FOLDER."""

import sys
from pathlib import Path

import tests.torch.conftest  # noqa: F401 - before anything imports torchvision
import torch
from tests.torch.test_callbacks import lightning_parts, small_model, some_data
from torch.utils.data import DataLoader, TensorDataset

from prune4rel.lightning import LabelsCallback
from prune4rel.transformers import LabelsTrainerCallback


def with_lightning(folder: Path) -> None:
    """Train by Lightning's DDP."""
    import lightning.pytorch as lightning

    x, given, _ = some_data()
    module, trainer = lightning_parts(lightning)
    callback = LabelsCallback(folder / "labels.parquet")
    own = trainer(max_epochs=5, strategy="ddp", devices=2, enable_checkpointing=False, callbacks=[callback])
    own.fit(module, DataLoader(TensorDataset(x, given), batch_size=16, shuffle=True))
    assert int(callback.watcher.memory.memory.seen.sum()) == 5 * 120
    assert int(callback.state_dict()["seen"].sum()) == 5 * 240


def with_transformers(folder: Path) -> None:
    """Train by the Trainer of Hugging Face."""
    import transformers

    x, given, _ = some_data()
    callback = LabelsTrainerCallback(folder / "labels.parquet", labels=given)
    arguments = transformers.TrainingArguments(
        str(folder / "out"),
        num_train_epochs=5,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        learning_rate=0.02,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="epoch",
    )
    data = [{"x": row, "labels": label} for row, label in zip(x, given, strict=True)]
    transformers.Trainer(small_model(transformers), arguments, train_dataset=data, callbacks=[callback]).train()
    assert int(callback.watcher.memory.memory.seen.sum()) == 5 * 120
    assert next((folder / "out").glob("checkpoint-*/label_memory.safetensors")).is_file()


if __name__ == "__main__":
    torch.manual_seed(0)
    {"lightning": with_lightning, "transformers": with_transformers}[sys.argv[1]](Path(sys.argv[2]))
