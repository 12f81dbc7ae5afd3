"""`warm_up`: train briefly on everything, then write down what the model makes of every example."""

import shutil
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prune4rel.augment.draws import ViewName
from prune4rel.data import Dataset
from prune4rel.decisions import Settled, settle_signals
from prune4rel.errors import InputError, nearest
from prune4rel.inference import MeanAnswers, batch_of, load_model, mean_over_views
from prune4rel.labels import UNDECIDED
from prune4rel.learners.simclr import SimCLR
from prune4rel.loading.schedule import Ranks
from prune4rel.progress import Progress
from prune4rel.signals import Signals
from prune4rel.training.hyperparameters import TrainingPlan, make_plan, resolve_subset
from prune4rel.training.step import HISTORIES
from prune4rel.training.trainer import Trainer, listener_of, train_briefly

EXTRAS = (*HISTORIES, "el2n", "grad_norms", "ssl_embeddings")
"""What a warm-up can provide besides probabilities, embeddings and losses."""

PART_ROWS = 100_000
"""Examples a part, unless told."""

LEAST = 1e-12
"""A probability below this counts as this in a loss."""

MOST_LOOKS = 1_000
"""Views, and repeats: they are looked at side by side."""

LOOKING = "looking at every example"
Arrays = dict[str, NDArray[Any]]
Shown = Literal["strong", "weak", "none"]
SHOWN: dict[str, ViewName] = {"strong": "strong", "weak": "weak", "none": "plain"}


