"""All that a training needs in one place: inputs on the device, views, a learner, a loop."""

import math
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prune4rel.data import Dataset, Split
from prune4rel.learners import Learner
from prune4rel.learners.learner import ViewName
from prune4rel.loading import Loader, StreamLoader, make_loader
from prune4rel.loading.ranks import Ranks
from prune4rel.machine import resolve_device, threads
from prune4rel.progress import PlainProgress, Progress
from prune4rel.training.evaluate import Answer, Answers, Said, answers, collect
from prune4rel.training.feed import Feed
from prune4rel.training.hyperparameters import TrainingPlan, build
from prune4rel.training.loop import Training
from prune4rel.training.views import make_views

Indices = NDArray[np.int64]

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
    skip_broken
        Go on without image files that cannot be read.
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
        ranks: Ranks | None = None,
        skip_broken: bool = False,
        progress: Progress | None = None,
        kind: type[Learner] | None = None,
    ) -> None:
        self.dataset, self.plan = dataset, plan
        self.device = torch.device(resolve_device(device))
        self.progress = progress or Progress()
        self._skip_broken = skip_broken
        self._test_loader: Loader | None = None
        self.loader = self._load(dataset.train, subset if dataset.kind == "files" else None)
        self.subset = self._readable(subset)
        ranks = ranks or Ranks()
        learner = build(plan, dataset, self.subset, self.device, ranks, kind)
        learner = learner.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        half = plan.hyperparameters.mixed(self.device.type)
        dtype = torch.bfloat16 if half and dataset.kind != "features" else torch.float32
        self.views = make_views(dataset, dtype=dtype, **plan.look)
        batch = min(plan.hyperparameters.batch, len(self.subset))
        feed = Feed(self.loader, self.subset, self.views, batch, plan.seed, ranks)
        self.training = Training(learner, feed, plan.hyperparameters, keep)
        self.notes = [*plan.notes, *learner.notes, *self._look_around(len(subset))]

    def _load(self, split: Split, subset: Indices | None) -> Loader:
        return make_loader(
            split,
            self.device,
            subset=subset,
            size=self.dataset.image_size or 1,
            skip_broken=self._skip_broken,
            progress=self.progress,
        )

    def _readable(self, subset: Indices) -> Indices:
        """Leave image files out that cannot be read, so that all batches are whole."""
        if not self._skip_broken or self.dataset.kind != "files":
            return subset
        if isinstance(self.loader, StreamLoader):
            with self.progress.task("looking for broken images", total=len(subset)) as advance:
                for batch in self.loader.over(shuffle=False):
                    advance(len(batch.indices))
        return subset[~np.isin(subset, list(self.loader.broken))]

    def _look_around(self, wanted: int) -> list[str]:
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

    def ask(self, split: Split, *, title: str = "") -> Answers:
        """Ask the current model about every example of a split."""
        learner = self.training.learner
        return self.ask_by(lambda x: (learner.predict(x), None), split, title=title)

    def look(self, view: ViewName, *, seed: int = 0, title: str = "") -> Answers:
        """Collect what `looks` tells."""
        return collect(self.looks(view, seed=seed, title=title), len(self.dataset.train))

    def looks(self, view: ViewName, *, seed: int = 0, title: str = "") -> Iterator[Said]:
        """Ask the first network of the current model about every training example, for embeddings, too."""
        network = self.training.learner.model_networks()[0]

        def answer(x: Tensor) -> tuple[Tensor, Tensor]:
            z = network.embed(x)
            return network.classify(z), z

        return self._said(answer, self.dataset.train, view, seed=seed, title=title)

    def ask_by(
        self, answer: Answer, split: Split, view: ViewName = "plain", *, seed: int = 0, title: str = ""
    ) -> Answers:
        """Ask in a way of your own about every example of a split."""
        return collect(self._said(answer, split, view, seed=seed, title=title), len(split))

    def _said(self, answer: Answer, split: Split, view: ViewName, *, seed: int, title: str) -> Iterator[Said]:
        training = self.training
        listener = self.progress if title else Progress()
        with training.averaged(), listener.task(title, total=len(split)) as advance:
            yield from answers(
                training.learner,
                answer,
                self._loader_of(split),
                self.views[view],
                seed=seed,
                half=training.stepper.half,
                advance=advance,
                ranks=training.learner.ranks,
            )

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
