"""From images or features that no encoder knows to what `clean` judges by: a training's memory of predictions."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.cleaning.cleaned import Cleaned, clean
from prune4rel.data import Dataset
from prune4rel.decisions import Settled, settle_from
from prune4rel.encoders.cache import Digests
from prune4rel.errors import InputError
from prune4rel.machine import Clock

if TYPE_CHECKING:
    from prune4rel.progress import Progress

LEARNER = "trust"
SAVE_EVERY = 60.0
"""Seconds between checkpoints."""


@dataclass(frozen=True, eq=False)
class Remembered:
    """What a training leaves to judge by: (n, C) what was said of examples before they were learnt, (n, d) embeddings.

    `known` (n,) is False where an example could not be read, or never came along.
    """

    probabilities: NDArray[np.float32]
    embeddings: NDArray[np.float32]
    known: NDArray[np.bool_]


def remember(
    dataset: Dataset,
    *,
    folder: Path | None = None,
    epochs: int | None = None,
    device: str = "auto",
    seed: int = 0,
    skip_broken: bool = False,
    settings: Mapping[str, Any] | None = None,
    progress: "Progress | None" = None,
) -> Remembered:
    """Train `trust` on everything, with the settings that suit the data set, for its memory of predictions.

    Parameters
    ----------
    dataset
        Images or features; its test split is not looked at.
    folder
        Where checkpoints go, for a training that is interrupted and goes on; None for nowhere.
    epochs, device, seed, skip_broken, settings, progress
        As for `training.train`; `settings` are keywords of `make_plan`.
    """
    from prune4rel.training import make_plan  # noqa: PLC0415 - training needs PyTorch
    from prune4rel.training.hyperparameters import resolve_subset  # noqa: PLC0415 - likewise
    from prune4rel.training.trainer import Trainer, train_briefly  # noqa: PLC0415 - likewise

    if dataset.kind == "texts":
        raise InputError("by training: no network here learns from texts; leave --by out, an encoder knows them", "by")
    plan = make_plan(dataset, LEARNER, seed=seed, epochs=epochs, **(settings or {}))
    rows = resolve_subset(dataset, None)
    dataset = replace(dataset, skip_broken=skip_broken or dataset.skip_broken)
    trainer = Trainer(dataset, rows, plan, device=device, progress=progress, remember=True)
    length = plan.hyperparameters.epochs
    with trainer.settings():
        train_briefly(trainer, length, title="training to judge by", folder=folder, save_every=SAVE_EVERY)
        embeddings = trainer.embed().numpy()
    memory = trainer.training.memory
    if memory is None:
        raise AssertionError("a memory was asked for")
    n = len(dataset.train)
    probabilities = np.full((n, dataset.n_classes), 1 / dataset.n_classes, dtype=np.float32)
    probabilities[trainer.subset] = memory.all()
    known = np.zeros(n, dtype=np.bool_)
    known[trainer.subset] = memory.seen.cpu().numpy() > 0
    return Remembered(probabilities, np.nan_to_num(embeddings), known)


def clean_by_training(
    dataset: Dataset, *, decisions: str | Path | None = None, progress: "Progress | None" = None, **how: Any
) -> Cleaned:
    """Judge labels by a training on them: by what its network said of every example before it learnt from it.

    For examples that no encoder knows: medical images, spectrograms, measurements. It takes as long as a training.

    Parameters
    ----------
    dataset
        Images or features.
    decisions, progress
        As for `clean`; what people decided is learnt as they decided it.
    **how
        See `remember`.

    Examples
    --------
    >>> from prune4rel.data import load_dataset
    >>> data = load_dataset("digits", noise=0.2, noise_kind="symmetric")
    >>> found = clean_by_training(data, epochs=5, device="cpu")
    >>> wrong = data.train.labels != data.train.clean_labels
    >>> bool((found.is_label_issue == wrong).mean() > 0.9)
    True
    """
    train = dataset.train
    clock = Clock()
    heard = remember(_decided(dataset, decisions), progress=progress, **how)
    clock.lap("training")
    unheard = ~heard.known
    heard.probabilities[unheard] = np.eye(dataset.n_classes, dtype=np.float32)[train.labels[unheard]]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The probabilities agree", category=UserWarning)
        found = clean(
            probabilities=heard.probabilities,
            labels=train.labels,
            ids=train.ids,
            class_names=dataset.class_names,
            decisions=decisions,
            progress=progress,
        )
    labels, signals = found.labels, found.signals
    nobody = unheard & (labels.source != "person")
    known = heard.known if signals.known is None else heard.known & signals.known
    return replace(
        found,
        labels=replace(
            labels,
            is_label_issue=labels.is_label_issue & ~nobody,
            confidence=np.where(nobody, 0.0, labels.confidence),
            source=np.where(nobody, "nobody", np.where(labels.source == "judging", "training", labels.source)),
            about={**labels.about, "made_by": "clean, by training"},
        ),
        signals=replace(signals, embeddings=heard.embeddings, known=None if known.all() else known),
        seconds=clock.laps | found.seconds,
        notes=tuple(note for note in found.notes if "fitted" not in note),  # not these: they were said before learning
    )


def settled_of(dataset: Dataset, decisions: str | Path) -> Settled:
    """Return what people decided of a data set's training examples; files and texts are known by their contents."""
    train = dataset.train
    return settle_from(
        decisions,
        len(train),
        dataset.class_names,
        given_label=train.labels,
        ids=train.ids,
        content=Digests.of_originals(train),
    )


def _decided(dataset: Dataset, decisions: str | Path | None) -> Dataset:
    """Return a data set with what people decided put in."""
    if decisions is None:
        return dataset
    train, settled = dataset.train, settled_of(dataset, decisions)
    labels = np.where(settled.verified, settled.decided_label, train.labels)
    return replace(dataset, train=replace(train, labels=labels, verified=settled.verified, removed=settled.removed))
