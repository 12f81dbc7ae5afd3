"""Trust: everything stays in the stream; a memory of predictions decides whose label is learnt."""

import math
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from prune4rel.augment.draws import ViewName
from prune4rel.errors import InputError, nearest
from prune4rel.gpu.streams import beside
from prune4rel.learners.learner import Drawn, Examples, Learner, Loss, Predict, Setting, Streams, within
from prune4rel.learners.losses import Aims, consistency, missed, weighted_cross_entropy, widened
from prune4rel.learners.memory import LEAST, Memory
from prune4rel.learners.presets import register_learner
from prune4rel.learners.sop import SOPPlus
from prune4rel.methods import get, list_methods, select

BASES = ("sop+", "cross-entropy")
Base = Literal["sop+", "cross-entropy"]

MEMORY = "memory"
FEW = 0.02
"""Share of labels that the memory contradicts below which it may as well be the memory that errs: then all count."""

KNOWN = ("labels", "probabilities", "embeddings")
"""Signals that there are while training."""


@register_learner("trust")
class Trust(Learner):
    """Trust: learns all images, and every label as far as a memory of its own predictions agrees with it.

    What the network says of weak views before it learns from them is remembered, as a running mean for every example,
    corrected for classes it neglects. Until `trust_from`, all labels are learnt alike. Then, every `refresh`, labels
    are judged anew: with r the remembered probability of the given label over that of the likeliest other class, a
    label counts min(1, r)^strictness, and the best `least` of every class count 1. Where fewer than 2 % of all labels
    have r below 1, all count: it may be the memory that errs. Labels are learnt by the loss of
    `base`; as far as one is not, the strong view learns the remembered class, where that is surer than `sure`. Weak
    and strong views are to agree for all examples.

    Parameters
    ----------
    base
        How labels are learnt: ``"sop+"`` or ``"cross-entropy"``.
    trust_by
        ``"memory"``, as above; or a method, which selects those whose labels count, all others' do not: by the memory's
        probabilities and, if it needs them, current embeddings, balanced, and as many as the memory agrees with, at
        least `least` of all. Looking at everything for embeddings counts as steps.
    trust_from, refresh
        Shares of all epochs: until when every label is trusted, and how often trust is decided anew after that.
    strictness
        How fast trust falls with doubt; 0 for never.
    least
        Share of every class that is trusted at least; 0 to 1.
    newest
        Least share of the newest prediction in the memory; 0 to 1.
    sure
        Remembered probability from which a class is learnt in the place of a label that is not trusted; 0 to 1.
    guess
        Weight of that, once it has risen.
    rise
        Share of all epochs over which it rises, from `trust_from` on.
    consistency
        Weight of KL(p_weak ‖ p_strong).
    balance
        Weight of the cross-entropy between a uniform distribution and the batch's mean prediction.
    rate_u, rate_v
        As for SOP, where that is the base.
    """

    steady = True
    views: tuple[ViewName, ...] = ("weak", "strong")
    trusted: Tensor
    risen: Tensor

    def __init__(
        self,
        setting: Setting,
        *,
        base: Base = "sop+",
        trust_by: str = MEMORY,
        trust_from: float = 0.15,
        refresh: float = 0.04,
        strictness: float = 2.0,
        least: float = 0.4,
        newest: float = 0.3,
        sure: float = 0.9,
        guess: float = 1.0,
        rise: float = 0.3,
        consistency: float = 0.9,
        balance: float = 0.1,
        rate_u: float = 10.0,
        rate_v: float = 100.0,
    ) -> None:
        super().__init__(setting)
        if base not in BASES:
            raise InputError(f"unknown base {base!r}; {nearest(base, BASES)}", "base")
        self.trust_by = trust_by
        self.looks = trust_by != MEMORY and needs_embeddings(trust_by)
        self.trust_from, self.refresh = within("trust_from", trust_from, 0, 1), within("refresh", refresh, 0, 1)
        self.strictness = within("strictness", strictness)
        self.least, self.sure = within("least", least, 0, 1), within("sure", sure, 0, 1)
        self.guess, self.rise = within("guess", guess), within("rise", rise, 0, 1)
        self.consistency, self.balance = within("consistency", consistency), within("balance", balance)
        self.begin = max(1, math.ceil(self.trust_from * setting.epochs))
        self.base: SOPPlus | None = None
        if base == "sop+":
            own = {"rate_u": rate_u, "rate_v": rate_v, "consistency": consistency, "balance": balance}
            self.base = SOPPlus(replace(setting, make_network=nn.Identity), **own)  # type: ignore[arg-type]
        self.memory = Memory(self.given, self.n_classes, newest=within("newest", newest, 0, 1), ranks=self.ranks)
        self.register_buffer("trusted", torch.ones(self.m))
        self.register_buffer("risen", torch.zeros(()))

    def begin_epoch(self, epoch: int, predict: Predict) -> None:
        """Decide whose label is trusted, where it is time."""
        if epoch < self.begin:
            return
        self.risen.fill_(min(1.0, (epoch + 1 - self.begin) / max(1.0, self.rise * self.setting.epochs)))
        if epoch == self.begin or self._round(epoch) > self._round(epoch - 1):
            labels = self.given.to(self.trusted.device)
            given, other = self.memory.of_labels(labels)
            if self.trust_by == MEMORY:
                ratios = given / other.clamp(min=LEAST)
                strictness = self.strictness if float((ratios < 1).float().mean()) >= FEW else 0.0
                self.trusted.copy_(trust_in(ratios, labels, self.n_classes, strictness, self.least))
            else:
                share = max(self.least, float((given > other).float().mean()))
                self.trusted.zero_()[self._selected(share, predict)] = 1

    def _round(self, epoch: int) -> int:
        """Return how often trust has been decided anew by an epoch."""
        done = (epoch - self.begin) / self.setting.epochs
        return math.floor(done / self.refresh + 1e-9) if self.refresh else epoch

    def _selected(self, share: float, predict: Predict) -> Tensor:
        """Return the rows that the method picks."""
        network: Any = self.networks[0]
        arrays: dict[str, Any] = {"labels": self.setting.labels, "probabilities": self.memory.all()}
        if self.looks:
            arrays["embeddings"] = predict.embed(network).numpy()
        size = max(1, round(share * self.m))
        found = select(self.trust_by, **arrays, size=size, balanced=True, seed=self.setting.seed)
        return torch.from_numpy(found.indices.copy()).to(self.trusted.device)

    def loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return the base's loss of trusted labels, consistency, balance, and what is learnt in others' place."""
        del drawn
        (examples,) = streams
        aims = self.aims(examples)
        logits = widened(self.networks[0](torch.cat(examples.views)))
        found = self._terms(logits, examples, aims) if self.base is None else self.base.terms(logits, examples, aims)
        weak = logits[: len(examples.rows)].detach()
        beside(lambda: self._remember(examples.rows, weak), weak)
        return found

    def aims(self, examples: Examples) -> Aims:
        """Return whose label is learnt, and what in the others' place."""
        sureness, remembered = self.memory.of(examples.rows).max(1)
        trusted = self.trusted[examples.rows]
        return Aims(trusted, remembered, self.guess * self.risen * (1 - trusted) * (sureness > self.sure))

    def _remember(self, rows: Tensor, weak: Tensor) -> None:
        self.memory.add(self.ranks.gather(rows), self.ranks.gather(softmax(weak, dim=1)))

    def _terms(self, logits: Tensor, examples: Examples, aims: Aims) -> Loss:
        weak, strong = logits.chunk(2)
        count = examples.batch
        mean = self.ranks.sum(softmax(weak, dim=1).sum(0)) / count
        parts = {
            "fit": weighted_cross_entropy(weak, examples.labels, aims.trusted, count),
            "consistency": consistency(weak, strong, count),
            "balance": self.ranks.once(-mean.clamp(min=LEAST).log().mean()),
            "guess": missed(strong, aims, count),
        }
        total = parts["fit"] + self.consistency * parts["consistency"] + self.balance * parts["balance"]
        detached = {name: part.detach() for name, part in parts.items()}
        return Loss(total + parts["guess"], detached, weak.detach())

    def after_step(self, network: int) -> None:
        """Let the base's tables descend."""
        if self.base is not None:
            self.base.after_step(network)

    def own_memory(self) -> Memory:
        """Return what trust goes by."""
        return self.memory

    def describe(self) -> dict[str, float]:
        """Return how much the mean label counts."""
        return {"trusted": float(self.trusted.mean())}