def warm_up(
    dataset: Dataset,
    *,
    learner: str = "sop+",
    plan: TrainingPlan | None = None,
    extras: Collection[str] = (),
    view: Shown = "strong",
    views: int = 1,
    repeats: int = 1,
    device: str = "auto",
    folder: str | Path | None = None,
    save_every: float = 60.0,
    restart: bool = False,
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
    restart
        Begin anew, whatever the folder holds.

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
    (whole,) = warm_up_in_parts(
        replace(dataset, skip_broken=skip_broken or dataset.skip_broken),
        rows=len(dataset.train),
        learner=learner,
        plan=plan,
        extras=extras,
        view=view,
        views=views,
        repeats=repeats,
        device=device,
        folder=folder,
        save_every=save_every,
        restart=restart,
        progress=progress,
        ranks=ranks,
        **options,
    )
    return whole


def warm_up_in_parts(
    dataset: Dataset,
    *,
    rows: int = PART_ROWS,
    learner: str = "sop+",
    plan: TrainingPlan | None = None,
    extras: Collection[str] = (),
    view: Shown = "strong",
    views: int = 1,
    repeats: int = 1,
    device: str = "auto",
    folder: str | Path | None = None,
    save_every: float = 60.0,
    restart: bool = False,
    progress: bool | Progress = False,
    ranks: Ranks | None = None,
    **options: Any,
) -> Iterator[Signals]:
    """Do as `warm_up`, but give the signals of `rows` examples at a time, in order, and never hold more of them.

    The parts are those of the whole, number for number: `rows` is rounded up to whole batches. Only embeddings without
    labels (``"ssl_embeddings"``) are held whole.
    """
    plan = plan or make_plan(dataset, learner, **options)  # however many steps the training may have that is to follow
    plan = replace(plan, hyperparameters=replace(plan.hyperparameters, steps=None))
    _check(extras, view, views, repeats)
    home = None if folder is None else Path(folder)
    ranks = ranks or Ranks()
    listener = listener_of(progress, ranks)
    if home is not None and restart and ranks.rank == 0:
        shutil.rmtree(home, ignore_errors=True)
    ranks.barrier()
    keep = tuple(name for name in HISTORIES if name in extras)
    common: dict[str, Any] = {"device": device, "progress": listener, "ranks": ranks}
    norms = [name for name in ("el2n", "grad_norms") if name in extras]
    long: Arrays = {name: np.zeros(len(dataset.train)) for name in norms}
    if "ssl_embeddings" in extras:
        place = None if home is None else home / "ssl"
        long["ssl_embeddings"] = self_supervised_embeddings(
            dataset, plan, folder=place, save_every=save_every, **common
        )
    times = repeats if norms else 1
    for repeat in reversed(range(times)):  # the first one last: all but norms comes from it
        kept = keep if repeat == 0 else ()
        trainer = Trainer(dataset, resolve_subset(dataset, None), _for_warm_up(plan, repeat), keep=kept, **common)
        place = None if home is None else home / f"warmup{repeat}"
        with trainer.settings():
            train_briefly(
                trainer, plan.warmup_epochs, title="warm-up", folder=place, save_every=save_every, histories=list(kept)
            )
            if repeat == 0:
                long |= _histories(trainer)
            for where, said in _answers(trainer, SHOWN[view], views, rows):
                found = _norms(said, dataset.train.labels[where]) if norms else {}
                for name in norms:
                    long[name][where] += found[name] / times
                if repeat == 0:
                    found = {**said, **{name: array[where] for name, array in long.items()}}
                    yield _without_nan(found, dataset, where, some_unread=len(trainer.subset) < len(dataset.train))


def look_at(
    dataset: Dataset,
    folder: str | Path,
    *,
    plan: TrainingPlan,
    view: Shown = "strong",
    views: int = 4,
    device: str = "auto",
    progress: bool | Progress = False,
) -> Signals:
    """Return what a trained model says of every example: signals to select by again.

    Parameters
    ----------
    dataset
        What it was trained on a part of.
    folder
        The training's.
    plan
        How it was trained.
    view, views
        What it is shown of each example; means over several views say less surely what it has memorised.
    device, progress
        As for `train`.

    Returns
    -------
    Signals
        `labels`, `probabilities` (n, C), `embeddings` (n, d), `losses` (n,).
    """
    _check((), view, views, 1)
    live = replace(plan, hyperparameters=replace(plan.hyperparameters, ema=None))  # the weights are the averaged ones
    ranks = Ranks()
    trainer = Trainer(
        dataset,
        resolve_subset(dataset, None),
        live,
        device=device,
        progress=listener_of(progress, ranks),
        ranks=ranks,
    )
    trained = load_model(folder).networks
    for network, weights in zip(trainer.training.learner.model_networks(), trained, strict=True):
        network.load_state_dict(weights.state_dict())
    with trainer.settings():
        ((where, said),) = _answers(trainer, SHOWN[view], views, len(dataset.train))
    return _without_nan(said, dataset, where, some_unread=len(trainer.subset) < len(dataset.train))


def _check(extras: Collection[str], view: str, views: int, repeats: int) -> None:
    for name in extras:
        if name not in EXTRAS:
            raise InputError(f"a warm-up cannot provide {name!r}; {nearest(name, EXTRAS)}", "extras")
    if view not in SHOWN:
        raise InputError(f"unknown view {view!r}; {nearest(view, SHOWN)}", "view")
    if not (1 <= views <= MOST_LOOKS and 1 <= repeats <= MOST_LOOKS):
        raise InputError(f"views and repeats must be from 1 to {MOST_LOOKS:,}, not {views} and {repeats}")


def _for_warm_up(plan: TrainingPlan, repeat: int) -> TrainingPlan:
    """Take another seed, let the rate fall as in the whole training, and a learner's own warm-up last all along."""
    hyperparameters, own = plan.hyperparameters, dict(plan.learner_options)
    if "warmup_epochs" in own:
        own["warmup_epochs"] = max(own["warmup_epochs"], plan.warmup_epochs)
    # a learner's own warm-up is at most half of its training, however short that one is
    epochs = max(hyperparameters.epochs, 2 * plan.warmup_epochs)
    hyperparameters = hyperparameters.changed(horizon=hyperparameters.horizon or hyperparameters.epochs, epochs=epochs)
    return replace(plan, seed=plan.seed + repeat, hyperparameters=hyperparameters, learner_options=own)


def _answers(trainer: Trainer, view: ViewName, views: int, rows: int) -> Iterator[tuple[slice, Arrays]]:
    """Probabilities, embeddings and losses of `rows` examples at a time, as means over some views of each.

    Batches never straddle two blocks, so `rows` is rounded up to whole batches.
    """
    n, at_once = len(trainer.dataset.train), batch_of(trainer.loader)
    rows = -(-rows // at_once) * at_once
    several = [
        trainer.predict_and_embed(view, seed=trainer.plan.seed + k, title="" if k else LOOKING) for k in range(views)
    ]
    start = 0
    block: list[MeanAnswers] = []
    for mean in mean_over_views(several):
        while mean.places[0] >= start + rows:
            yield _block(trainer, block, start, min(n, start + rows))
            block, start = [], start + rows
        block.append(mean)
    while start < n:
        yield _block(trainer, block, start, min(n, start + rows))
        block, start = [], start + rows


def _block(trainer: Trainer, means: list[MeanAnswers], start: int, stop: int) -> tuple[slice, Arrays]:
    """Put the batches of one block together; NaN where nothing could be read."""
    network = trainer.training.learner.model_networks()[0]
    probabilities = np.full((stop - start, trainer.dataset.n_classes), np.nan)
    embeddings = np.full((stop - start, network.dim), np.nan, dtype=np.float32)
    for mean in means:
        probabilities[mean.places - start] = mean.probabilities.numpy()
        embeddings[mean.places - start] = mean.embeddings.numpy()
    given = trainer.dataset.train.labels[start:stop]
    losses = -np.log(np.maximum(probabilities[np.arange(stop - start), given], LEAST))
    found: Arrays = {"probabilities": probabilities.astype(np.float32), "embeddings": embeddings, "losses": losses}
    return slice(start, stop), found


def _histories(trainer: Trainer) -> dict[str, NDArray[np.float64]]:
    """Histories of all training examples; NaN for those that could not be read."""
    found = {}
    for name, values in trainer.training.record.histories().items():
        found[name] = np.full(len(trainer.dataset.train), np.nan)
        found[name][trainer.subset] = values.numpy()
    return found


def _norms(said: dict[str, NDArray[Any]], labels: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Norm of p - y, and of the last layer's gradient of the cross-entropy, which is an outer product with (z, 1)."""
    error = said["probabilities"].astype(np.float64)
    error[np.arange(len(labels)), labels] -= 1
    el2n = np.linalg.norm(error, axis=1)
    z = said["embeddings"].astype(np.float64)
    return {"el2n": el2n, "grad_norms": el2n * np.sqrt(1 + (z**2).sum(axis=1))}


def _without_nan(found: Arrays, dataset: Dataset, where: slice, *, some_unread: bool) -> Signals:
    """Say which images could not be read, and give them harmless numbers."""
    dull = {"probabilities": 1 / dataset.n_classes, "losses": np.inf, "aum": -1.0}
    known: NDArray[np.bool_] | None = None
    if some_unread:
        known = ~np.isnan(found["probabilities"]).any(axis=1)  # type: ignore[assignment]
    for name, array in found.items():
        array[np.isnan(array)] = dull.get(name, 0.0)
    ids = None if dataset.train.ids is None else dataset.train.ids[where]
    given = dataset.train.labels[where]
    verified, removed = dataset.train.verified, dataset.train.removed
    if known is None and removed is not None and removed.any():
        known = np.ones(len(given), dtype=np.bool_)  # all parts of it have the same arrays
    signals = Signals(labels=given, known=known, ids=ids, class_names=dataset.class_names, **found)
    if verified is None and removed is None:
        return signals
    nobody = np.zeros(len(given), dtype=np.bool_)
    sure = nobody if verified is None else verified[where]
    decided = np.where(sure, given, UNDECIDED)
    return settle_signals(signals, Settled(sure, nobody if removed is None else removed[where], decided, nobody))


def self_supervised_embeddings(
    dataset: Dataset,
    plan: TrainingPlan,
    *,
    device: str = "auto",
    epochs: int | None = None,
    folder: Path | None = None,
    save_every: float = 60.0,
    progress: Progress | None = None,
    ranks: Ranks | None = None,
) -> NDArray[np.float32]:
    """Train the plan's network by SimCLR on all examples and return its embeddings of them, not augmented.

    Parameters
    ----------
    dataset, plan, device, folder, save_every, progress, ranks
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
        progress=progress,
        kind=SimCLR,
    )
    wanted = epochs or max(1, plan.hyperparameters.epochs // 3)
    with trainer.settings():
        train_briefly(trainer, wanted, title="self-supervised training", folder=folder, save_every=save_every)
        rows: NDArray[np.float32] = trainer.embed().numpy()
    return rows
