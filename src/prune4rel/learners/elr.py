"""ELR: early-learning regularisation, which holds a network to what it believed before it began to memorise."""

import torch
from torch import Tensor
from torch.nn.functional import softmax

from prune4rel.learners.learner import Drawn, Learner, Loss, Pass, Setting, Stream, Streams, within
from prune4rel.learners.losses import cross_entropy, widened
from prune4rel.learners.registry import register_learner

EPSILON = 1e-4

CITATION = "Liu et al., Early-Learning Regularization Prevents Memorization of Noisy Labels, NeurIPS 2020"


@register_learner("elr", citation=CITATION)
class ELR(Learner):
    """ELR: every example remembers the average of its past predictions, and new ones are drawn towards it.

    With t the example's memory, t ← beta · t + (1 - beta) · p, the loss is cross-entropy plus
    lambda_elr · log(1 - t · p), which falls the more p agrees with t.

    Parameters
    ----------
    beta
        How much of the memory remains each time; 0 to 1.
    lambda_elr
        Weight of the regularisation.
    """

    targets: Tensor

    steady = True

    def __init__(self, setting: Setting, *, beta: float = 0.7, lambda_elr: float = 3.0) -> None:
        super().__init__(setting)
        self.beta = within("beta", beta, 0, 1)
        self.lambda_elr = within("lambda_elr", lambda_elr)
        self.register_buffer("targets", torch.zeros(self.m, self.n_classes))

    def passes(self, epoch: int) -> list[Pass]:
        """One pass over everything."""
        del epoch
        return [Pass(0, (Stream(self.everyone, ("weak",)),), self.loss)]

    def loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return cross-entropy and regularisation, on weak views."""
        del drawn
        (examples,) = streams
        logits = widened(self.networks[0](examples.views[0]))
        said = clamped(softmax(logits.detach(), dim=1))
        t = self.beta * self.targets[examples.rows] + (1 - self.beta) * said / said.sum(dim=1, keepdim=True)
        self.targets[self.ranks.gather(examples.rows)] = self.ranks.gather(t).to(self.targets.dtype)
        fit = cross_entropy(logits, examples.labels, examples.batch)
        agree = disagreement(logits, t, examples.batch)
        parts = {"fit": fit.detach(), "agreement": agree.detach()}
        return Loss(fit + self.lambda_elr * agree, parts, logits.detach())

    def describe(self) -> dict[str, float]:
        """Return the share of examples whose memory prefers another class than the given one."""
        return {"relabelled": share_relabelled(self.targets, self.given)}


def clamped(p: Tensor) -> Tensor:
    """Keep probabilities away from 0 and 1, so that no logarithm of zero is taken."""
    return p.clamp(EPSILON, 1 - EPSILON)


def disagreement(logits: Tensor, t: Tensor, count: int) -> Tensor:
    """Sum of log(1 - t · p) over `count`; the lower, the more p agrees with t (B, C)."""
    p = clamped(softmax(logits, dim=1))
    return (1 - (t * p).sum(dim=1)).log().sum() / count


def share_relabelled(targets: Tensor, given: Tensor) -> float:
    """Share of rows of (m, C) memories, of those there are any, whose largest entry is not that of the given label.

    >>> share_relabelled(torch.tensor([[0.0, 0.0], [0.9, 0.1], [0.2, 0.3]]), torch.tensor([1, 1, 1]))
    0.5
    """
    best, likeliest = targets.cpu().max(dim=1)
    seen = best > 0
    return float((likeliest != given.cpu())[seen].float().mean()) if seen.any() else 0.0
