"""The memory of predictions: what a network in training said of every example before it was trained on it again."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prune4rel.blocks import spans
from prune4rel.loading.schedule import Ranks

MOST_NUMBERS = 2**27
"""Examples times classes up to which every class is remembered: half a GiB of floats."""

TOP = 16
"""Classes of each example that are remembered where there are more."""

DRIFT = 0.01
"""How far the mean prediction moves towards that of a batch."""

LEAST = 1e-6
"""A share of a class below this counts as this, so that nothing is divided by zero."""

BLOCK = 2**20
"""Numbers that are widened at a time."""


def classes_kept(m: int, n_classes: int) -> int:
    """Return how many classes of each of m examples are remembered: all, or `TOP` of many."""
    return n_classes if m * n_classes <= MOST_NUMBERS else min(TOP, n_classes)


def bytes_of(m: int, n_classes: int) -> int:
    """Return the bytes that a memory of m examples takes.

    >>> bytes_of(50_000, 10), bytes_of(1_300_000, 1000)
    (2200000, 171600000)
    """
    kept = classes_kept(m, n_classes)
    return m * (4 * kept + 4) + (4 * m * kept if kept < n_classes else 0)


class Memory(nn.Module):
    """A running mean of predictions for every example, out of sample in time.

    What is remembered of a visit is what the network said before it learnt from it. Predictions are first corrected
    for classes it neglects: with π the running mean of all predictions and c the shares of the given labels, a
    prediction p becomes p · c / π, normalised.

    Memory is bounded: past `MOST_NUMBERS` only the likeliest `TOP` classes of each example are kept, and what is left
    is spread evenly over the others.

    Parameters
    ----------
    labels
        (m,) int64 given labels.
    n_classes
        Number of classes C.
    newest
        Least share of the newest prediction in the mean, 0 to 1; with 0 all visits count alike.
    ranks
        The processes batches are spread over.
    top
        Classes to keep of each example; all of them, or `TOP` of many, unless told.

    Examples
    --------
    >>> memory = Memory(torch.tensor([0, 1]), 2, newest=0.5)
    >>> memory.add(torch.tensor([1]), torch.tensor([[0.75, 0.25]]))
    >>> memory.of(torch.tensor([1]))[0, 0] < 0.75  # class 0 is said more often than it is given
    tensor(True)
    >>> memory.seen.tolist()
    [0, 1]
    """

    values: Tensor
    classes: Tensor
    seen: Tensor
    prior: Tensor
    said: Tensor

    def __init__(
        self, labels: Tensor, n_classes: int, *, newest: float = 0.0, ranks: Ranks | None = None, top: int | None = None
    ) -> None:
        super().__init__()
        m = len(labels)
        self.n_classes, self.newest, self.ranks = n_classes, newest, ranks or Ranks()
        self.top = classes_kept(m, n_classes) if top is None else min(top, n_classes)
        counts = torch.bincount(labels, minlength=n_classes).float()
        self.register_buffer("prior", (counts / max(m, 1)).clamp(min=LEAST))
        self.register_buffer("said", self.prior.clone())
        self.register_buffer("values", torch.full((m, self.top), 1 / n_classes))
        self.register_buffer("seen", torch.zeros(m, dtype=torch.int32))
        whole = self.top == n_classes
        first = torch.arange(self.top, dtype=torch.int32)
        self.register_buffer("classes", first[None, :].repeat(0 if whole else m, 1))

    def of(self, rows: Tensor) -> Tensor:
        """Return what is remembered of some examples: (B, C), rows sum to 1; 1 / C where nothing is."""
        values = self.values[rows]
        if self.top == self.n_classes:
            return values
        rest = (1 - values.sum(1, keepdim=True)).clamp(min=0) / (self.n_classes - self.top)
        return rest.repeat(1, self.n_classes).scatter(1, self.classes[rows].long(), values)

    @torch.no_grad()
    def add(self, rows: Tensor, p: Tensor) -> None:
        """Remember predictions p (B, C) for examples `rows` (B,), each at most once: those of all ranks."""
        p = p.to(self.values.dtype)
        self.said.lerp_(p.mean(0), DRIFT)
        corrected = p * (self.prior / self.said.clamp(min=LEAST))
        corrected = corrected / corrected.sum(1, keepdim=True).clamp(min=LEAST)
        seen = self.seen[rows] + 1
        share = (1 / seen.to(p.dtype)).clamp(min=self.newest)
        mean = torch.lerp(self.of(rows), corrected, share[:, None])
        if self.top < self.n_classes:
            mean, classes = mean.topk(self.top, dim=1)
            self.classes[rows] = classes.to(self.classes.dtype)
        self.values[rows] = mean
        self.seen[rows] = seen

    def blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Go over all examples: rows (k,) and what is remembered of them (k, C)."""
        m = len(self.seen)
        for start, stop in spans(m, max(1, BLOCK // self.n_classes)):
            rows = torch.arange(start, stop, device=self.seen.device)
            yield rows, self.of(rows)

    def all(self) -> NDArray[np.float32]:
        """Return what is remembered of all examples: (m, C) on the CPU."""
        return np.concatenate([p.cpu().numpy() for _, p in self.blocks()])

    @torch.no_grad()
    def of_labels(self, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return (m,) probabilities of the given labels (m,), and of the likeliest other class."""
        given, other = (torch.zeros_like(self.values[:, 0]) for _ in range(2))
        for rows, p in self.blocks():
            own = labels[rows][:, None]
            given[rows] = p.gather(1, own)[:, 0]
            other[rows] = p.scatter(1, own, 0.0).amax(1)
        return given, other
