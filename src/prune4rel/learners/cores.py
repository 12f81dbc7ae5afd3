"""CORES²: confidence regularisation, and a sieve that keeps labels better than chance."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, softmax

from prune4rel.learners.learner import Drawn, Learner, Loss, Pass, Predict, Said, Setting, Stream, Streams, within
from prune4rel.learners.losses import consistency, cross_entropy, most_trusted, widened
from prune4rel.learners.presets import register_learner
from prune4rel.networks import Network

LEAST = 1e-8
"""Added to probabilities before logarithms: without it the regulariser has no lower bound."""


@register_learner(
    "cores",
    citation="Cheng et al., Learning with Instance-Dependent Label Noise: A Sample Sieve Approach, ICLR 2021",
)
class CORES(Learner):
    """CORES²: rewards sure predictions, sieves out labels worse than chance, and trains anew on what it kept.

    First, with s_c = -log p_c and prior π of the kept labels, the loss is (s_label - beta · Σ_c π_c s_c) / (1 + beta)
    over the examples that pass the sieve, s_label ≤ mean_c s_c + sieve_at. beta rises from 0. The division stands for
    the authors' division of the learning rate. Then (CORES²*) the sieve is frozen and a new network is trained: by
    cross-entropy on strong views of kept examples, and on the others by agreement of weak and strong views without
    their labels.

    Where the sieve keeps nobody, the half with the lowest s_label - mean_c s_c is kept.

    Parameters
    ----------
    beta
        Weight of the regulariser once it has risen.
    beta_from, beta_until
        Shares of all epochs between which beta rises linearly from 0.
    sieve_from
        Share of all epochs after which the sieve works.
    sieve_at
        An example passes if s_label - mean_c s_c is at most this. Below 0 where a class is mostly mistaken for one
        other: its wrong labels are likelier than the average class.
    second_from
        Share of all epochs after which the new network is trained; 1 for never.
    consistency
        Weight of KL(p_weak ‖ p_strong) of the examples that were not kept.
    """

    n_networks = 2
    kept: Tensor
    prior: Tensor
    current_beta: Tensor
    sieving: Tensor
    second: Tensor

    def __init__(
        self,
        setting: Setting,
        *,
        beta: float = 2.0,
        beta_from: float = 0.1,
        beta_until: float = 0.4,
        sieve_from: float = 0.3,
        sieve_at: float = 0.0,
        second_from: float = 0.4,
        consistency: float = 0.4,
    ) -> None:
        super().__init__(setting)
        self.beta = within("beta", beta)
        self.beta_from = within("beta_from", beta_from, 0, 1)
        self.beta_until = within("beta_until", beta_until, beta_from, 1)
        self.sieve_from = within("sieve_from", sieve_from, 0, 1)
        self.sieve_at = within("sieve_at", sieve_at, -math.inf)
        self.second_epoch = math.ceil(setting.epochs * within("second_from", second_from, 0, 1))
        self.consistency = within("consistency", consistency)
        self.register_buffer("kept", torch.ones(self.m, dtype=torch.bool))
        self.register_buffer("prior", torch.full((self.n_classes,), 1 / self.n_classes))
        self.register_buffer("current_beta", torch.zeros(()))
        self.register_buffer("sieving", torch.zeros((), dtype=torch.bool))
        self.register_buffer("second", torch.zeros((), dtype=torch.bool))

    def begin_epoch(self, epoch: int, predict: Predict) -> None:
        """Set beta and the sieve's prior; freeze the sieve when the new network's turn comes."""
        done = epoch / self.setting.epochs
        self.current_beta.fill_(self._beta_after(done))
        self.sieving.fill_(done > self.sieve_from)
        counts = torch.bincount(self.given[self.kept.cpu()], minlength=self.n_classes)
        if counts.any():
            self.prior.copy_(counts / counts.sum())
        if epoch >= self.second_epoch and not self.second:
            scores = sieve_scores(predict(self.networks[0]).double(), self.given).nan_to_num(math.inf)
            # all ranks go by the first one's scores, lest they differ by a rounding error
            scores = self.ranks.gather(scores.to(self.prior))[: self.m].double().cpu()
            self.kept.copy_(torch.from_numpy(most_trusted(-scores.numpy(), (scores <= self.sieve_at).numpy())))
            self.second.fill_(value=True)

    def _beta_after(self, done: float) -> float:
        """Return beta after a share of all epochs."""
        if self.beta_from < done < self.beta_until:
            return self.beta * (done - self.beta_from) / (self.beta_until - self.beta_from)
        return self.beta if done >= self.beta_until else 0.0

    def passes(self, epoch: int) -> list[Pass]:
        """One pass over everything; for the new network, over what was kept, and what was not beside it."""
        if epoch < self.second_epoch:
            return [Pass(0, (Stream(self.everyone, ("weak",)),), self.loss)]
        kept = self.kept.cpu().numpy()
        streams = [Stream(np.flatnonzero(kept), ("strong",))]
        if not kept.all():
            streams.append(Stream(np.flatnonzero(~kept), ("weak", "strong")))
        return [Pass(1, tuple(streams), self.second_loss)]

    def loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return the regularised loss of weak views that pass the sieve."""
        del drawn
        (examples,) = streams
        logits = widened(self.networks[0](examples.views[0]))
        kept = (sieve_scores(logits.detach(), examples.labels) <= self.sieve_at) | ~self.sieving
        gathered = self.ranks.gather(kept.to(torch.uint8)).bool()
        self.kept[self.ranks.gather(examples.rows)] = gathered
        count = gathered.sum().clamp(min=1)
        fits = -log_softmax(logits, dim=1).gather(1, examples.labels.unsqueeze(1)).squeeze(1)
        fit = (fits * kept).sum() / count
        sureness = -((surprise(logits) * self.prior).sum(dim=1) * kept).sum() / count
        total = (fit + self.current_beta * sureness) / (1 + self.current_beta)
        return Loss(total, {"fit": fit.detach(), "sureness": sureness.detach()}, logits.detach())

    def second_loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return the new network's loss; all views share one forward pass."""
        del drawn
        kept, *others = streams
        logits = widened(self.networks[1](torch.cat([view for examples in streams for view in examples.views])))
        mine = len(kept.rows)
        total = cross_entropy(logits[:mine], kept.labels, kept.batch)
        parts = {"fit": total.detach()}
        for rejected in others:
            weak, strong = logits[mine:].chunk(2)
            agree = consistency(weak, strong, rejected.batch)
            total = total + self.consistency * agree
            parts["consistency"] = agree.detach()
        return Loss(total, parts, logits[:mine].detach(), self._said(streams, logits.detach()))

    def _said(self, streams: Streams, logits: Tensor) -> Said:
        """Of kept examples the strong view is all there is; of the others, the weak one."""
        kept, *others = streams
        mine = len(kept.rows)
        rows = torch.cat([examples.rows for examples in streams])
        said = torch.cat([logits[:mine], *(logits[mine : mine + len(examples.rows)] for examples in others)])
        return Said(self.ranks.gather(rows), self.ranks.gather(softmax(said, dim=1)))

    def describe(self) -> dict[str, float]:
        """Return the share of examples that passed the sieve, and beta."""
        return {"kept": float(self.kept.float().mean()), "beta": float(self.current_beta)}

    def model_networks(self) -> list[Network]:
        """Return the network that is trained, or was last."""
        return [self.networks[int(self.second)]]  # type: ignore[list-item]


def surprise(logits: Tensor) -> Tensor:
    """-log p (B, C) of every class, at most about 18."""
    return -(softmax(logits, dim=1) + LEAST).log()


def sieve_scores(logits: Tensor, labels: Tensor) -> Tensor:
    """Return (B,) by how much the given label surprises more than a class does on average.

    >>> sieve_scores(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))
    tensor([-1.,  1.])
    """
    every = surprise(logits)
    return every.gather(1, labels.unsqueeze(1)).squeeze(1) - every.mean(dim=1)
