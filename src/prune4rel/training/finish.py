"""The end of a training: the final model looks at every example, and what it leaves behind is written."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from prune4rel.machine import Clock
from prune4rel.training.evaluate import Labels, accuracy, self_correction
from prune4rel.training.hyperparameters import shape_of
from prune4rel.training.model import save_model
from prune4rel.training.result import CORRECTED, Result, corrected_table, write_corrected
from prune4rel.training.trainer import Trainer


def finish(trainer: Trainer, home: Path, history: list[dict[str, float]], clock: Clock) -> Result:
    """Correct the labels of the whole training split, write model, labels and result, and sum up.

    Parameters
    ----------
    trainer
        Trained.
    home
        The training's folder.
    history
        The numbers of every epoch.
    clock
        Knows what the steps before took.
    """
    train = trainer.dataset.train
    logits = trainer.ask(train, title="correcting labels").logits
    table = corrected_table(torch.softmax(logits, dim=1).numpy(), train.labels, trainer.dataset.class_names, train.ids)
    clock.lap("correcting")
    looks = [numbers["test_accuracy"] for numbers in history if "test_accuracy" in numbers]
    result = Result(
        test_accuracy=looks[-1] if looks else None,
        best_accuracy=max(looks, default=None),
        **_against_truth(logits, train.labels, train.clean_labels, trainer.subset),
        labels_changed=int(np.asarray(table["changed"]).sum()),
        size=len(trainer.subset),
        epochs=trainer.plan.hyperparameters.epochs,
        seconds=clock.laps,
        history=tuple(history),
        notes=(*trainer.notes, *_unread(logits)),
    )
    if trainer.training.learner.ranks.rank == 0:
        _write_model(trainer, home)
        write_corrected(table, home / CORRECTED)
        result.save(home)  # last: where it is, everything is
    return result


def _against_truth(
    logits: torch.Tensor, given: Labels, clean: Labels | None, subset: Labels
) -> dict[str, float | None]:
    if clean is None:
        return dict.fromkeys(("relabel_accuracy", "self_correction", "subset_noise"))
    return {
        "relabel_accuracy": accuracy(logits, clean),
        "self_correction": self_correction(logits[subset], given[subset], clean[subset]),
        "subset_noise": float((given[subset] != clean[subset]).mean()),
    }


def _unread(logits: torch.Tensor) -> list[str]:
    unread = int(torch.isnan(logits).any(1).sum())
    return [f"{unread} of {len(logits)} images could not be read; their labels are as given"] if unread else []


def _write_model(trainer: Trainer, home: Path) -> None:
    plan, plain = trainer.plan, trainer.views["plain"]
    card = {
        "network": plan.network,
        "options": dict(plan.network_options),
        "shape": list(shape_of(trainer.dataset)),
        "class_names": list(trainer.dataset.class_names),
        "mean": np.asarray(plain.mean, dtype=np.float64).tolist(),  # type: ignore[attr-defined]
        "std": np.asarray(plain.std, dtype=np.float64).tolist(),  # type: ignore[attr-defined]
        "learner": plan.learner,
    }
    with trainer.training.averaged():
        save_model(home, nn.ModuleList(trainer.training.learner.model_networks()), card)