def needs_embeddings(name: str) -> bool:
    """Tell whether a method goes by embeddings, and refuse it if it goes by what there is not while training.

    >>> needs_embeddings("prune4rel"), needs_embeddings("small-loss")
    (True, False)
    >>> needs_embeddings("forgetting")
    Traceback (most recent call last):
    prune4rel.errors.InputError: trust cannot go by 'forgetting': it needs forgetting; while training, there are \
labels, probabilities and embeddings
    """
    if name not in list_methods() and ":" not in name:
        known = (MEMORY, *list_methods())
        raise InputError(f"unknown trust_by {name!r}; {nearest(name, known)}", "trust_by")
    missing = [need for need in get(name).needs if not {*need.split("|")} & {*KNOWN}]
    if missing:
        raise InputError(
            f"trust cannot go by {name!r}: it needs {missing[0].replace('|', ' or ')}; while training, there are "
            "labels, probabilities and embeddings",
            "trust_by",
        )
    return any("embeddings" in need.split("|") for need in get(name).needs)


def trust_in(ratios: Tensor, labels: Tensor, n_classes: int, strictness: float, least: float) -> Tensor:
    """Return how much every label counts, (m,) 0 to 1: min(1, ratio)^strictness, and 1 for the best of every class.

    Parameters
    ----------
    ratios
        (m,) of at least 0, higher is more trusted; equal ones go by their order.
    labels
        (m,) int64 given labels.
    strictness
        0 or more.
    least
        Share of every class that counts 1, rounded up.

    Examples
    --------
    >>> ratios, labels = torch.tensor([3.0, 0.5, 0.1, 0.0]), torch.tensor([0, 0, 1, 1])
    >>> trust_in(ratios, labels, 2, strictness=2.0, least=0.4)
    tensor([1.0000, 0.2500, 1.0000, 0.0000])
    """
    counts = torch.bincount(labels, minlength=n_classes)
    order = ratios.argsort(descending=True, stable=True)
    order = order[labels[order].argsort(stable=True)]  # class by class, best first
    own = labels[order]
    place = torch.arange(len(labels), device=labels.device) - (counts.cumsum(0) - counts)[own]
    best = torch.zeros_like(labels, dtype=torch.bool)
    best[order] = place < (counts * least).ceil()[own]
    return torch.where(best, 1.0, ratios.clamp(max=1) ** strictness)
