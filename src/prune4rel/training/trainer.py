"""All that a training needs in one place: inputs on the device, views, a learner, a loop; run for some epochs."""

import math
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prune4rel.augment.draws import ViewName
from prune4rel.data import Dataset, Split
from prune4rel.errors import InputError
from prune4rel.inference import Answers, embed, predict, predict_and_embed
from prune4rel.inference.answers import How, make_views
from prune4rel.learners import Learner, get
from prune4rel.learners.memory import bytes_of
from prune4rel.loading import Loader, StreamLoader, make_loader
from prune4rel.loading.schedule import Ranks
from prune4rel.machine import format_bytes, resolve_device, threads
from prune4rel.progress import PlainProgress, Progress
from prune4rel.training.checkpoint import Checkpoints, Saver
from prune4rel.training.hyperparameters import TrainingPlan, build, identity_of
from prune4rel.training.loop import Feed, Training

Indices = NDArray[np.int64]

WORTH_TELLING = 2**26
"""Bytes of a memory of predictions from which on it is told."""

WORTH_SHARING = 100_000
"""Numbers in a batch below which one thread is faster than several."""


class Trainer:
    """Loads what a plan needs and puts a `Training` together.

    Parameters
    ----------
    dataset, subset, plan
        What to train on, which examples of it, and how.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ...
    keep
        Histories to record.
    ranks
        The processes batches are spread over.
    remember
        Keep a memory of predictions.
    progress
        Told how reading comes along.
    kind
        A learner that is not on the list, made without options; instead of the plan's.

    Attributes
    ----------
    subset
        Those of the examples that could be read.
    notes
        What a user should know.
    """

    def __init__(
        self,
        dataset: Dataset,
        subset: Indices,
        plan: TrainingPlan,
        *,
        device: str = "auto",
        keep: Collection[str] = (),
        remember: bool = False,
        ranks: Ranks | None = None,
        progress: Progress | None = None,
        kind: type[Learner] | None = None,
    ) -> None:
        self.dataset, self.plan = dataset, plan
        self.device = torch.device(resolve_device(device))
        self.progress = progress or Progress()
        self._test_loader: Loader | None = None
        self.loader = self._load(dataset.train, subset if dataset.kind == "files" else None)
        self.subset = self._readable(subset)
        ranks = ranks or Ranks()
        judges = (kind or get(plan.learner).kind).judges
        remember = remember and not judges
        if remember and (size := bytes_of(len(self.subset), dataset.n_classes)) >= WORTH_TELLING:
            self.progress.say(f"remembering what is said of {len(self.subset):,} examples takes {format_bytes(size)}")
        learner = build(plan, dataset, self.subset, self.device, ranks, kind)
        learner = learner.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        half = plan.hyperparameters.mixed(self.device.type)
        dtype = torch.bfloat16 if half and dataset.kind != "features" else torch.float32
        self.views = make_views(dataset, dtype=dtype, **plan.look)
        batch = min(plan.hyperparameters.batch, len(self.subset))
        feed = Feed(self.loader, self.subset, self.views, batch, plan.seed, ranks)
        self.training = Training(learner, feed, plan.hyperparameters, keep, remember=remember)
        self.notes = [*plan.notes, *learner.notes, *self._notes_on(len(subset))]

    def _load(self, split: Split, subset: Indices | None) -> Loader:
        return make_loader(
            split,
            self.device,
            subset=subset,
            size=self.dataset.image_size or 1,
            skip_broken=self.dataset.skip_broken,
            progress=self.progress,
        )

    def _readable(self, subset: Indices) -> Indices:
        """Leave image files out that cannot be read, so that all batches are whole."""
        if not self.dataset.skip_broken or self.dataset.kind != "files":
            return subset
        if isinstance(self.loader, StreamLoader):
            with self.progress.task("looking for broken images", total=len(subset)) as advance:
                for batch in self.loader.over(shuffle=False):
                    advance(len(batch.indices))
        found: Indices = subset[~np.isin(subset, list(self.loader.broken))]
        if not len(found):
            why = next(iter(self.loader.broken.values()))
            raise InputError(f"none of the {len(subset):,} images to train on can be read (the first: {why})", "files")
        return found

    def _notes_on(self, wanted: int) -> list[str]:
        """Say what looks odd."""
        notes, batch, m = [], self.plan.hyperparameters.batch, len(self.subset)
        if m < wanted:
            notes.append(f"{wanted - m} of {wanted} images to train on could not be read and were left out")
        if batch > m:
            notes.append(f"a batch of {batch} is more than the {m} examples; all of them are one batch")
        counts = np.bincount(self.dataset.train.labels[self.subset], minlength=self.dataset.n_classes)
        absent = np.flatnonzero(counts == 0)
        if absent.size:
            names = ", ".join(self.dataset.class_names[k] for k in absent[:5])
            more = f" and {absent.size - 5} more" if absent.size > 5 else ""
            notes.append(f"no example of class {names}{more} is trained on; it will hardly be predicted")
        return notes

    def predict(self, split: Split, *, title: str = "") -> Tensor:
        """Return logits (n, C) of the current model for every example of a split; NaN where it could not be read."""
        learner = self.training.learner
        with self._asking(len(split), title) as how:
            return predict(learner, learner.predict, self._loader_of(split), self.views["plain"], **how)

    def embed(self) -> Tensor:
        """Return embeddings (n, d) of every training example, as it is; NaN where it could not be read."""
        learner, split = self.training.learner, self.dataset.train
        with self._asking(len(split), "") as how:
            return embed(learner, learner.embed, self._loader_of(split), self.views["plain"], **how)

    def predict_and_embed(self, view: ViewName, *, seed: int = 0, title: str = "") -> Iterator[Answers]:
        """Yield what the first network of the current model says of every training example, batch by batch."""
        network, split = self.training.learner.model_networks()[0], self.dataset.train
        with self._asking(len(split), title) as how:
            how["seed"] = seed
            yield from predict_and_embed(network, self._loader_of(split), self.views[view], **how)

    @contextmanager
    def _asking(self, count: int, title: str) -> Iterator[How]:
        """Let the model have its averaged weights for a while, and tell how far along it is."""
        training, listener = self.training, self.progress if title else Progress()
        with training.averaged(), listener.task(title, total=count) as advance:
            yield {"half": training.stepper.half, "advance": advance, "ranks": training.learner.ranks}

    def _loader_of(self, split: Split) -> Loader:
        """Return a loader of a whole split, holding its inputs only once."""
        if split is not self.dataset.train:
            self._test_loader = self._test_loader or self._load(split, None)
            return self._test_loader
        if len(self.loader.examples) == len(split):
            return self.loader.over(np.arange(len(split)))
        return self._load(split, None)

    @contextmanager
    def settings(self) -> Iterator[None]:
        """Compute as the plan asks for, for a while; PyTorch's settings are as they were afterwards.

        On a CPU there are no more threads than this process may have. Small networks run in one: they only lose by
        sharing their work. cuDNN tries several kernels, or takes one that always gives the same.
        """
        cudnn, deterministic = torch.backends.cudnn, self.plan.hyperparameters.deterministic
        before, kernels = torch.get_num_threads(), (cudnn.benchmark, cudnn.deterministic)
        small = self.training.feed.batch * math.prod(self.loader.shape) < WORTH_SHARING
        if self.device.type == "cpu":
            torch.set_num_threads(1 if small else min(before, threads()))
        if deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        cudnn.benchmark, cudnn.deterministic = not deterministic, deterministic
        try:
            yield
        finally:
            torch.set_num_threads(before)
            cudnn.benchmark, cudnn.deterministic = kernels


