"""Embeddings that have never seen a label, for methods that want them."""

import numpy as np
import torch
from numpy.typing import NDArray

from prune4rel.data import Dataset
from prune4rel.learners.simclr import SimCLR
from prune4rel.progress import Progress
from prune4rel.training.evaluate import ask
from prune4rel.training.plan import Plan, resolve_subset
from prune4rel.training.workshop import Workshop


def self_supervised_embeddings(
    dataset: Dataset, plan: Plan, *, device: str = "auto", epochs: int | None = None, progress: Progress | None = None
) -> NDArray[np.float32]:
    """Train the plan's network by SimCLR on all examples and return its embeddings of them, not augmented.

    Parameters
    ----------
    dataset, plan, device, progress
        As for `warm_up`.
    epochs
        How long; a third of the plan's training unless told.

    Returns
    -------
    (n, d) float32
    """
    listener = progress or Progress()
    shop = Workshop(dataset, resolve_subset(dataset, None), plan, device=device, progress=listener, kind=SimCLR)
    training = shop.training
    wanted = epochs or max(1, plan.recipe.epochs // 3)
    size = len(shop.subset)
    with listener.task("self-supervised training", total=wanted * size) as advance:
        while training.epoch < wanted:
            numbers = training.run_epoch(lambda _: None)
            advance(size)
            listener.status(f"self-supervised, epoch {training.epoch}/{wanted}, loss {numbers['loss']:.3f}")
    learner = training.learner

    def answer(x: torch.Tensor) -> tuple[torch.Tensor, None]:
        return learner.embed(x), None

    found = ask(learner, answer, shop.loader, shop.views["plain"], half=training.stepper.half)
    rows: NDArray[np.float32] = found.logits.numpy()
    return rows
