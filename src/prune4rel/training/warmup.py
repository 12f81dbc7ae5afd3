"""`warm_up`: train briefly on everything, then write down what the model makes of every example."""

import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prune4rel.data import Dataset
from prune4rel.errors import InputError, nearest
from prune4rel.learners.learner import ViewName
from prune4rel.learners.ranks import Ranks
from prune4rel.progress import PlainProgress, Progress
from prune4rel.signals import Signals
from prune4rel.training.checkpoint import Checkpoints
from prune4rel.training.plan import Plan, identity_of, make_plan, resolve_subset
from prune4rel.training.record import HISTORIES
from prune4rel.training.self_supervised import self_supervised_embeddings
from prune4rel.training.workshop import Workshop, explain_out_of_memory, is_out_of_memory

EXTRAS = (*HISTORIES, "el2n", "grad_norms", "ssl_embeddings")
"""What a warm-up can provide besides probabilities, embeddings and losses."""

Shown = Literal["strong", "weak", "none"]
SHOWN: dict[str, ViewName] = {"strong": "strong", "weak": "weak", "none": "plain"}


def warm_up(
    dataset: Dataset,
    *,
    learner: str = "sop+",
    plan: Plan | None = None,
    extras: Collection[str] = (),
    view: Shown = "strong",
    views: int = 1,
    repeats: int = 1,
    device: str = "auto",
    folder: str | Path | None = None,
    save_every: float = 60.0,
    skip_broken: bool = False,
    progress: bool | Progress = False,
    ranks: Ranks | None = None,
    **options: Any,
) -> Signals:
    """Train a learner for a few epochs on all examples, and return what it then says of each.

    Parameters
    ----------
    dataset
        Labels may be wrong.
    learner, plan, **options
        A plan, or what `make_plan` takes. The learning rate falls as it would in the whole training.
    extras
        Which of `EXTRAS` to provide, too: how often each example was forgotten, its area under the margin, its
        error norm and gradient norm (means over `repeats` warm-ups), self-supervised embeddings.
    view, views
        What the model is shown of each example: one strong view, as in the paper, or ``"weak"`` or ``"none"``; the
        mean over `views` of them.
    repeats
        Warm-ups for the norms, with different seeds. All else comes from the first.
    device, skip_broken, progress, ranks
        As for `train`.
    folder
        Where to keep checkpoints, so that a killed warm-up goes on; none unless told.
    save_every
        Seconds between them.

    Returns
    -------
    Signals
        `labels`, `probabilities` (n, C), `embeddings` (n, d), `losses` (n,), and the extras.

    Examples
    --------
    >>> from prune4rel.data import load_dataset
    >>> signals = warm_up(load_dataset("digits"), warmup_epochs=1, device="cpu")
    >>> signals.probabilities.shape, signals.embeddings.shape
    ((1348, 10), (1348, 64))
    """
    plan = plan or make_plan(dataset, learner, **options)
    for name in extras:
        if name not in EXTRAS:
            raise InputError(f"a warm-up cannot provide {name!r}; {nearest(name, EXTRAS)}")
    if view not in SHOWN:
        raise InputError(f"view must be one of {', '.join(SHOWN)}, not {view!r}", "view")
    if views < 1 or repeats < 1:
        raise InputError(f"views and repeats must be 1 or more, not {views} and {repeats}")
    listener = PlainProgress() if progress is True else progress or Progress()
    keep = tuple(name for name in HISTORIES if name in extras)
    norms = [name for name in ("el2n", "grad_norms") if name in extras]
    home = None if folder is None else Path(folder)
    found: dict[str, Any] = {}
    for repeat in range(repeats if norms else 1):
        again = _reseeded(plan, repeat)
        shop = Workshop(
            dataset,
            resolve_subset(dataset, None),
            again,
            device=device,
            keep=keep if repeat == 0 else (),
            ranks=ranks,
            skip_broken=skip_broken,
            progress=listener,
        )
        place = None if home is None else home / f"warmup{repeat}"
        with shop.threads():
            _train(shop, plan.warmup_epochs, place, save_every, listener)
            said = _look(shop, SHOWN[view], views)
        if repeat == 0:
            found = {**said, **{name: tensor.numpy() for name, tensor in shop.training.record.histories().items()}}
        for name, values in _norms(said, dataset.train.labels).items():
            if name in norms:
                found[name] = found.get(name, 0.0) + values / repeats
    if "ssl_embeddings" in extras:
        found["ssl_embeddings"] = self_supervised_embeddings(dataset, plan, device=device, progress=listener)
    return _drop_broken(found, dataset)


