"""`LabelMemory`: wrong labels found as a by-product of any training, by what the model said before it was taught."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, distributed

from prune4rel.errors import InputError
from prune4rel.judging.predictions import NOBODY, judge_predictions
from prune4rel.labels import Labels
from prune4rel.learners.memory import Memory
from prune4rel.signals import Signals


class LabelMemory:
    """Finds wrong labels as a by-product of any training: it remembers what the model said before it was taught.

    Show it every batch's predictions as they are made in training. What is remembered of an example is the mean of
    what was said of it each time it came along, before the model learnt from it once more.

    Parameters
    ----------
    labels
        (m,) given labels of all examples, in ``range(C)``.
    class_names
        C names; numbers unless told.
    ids
        (m,) your own names of the examples.
    newest
        Least share of the newest prediction in the mean: with 0 all epochs count alike; .3 forgets early ones, for a
        training from scratch.

    Examples
    --------
    >>> given = torch.arange(20) % 2
    >>> logits = 3.0 * torch.nn.functional.one_hot(given, 2)
    >>> given[6] = 1
    >>> memory = LabelMemory(given, class_names=["cat", "dog"])
    >>> memory.add(rows=torch.arange(20), logits=logits)
    >>> labels = memory.to_labels()
    >>> np.flatnonzero(labels.is_label_issue), int(labels.predicted_label[6])
    (array([6]), 0)
    """

    def __init__(
        self,
        labels: ArrayLike,
        *,
        class_names: Sequence[str] | None = None,
        ids: ArrayLike | None = None,
        newest: float = 0.0,
    ) -> None:
        self.given = as_labels(labels, None if class_names is None else len(class_names))
        C = int(self.given.max()) + 1 if class_names is None else len(class_names)
        self.class_names = tuple(map(str, range(C) if class_names is None else class_names))
        self.ids = None if ids is None else np.asarray(ids)
        self.memory = Memory(torch.from_numpy(self.given), C, newest=newest, top=C if _processes() > 1 else None)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @torch.no_grad()
    def add(self, rows: ArrayLike | Tensor, logits: Tensor) -> None:
        """Remember what was said of a batch.

        Parameters
        ----------
        rows
            (B,) which examples they are, numbers from 0 to m - 1.
        logits
            (B, C) logits of the model, or probabilities or their logarithms.
        """
        logits = logits.detach()
        numbers = torch.as_tensor(rows, dtype=torch.int64, device=logits.device)
        if logits.shape != (len(numbers), self.n_classes):
            raise InputError(
                f"logits: have shape {tuple(logits.shape)}; expected ({len(numbers)}, {self.n_classes})", "logits"
            )
        if self.memory.seen.device != logits.device:
            self.memory.to(logits.device)
        p = _probabilities(logits.float())
        usable = torch.isfinite(p).all(1)
        _, first = np.unique(numbers.cpu().numpy(), return_index=True)  # a batch that was filled up repeats some
        keep = torch.zeros_like(usable)
        keep[torch.from_numpy(first).to(keep.device)] = True
        keep &= usable
        if keep.any():
            self.memory.add(numbers[keep], p[keep])

    def to_labels(self) -> Labels:
        """Judge the labels by what is remembered.

        Examples that never came along keep their label, judged by nobody.
        """
        remembered, seen = self._everywhere()
        if not seen.any():
            raise InputError("nothing is remembered yet: show the memory the predictions of at least one epoch")
        return judge_predictions(
            remembered,
            self.given,
            self.class_names,
            speakers=np.where(seen > 0, 0, NOBODY),
            ids=self.ids,
            about={"made_by": "LabelMemory", "visits": float(seen.mean()), "unseen": int((seen == 0).sum())},
        )

    def to_signals(self) -> Signals:
        """Return labels and remembered probabilities, for `prune4rel.select`."""
        return Signals(labels=self.given, probabilities=self._everywhere()[0], class_names=self.class_names)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Judge the labels, and save them as `.parquet` or `.csv`."""
        self.to_labels().save(path, force=force)

    def state_dict(self) -> dict[str, Tensor]:
        """Return what is remembered, by all processes together, for a checkpoint; all of them have to ask."""
        state = {name: value.cpu().clone() for name, value in self.memory.state_dict().items()}
        if _processes() > 1:
            values, seen = self._everywhere()
            state |= {"values": torch.from_numpy(values), "seen": torch.from_numpy(seen).to(state["seen"].dtype)}
        return state

    def load_state_dict(self, state: Mapping[str, Tensor | NDArray[Any]]) -> None:
        """Go on from what `state_dict` returned; of several processes the first one remembers it for all."""
        own = self.memory.state_dict()
        if (found := tuple(state["values"].shape)) != (wanted := tuple(own["values"].shape)):
            raise InputError(f"what was remembered has shape {found}, but expected is {wanted}")
        if _processes() > 1 and distributed.get_rank() > 0:
            state = {name: state[name] for name in state if name not in ("values", "seen")}
        self.memory.load_state_dict(own | {name: torch.as_tensor(value) for name, value in state.items()})

    def _everywhere(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return (m, C) what all processes remember, and (m,) how often each example came along."""
        memory = self.memory
        values = torch.cat([p for _, p in memory.blocks()])
        seen = memory.seen.clone()
        if _processes() > 1:
            values = values * seen[:, None]
            distributed.all_reduce(values)
            distributed.all_reduce(seen)
            values = torch.where(seen[:, None] > 0, values / seen.clamp(min=1)[:, None], 1 / self.n_classes)
        return values.cpu().numpy(), seen.cpu().numpy().astype(np.int64)


def _processes() -> int:
    """Return how many processes train together."""
    together = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if together else 1


def as_labels(labels: Any, n_classes: int | None = None) -> NDArray[np.int64]:
    """Check given labels of any kind: (n,) integers in ``range(n_classes)``."""
    given = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or given.min() < 0:
        raise InputError(f"labels: have shape {given.shape} and type {given.dtype}; expected (n,) integers", "labels")
    if n_classes is not None and given.max() >= n_classes:
        raise InputError(f"labels: row {int(given.argmax())} is {given.max()}; expected 0 to {n_classes - 1}", "labels")
    return given.astype(np.int64)


def _probabilities(said: Tensor) -> Tensor:
    """Turn logits into probabilities; what sums to 1 already is left as it is."""
    if bool((said >= 0).all()) and bool(((said.sum(1) - 1).abs() < 1e-3).all()):
        return said
    return torch.softmax(said, dim=1)
