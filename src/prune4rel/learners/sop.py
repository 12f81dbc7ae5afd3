"""SOP and SOP+: sparse over-parameterisation, which lets every example explain its label's error away."""

import torch
from torch import Tensor
from torch.nn.functional import normalize, softmax

from prune4rel.learners.learner import Drawn, Learner, Loss, Pass, Setting, Stream, Streams, Table, ViewName
from prune4rel.learners.losses import consistency, one_hot, widened
from prune4rel.learners.options import within
from prune4rel.learners.registry import register_learner

EPSILON = 1e-4
START = 1e-8
"""Standard deviation that u and v are drawn with; at zero their gradients would vanish."""

CITATION = "Liu et al., Robust Training under Label Noise by Over-parameterization, ICML 2022"


@register_learner("sop", citation=CITATION)
class SOP(Learner):
    """SOP: every example has a sparse error term that explains a wrong label away.

    With y the given label as one-hot, p the prediction, U = u² y and V = v² (1 - y) clamped to [0, 1], the loss is
    -y · log q + |hard(p) + U - V - y|² with q = normalised(p + U - V). u learns from both terms, v from the second.

    Parameters
    ----------
    rate_u, rate_v
        Learning rates of u and v, which are trained by plain gradient descent.
    """

    steady = True
    views: tuple[ViewName, ...] = ("weak",)

    def __init__(self, setting: Setting, *, rate_u: float = 10.0, rate_v: float = 100.0) -> None:
        super().__init__(setting)
        generator = torch.Generator().manual_seed(setting.seed)
        start = START * torch.randn(self.m, 1 + self.n_classes, generator=generator)
        self.u = Table(start[:, :1].contiguous(), within("rate_u", rate_u), self.ranks)
        self.v = Table(start[:, 1:].contiguous(), within("rate_v", rate_v), self.ranks)

    def passes(self, epoch: int) -> list[Pass]:
        """One pass over everything."""
        del epoch
        return [Pass(0, (Stream(self.everyone, self.views),), self.loss)]

    def loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return both terms of SOP, on weak views."""
        del drawn
        (examples,) = streams
        logits = widened(self.networks[0](examples.views[0]))
        total, _, parts = self._explain(logits, examples.rows, examples.labels, examples.batch)
        return Loss(total, parts, logits.detach())

    def _explain(
        self, logits: Tensor, rows: Tensor, labels: Tensor, count: int
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return the loss, the corrected predictions q (B, C), and the loss's parts."""
        y = one_hot(labels, self.n_classes)
        U = (self.u.take(rows) ** 2 * y).clamp(0, 1)
        V = (self.v.take(rows) ** 2 * (1 - y)).clamp(0, 1)
        q = (softmax(logits, dim=1) + U - V.detach()).clamp(min=EPSILON)
        q = normalize(q, p=1, dim=1, eps=EPSILON).clamp(EPSILON, 1)
        fit = -(y * q.log()).sum() / count
        hard = one_hot(logits.detach().argmax(1), self.n_classes)
        explained = ((hard + U - V - y) ** 2).sum() / count
        return fit + explained, q, {"fit": fit.detach(), "explained": explained.detach()}

    def settle(self, network: int) -> None:
        """Let u and v descend."""
        del network
        self.u.step()
        self.v.step()

    def describe(self) -> dict[str, float]:
        """Return how much of its given label the mean example explains away, 0 to 1."""
        return {"explained_away": float((self.u.values**2).clamp(0, 1).mean())}


@register_learner("sop+", citation=CITATION)
class SOPPlus(SOP):
    """SOP+: SOP with consistency between weak and strong views, and predictions spread over the classes.

    Parameters
    ----------
    rate_u, rate_v
        As for SOP.
    consistency
        Weight of KL(p_weak ‖ p_strong); λ_C in the paper.
    balance
        Weight of the cross-entropy between a uniform distribution and the batch's mean prediction; λ_B.
    """

    views = ("weak", "strong")

    def __init__(
        self,
        setting: Setting,
        *,
        rate_u: float = 10.0,
        rate_v: float = 100.0,
        consistency: float = 0.9,
        balance: float = 0.1,
    ) -> None:
        super().__init__(setting, rate_u=rate_u, rate_v=rate_v)
        self.weights = (within("consistency", consistency), within("balance", balance))

    def loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return SOP's loss on weak views and the two further terms; both views share one forward pass."""
        del drawn
        (examples,) = streams
        both = widened(self.networks[0](torch.cat(examples.views)))
        weak, strong = both.chunk(2)
        total, q, parts = self._explain(weak, examples.rows, examples.labels, examples.batch)
        agree = consistency(weak, strong, examples.batch)
        mean = self.ranks.sum(q.sum(0)) / examples.batch
        spread = self.ranks.once(-mean.log().mean())
        weight_of_agreeing, weight_of_spread = self.weights
        total = total + weight_of_agreeing * agree + weight_of_spread * spread
        parts |= {"consistency": agree.detach(), "balance": spread.detach()}
        return Loss(total, parts, weak.detach())