def listener_of(progress: bool | Progress, ranks: Ranks) -> Progress:
    """Return who is told how things stand: what `progress` says, but nobody where another rank tells it already."""
    if ranks.rank != 0:
        return Progress()
    return PlainProgress() if progress is True else progress or Progress()


def train_briefly(
    trainer: Trainer, epochs: int, *, title: str, folder: Path | None, save_every: float, **identity: Any
) -> None:
    """Run epochs, going on from a checkpoint in the folder, if any.

    Parameters
    ----------
    trainer
        What to train.
    epochs
        Up to which epoch.
    title
        What to call it.
    folder
        Where checkpoints go; None for nowhere.
    save_every
        Seconds between them.
    **identity
        What else has to be the same for a checkpoint to be gone on from.
    """
    training, listener = trainer.training, trainer.progress
    states = None
    if folder is not None:
        known = identity_of(trainer.plan, trainer.dataset, trainer.subset)
        states = Checkpoints(folder, known | {"title": title, "until": epochs, **identity})
    saver = Saver(training, states, save_every)
    saver.resume(listener)
    for note in trainer.notes:
        listener.say(note)

    def work() -> None:
        with listener.task(title, total=max(0, epochs - training.epoch)) as advance:

            def after_step(_count: int, share: float) -> None:
                advance(share)
                saver.save()

            while training.epoch < epochs:
                numbers = training.run_epoch(after_step)
                listener.status(f"{title}, epoch {training.epoch}/{epochs}, loss {numbers['loss']:.3f}")
                saver.save(now=training.epoch == epochs)

    explaining_memory(trainer, work)


LEAST = 2
"""Examples of the smallest batch that is tried: with fewer, layers that normalise over a batch have nothing to do."""


def explaining_memory(trainer: Trainer, work: Callable[[], None]) -> None:
    """Do some training; where memory runs out, say which batch would fit."""
    try:
        work()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    else:
        return
    # only here, where nothing holds on to the tensors of the failed step any more
    batch, world = trainer.training.feed.batch, trainer.training.learner.ranks.world
    if world > 1:
        raise InputError(
            f"a batch of {batch} over {world} processes does not fit into the memory of {trainer.device}; pass a "
            f"smaller one, such as batch={batch // 2} (--set batch={batch // 2}), or start more processes",
            "batch",
        )
    fits = largest_batch_that_fits(trainer)
    advice = f"the largest batch that fits is about {fits}: pass batch={fits} (--set batch={fits})"
    if fits is None:
        advice = f"not even {LEAST} examples fit; choose a smaller network or another device"
    raise InputError(f"a batch of {batch} does not fit into the memory of {trainer.device}; {advice}", "batch")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on whatever device."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def largest_batch_that_fits(trainer: Trainer) -> int | None:
    """Find the largest batch, below the current one, of which a step fits the memory; None if not even two do."""
    fits, fails = LEAST - 1, trainer.training.feed.batch
    trial = max(LEAST, fails // 2)
    while fits < trial < fails:
        if _fits(trainer, trial):
            fits = trial
        else:
            fails = trial
        trial = (fits + fails) // 2 if fits >= LEAST else max(LEAST, fails // 2)
    return fits if fits >= LEAST else None


def _fits(trainer: Trainer, batch: int) -> bool:
    training = trainer.training
    training.feed.batch = batch
    training.stepper.forget()
    if trainer.device.type == "cuda":
        torch.cuda.empty_cache()
    try:
        one = training.learner.passes(training.epoch)[0]
        streams, drawn = next(training.feed.steps(one, training.epoch, 0))
        training.stepper(one, streams, drawn)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    return True
