"""Embeddings that have never seen a label, for methods that want them."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from prune4rel.data import Dataset
from prune4rel.learners.simclr import SimCLR
from prune4rel.loading.ranks import Ranks
from prune4rel.progress import Progress
from prune4rel.training.brief import train_briefly
from prune4rel.training.hyperparameters import TrainingPlan, resolve_subset
from prune4rel.training.trainer import Trainer


def self_supervised_embeddings(
    dataset: Dataset,
    plan: TrainingPlan,
    *,
    device: str = "auto",
    epochs: int | None = None,
    folder: Path | None = None,
    save_every: float = 60.0,
    skip_broken: bool = False,
    progress: Progress | None = None,
    ranks: Ranks | None = None,
) -> NDArray[np.float32]:
    """Train the plan's network by SimCLR on all examples and return its embeddings of them, not augmented.

    Parameters
    ----------
    dataset, plan, device, folder, save_every, skip_broken, progress, ranks
        As for `warm_up`.
    epochs
        How long; a third of the plan's training unless told.

    Returns
    -------
    (n, d) float32; NaN for images that could not be read.
    """
    trainer = Trainer(
        dataset,
        resolve_subset(dataset, None),
        plan,
        device=device,
        ranks=ranks,
        skip_broken=skip_broken,
        progress=progress,
        kind=SimCLR,
    )
    wanted = epochs or max(1, plan.hyperparameters.epochs // 3)
    learner = trainer.training.learner

    def answer(x: Tensor) -> tuple[Tensor, None]:
        return learner.embed(x), None

    with trainer.settings():
        train_briefly(trainer, wanted, title="self-supervised training", folder=folder, save_every=save_every)
        rows: NDArray[np.float32] = trainer.ask_by(answer, dataset.train).logits.numpy()
    return rows
