"""What is watched during training, kept on the device and read once an epoch."""

from collections.abc import Collection, Mapping

import torch
from torch import Tensor, nn

from prune4rel.errors import InputError, nearest
from prune4rel.learners.learner import Loss, Streams
from prune4rel.loading.ranks import Ranks

HISTORIES = ("forgetting", "aum")
"""What can be kept for every example over the epochs."""

NO_STEP = torch.iinfo(torch.int64).max
MOST_PARTS = 16


class Record(nn.Module):
    """Sums of losses and hits over an epoch, and, if wanted, each example's history over all epochs.

    Histories go by what the first network said in training, of the augmented example: a forgetting event is a hit
    followed by a miss; the area under the margin is the mean of p(given label) minus the largest other p.

    Parameters
    ----------
    m, n_classes
        Number of examples and classes.
    keep
        Which of `HISTORIES` to keep.

    Examples
    --------
    >>> from prune4rel.learners.learner import Examples
    >>> record = Record(2, 3, ["aum"], Ranks(), torch.device("cpu"))
    >>> some = Examples(torch.tensor([1]), (), torch.tensor([2]), 1)
    >>> logits = torch.tensor([[0.0, 0.0, 0.0]])
    >>> record.add(Loss(torch.tensor(1.5), {}, logits), (some,))
    >>> record.summary(), record.histories()["aum"]
    ({'loss': 1.5, 'train_accuracy': 0.0}, tensor([0., 0.], dtype=torch.float64))
    """

    sums: Tensor
    hits: Tensor
    step: Tensor
    bad_step: Tensor
    units: Tensor
    was_right: Tensor
    learnt: Tensor
    forgotten: Tensor
    margins: Tensor
    seen: Tensor

    def __init__(self, m: int, n_classes: int, keep: Collection[str], ranks: Ranks, device: torch.device) -> None:
        super().__init__()
        for name in keep:
            if name not in HISTORIES:
                raise InputError(f"cannot record {name!r}; {nearest(name, HISTORIES)}")
        self.keep, self.ranks, self.n_classes = frozenset(keep), ranks, n_classes
        self.names: list[str] = []
        rows = m if self.keep else 0
        self._add_buffer("sums", (MOST_PARTS, 2), torch.float64, device)
        self._add_buffer("hits", (2,), torch.float64, device)
        self._add_buffer("step", (), torch.int64, device)
        self._add_buffer("bad_step", (), torch.int64, device)
        self.bad_step.fill_(NO_STEP)
        self.register_buffer("units", torch.arange(2, dtype=torch.float64, device=device), persistent=False)
        self._add_buffer("was_right", (rows,), torch.bool, device)
        self._add_buffer("learnt", (rows,), torch.bool, device)
        self._add_buffer("forgotten", (rows,), torch.int64, device)
        self._add_buffer("margins", (rows,), torch.float64, device)
        self._add_buffer("seen", (rows,), torch.int64, device)

    def _add_buffer(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
        self.register_buffer(name, torch.zeros(shape, dtype=dtype, device=device))

    def begin_epoch(self) -> None:
        """Start counting anew."""
        self.sums.zero_()
        self.hits.zero_()
        self.step.zero_()

    @torch.no_grad()
    def add(self, loss: Loss, streams: Streams, network: int = 0) -> None:
        """Book one step that trained a network. Nothing here waits for the device.

        Launches of many small operations cost a GPU more than the operations: there are as few as possible.
        """
        values = {"loss": loss.total.detach(), **loss.parts}
        right = None if loss.logits is None else loss.logits.argmax(1) == streams[0].labels
        hits = [] if right is None else [right.sum()]
        # summed now rather than once an epoch, so that any rank's record is that of all, also in a checkpoint
        totals = self.ranks.sum(torch.stack([*values.values(), *hits]).double())
        self._book(dict(zip(values, totals, strict=False)))
        finite = totals[0] - totals[0] == 0
        torch.minimum(self.bad_step, torch.where(finite, NO_STEP, self.step), out=self.bad_step)
        self.step.add_(1)
        if loss.logits is not None and right is not None:
            self.hits[0].add_(totals[-1])
            self.hits[1].add_(streams[0].batch)
            self._compare(loss.logits, right, streams, network)

    def _book(self, totals: Mapping[str, Tensor]) -> None:
        self.names += [name for name in totals if name not in self.names]
        zero, one = self.units.unbind()
        sums = [totals.get(name, zero) for name in self.names]
        counts = [one if name in totals else zero for name in self.names]
        self.sums[: len(self.names)].add_(torch.stack([*sums, *counts]).view(2, -1).T)

    def _compare(self, logits: Tensor, right: Tensor, streams: Streams, network: int) -> None:
        rows, labels = streams[0].rows, streams[0].labels
        if not self.keep or network != 0:
            return
        probabilities = torch.softmax(logits.double(), dim=1)
        given = probabilities.gather(1, labels[:, None])[:, 0]
        others = probabilities.scatter(1, labels[:, None], -1.0).max(1).values
        rows, right, margin = map(self.ranks.gather, (rows, right, given - others))
        self.forgotten[rows] += (self.was_right[rows] & ~right).long()
        self.learnt[rows] |= right
        self.was_right[rows] = right
        self.margins[rows] += margin
        self.seen[rows] += 1

    def first_bad_step(self) -> int | None:
        """Return the step of this epoch at which the loss was no number, if any; waits for the device."""
        bad = int(self.bad_step.item())
        return None if bad == NO_STEP else bad

    def summary(self) -> dict[str, float]:
        """Return means over the epoch: the loss, its parts, and the share of examples the network agreed with."""
        totals, steps = self.sums.T.tolist()
        found = {name: totals[k] / steps[k] for k, name in enumerate(self.names) if steps[k]}
        hits, seen = self.hits.tolist()
        return found | ({"train_accuracy": hits / seen} if seen else {})

    def histories(self) -> dict[str, Tensor]:
        """Return what was kept of every example: (m,) each; forgetting is infinite where nothing was ever learnt."""
        if self.keep and not self.seen.any():
            raise InputError(
                f"{' and '.join(sorted(self.keep))} cannot be recorded with this learner, which mixes examples; choose "
                "another, such as sop+ or cross-entropy"
            )
        found: dict[str, Tensor] = {}
        if "forgetting" in self.keep:
            counted = self.forgotten.double()
            found["forgetting"] = torch.where(self.learnt, counted, torch.inf).cpu()
        if "aum" in self.keep:
            found["aum"] = (self.margins / self.seen.clamp(min=1)).cpu()
        return found