def _reseeded(plan: Plan, repeat: int) -> Plan:
    recipe = plan.recipe
    return replace(plan, seed=plan.seed + repeat, recipe=recipe.changed(horizon=recipe.horizon or recipe.epochs))


def _train(shop: Workshop, epochs: int, folder: Path | None, save_every: float, listener: Progress) -> None:
    training = shop.training
    states = None
    if folder is not None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        states = Checkpoints(folder, identity_of(shop.plan, shop.dataset, shop.subset) | {"warmup": epochs})
        if (saved := states.newest(listener, shop.device)) is not None:
            training.restore(*saved)
    last = time.monotonic()

    def save(*, now: bool = False) -> None:
        nonlocal last
        if states is not None and training.learner.ranks.rank == 0 and (now or time.monotonic() - last >= save_every):
            training.check_finite()
            tensors, facts = training.state()
            states.save(training.steps * 2 + (training.step == 0), tensors, facts)
            last = time.monotonic()

    size = len(shop.subset)
    try:
        with listener.task("warm-up", total=max(1, epochs - training.epoch) * size) as advance:
            while training.epoch < epochs:
                numbers = training.run_epoch(lambda _: save())
                advance(size)
                listener.status(f"warm-up, epoch {training.epoch}/{epochs}, loss {numbers['loss']:.3f}")
                save(now=training.epoch == epochs)
    except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise explain_out_of_memory(shop) from None


def _look(shop: Workshop, view: ViewName, views: int) -> dict[str, NDArray[Any]]:
    """Probabilities, embeddings and losses, as means over some views of each example."""
    probabilities: Tensor | None = None
    embeddings: Tensor | None = None
    for number in range(views):
        seen = shop.ask(
            shop.dataset.train, view, seed=shop.plan.seed + number, embeddings=True, title="looking at every example"
        )
        if seen.embeddings is None:
            raise AssertionError("embeddings were asked for")
        p = torch.softmax(seen.logits.double(), dim=1) / views
        probabilities = p if probabilities is None else probabilities + p
        z = seen.embeddings / views
        embeddings = z if embeddings is None else embeddings + z
    if probabilities is None or embeddings is None:
        raise AssertionError("there is at least one view")
    given = torch.from_numpy(shop.dataset.train.labels)[:, None]
    losses = -probabilities.gather(1, given)[:, 0].clamp(min=1e-12).log()
    return {
        "probabilities": probabilities.float().numpy(),
        "embeddings": embeddings.numpy(),
        "losses": losses.numpy(),
    }


def _norms(said: dict[str, NDArray[Any]], labels: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Norm of p - y, and of the last layer's gradient of the cross-entropy, which is an outer product with (z, 1)."""
    error = said["probabilities"].astype(np.float64)
    error[np.arange(len(labels)), labels] -= 1
    el2n = np.linalg.norm(error, axis=1)
    z = said["embeddings"].astype(np.float64)
    return {"el2n": el2n, "grad_norms": el2n * np.sqrt(1 + (z**2).sum(axis=1))}


def _drop_broken(found: dict[str, NDArray[Any]], dataset: Dataset) -> Signals:
    """Give an image that could not be read nothing that would have it picked."""
    broken = np.flatnonzero(np.isnan(found["probabilities"]).any(axis=1))
    if broken.size:
        n_classes = found["probabilities"].shape[1]
        found["probabilities"][broken] = 1 / n_classes
        found["embeddings"][broken] = 0
        found["losses"][broken] = np.inf
    return Signals(labels=dataset.train.labels, ids=dataset.train.ids, class_names=dataset.class_names, **found)
