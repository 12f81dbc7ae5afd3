"""What each step does: plain functions of a configuration and a folder, so that any process can do them."""

import json
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.data import Dataset, Split, read_dataset
from prune4rel.methods import select
from prune4rel.pipeline.config import Config
from prune4rel.pipeline.specs import MethodSpec
from prune4rel.progress import Progress
from prune4rel.provenance import fingerprint
from prune4rel.selection import Selection
from prune4rel.signals import Signals
from prune4rel.storage import to_json
from prune4rel.training import Result, TrainingPlan, make_plan, train, warm_up

SIGNALS, SELECTION, CHECKPOINTS = "signals", "selection.parquet", "work"


def open_dataset(config: Config) -> Dataset:
    """Read the data set of a run; once a process."""
    return _open(config.dataset, config.data, config.labels, to_json(config.options))


@lru_cache(maxsize=1)
def _open(name: str, data: str | None, labels: str | None, options: str) -> Dataset:
    return read_dataset(name, data, labels, json.loads(options))


def identify(dataset: Dataset) -> dict[str, str]:
    """Return fingerprints of the training examples and their labels; of files, of their names."""
    return {"name": dataset.name, "labels": fingerprint(dataset.train.labels), **_contents(dataset.train)}


def identify_truth(dataset: Dataset) -> dict[str, str]:
    """Return fingerprints of what results are measured by: true labels, and the test split."""
    found = {}
    if dataset.train.clean_labels is not None:
        found["clean_labels"] = fingerprint(dataset.train.clean_labels)
    if (test := dataset.test) is not None:
        truth = test.labels if test.clean_labels is None else test.clean_labels
        found["test_labels"] = fingerprint(truth)
        found |= {f"test_{name}": print_of_it for name, print_of_it in _contents(test).items()}
    return found


def _contents(split: Split) -> dict[str, str]:
    arrays = {"images": split.images, "features": split.features}
    found = {name: fingerprint(array) for name, array in arrays.items() if array is not None}
    if split.files is not None:
        found["files"] = fingerprint(np.array([str(path) for path in split.files]))
    return found


def plan_for(config: Config, dataset: Dataset, learner: str, seed: int, *, warm: bool = True) -> TrainingPlan:
    """Return how one learner of a run is warmed up, or trained: trainings do not depend on how long warm-ups are."""
    training = dict(config.training)
    if config.epochs is not None:
        training["epochs"] = config.epochs
    return make_plan(
        dataset,
        learner,
        learner_options=config.learner_options.get(learner),
        network=config.network,
        network_options=config.network_options,
        look=config.look,
        warmup_epochs=config.warmup_epochs if warm else None,
        seed=seed,
        training=training,
    )


def warm(
    config: Config, learner: str, seed: int, extras: tuple[str, ...], folder: Path, progress: Progress
) -> Mapping[str, Any]:
    """Warm a learner up and save its signals."""
    if not (folder / SIGNALS).exists():
        dataset = open_dataset(config)
        signals = warm_up(
            dataset,
            plan=plan_for(config, dataset, learner, seed),
            extras=extras,
            view=config.view,  # type: ignore[arg-type]
            views=config.views,
            repeats=config.repeats,
            device=config.device,
            folder=folder / CHECKPOINTS,
            skip_broken=config.skip_broken,
            progress=progress,
        )
        signals.save(folder / SIGNALS)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return {}


def choose(
    config: Config, spec: MethodSpec, ratio: float, seed: int, signals: Signals, folder: Path, progress: Progress
) -> Mapping[str, Any]:
    """Select a subset and save it."""
    chosen = select(
        spec.method,
        signals,
        ratio=ratio,
        balanced=spec.balanced,
        seed=seed,
        device=config.device,
        progress=progress,
        **spec.options,
    )
    chosen.save(folder / SELECTION, force=True)
    return {"notes": list(chosen.notes), "picking_seconds": chosen.stats["seconds"]["total"]}


def fit(
    config: Config, learner: str, seed: int, selection: Path | None, folder: Path, progress: Progress
) -> Mapping[str, Any]:
    """Train a learner on a saved selection, or on everything."""
    dataset = open_dataset(config)
    subset = None if selection is None else Selection.load(selection).indices
    result: Result = train(
        dataset,
        subset,
        folder=folder,
        plan=plan_for(config, dataset, learner, seed, warm=False),
        device=config.device,
        skip_broken=config.skip_broken,
        progress=progress,
    )
    return {"test_accuracy": result.test_accuracy, "notes": list(result.notes)}
