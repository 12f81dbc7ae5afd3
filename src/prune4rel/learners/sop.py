"""SOP and SOP+: sparse over-parameterisation, which lets every example explain its label's error away."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize, softmax

from prune4rel.learners.learner import Drawn, Examples, Learner, Loss, Setting, Streams, Table, within
from prune4rel.learners.losses import Aims, consistency, missed, one_hot, widened
from prune4rel.learners.presets import register_learner
from prune4rel.loading.schedule import Ranks
from prune4rel.machine import has_triton

EPSILON = 1e-4
START = 1e-8
"""Standard deviation that u and v are drawn with; at zero their gradients would vanish."""

PARTS = ("fit", "explained", "consistency", "balance", "guess")

MOST_CLASSES, MOST_EXAMPLES = 256, 512
"""Classes, and examples a batch, up to which a GPU computes the loss in one go: a program has to hold all sums."""

CITATION = "Liu et al., Robust Training under Label Noise by Over-parameterization, ICML 2022"


class Weights(NamedTuple):
    """Of the two terms that SOP+ adds to SOP."""

    consistency: float
    balance: float


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
    weights: Weights | None = None

    def __init__(self, setting: Setting, *, rate_u: float = 10.0, rate_v: float = 100.0) -> None:
        super().__init__(setting)
        generator = torch.Generator().manual_seed(setting.seed)
        start = START * torch.randn(self.m, 1 + self.n_classes, generator=generator)
        self.u = Table(start[:, :1].contiguous(), within("rate_u", rate_u), self.ranks)
        self.v = Table(start[:, 1:].contiguous(), within("rate_v", rate_v), self.ranks)

    def loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return both terms of SOP on weak views, and for SOP+ two more; all views share one forward pass."""
        del drawn
        (examples,) = streams
        return self.terms(widened(self.networks[0](torch.cat(examples.views))), examples)

    def terms(self, logits: Tensor, examples: Examples, aims: Aims | None = None) -> Loss:
        """Return the loss of views' logits, one view after the other; u and v are taken until the next step."""
        u, v = self.u.take(examples.rows), self.v.take(examples.rows)
        if _can_fuse(logits, len(u), self.ranks):
            from prune4rel.gpu.sop_kernels import fused_losses  # noqa: PLC0415 - needs Triton

            total, parts = fused_losses(logits, examples.labels, u, v, self.weights, EPSILON, aims)
        else:
            total, parts = losses(logits, examples.labels, u, v, self.weights, examples.batch, self.ranks, aims)
        return Loss(total, dict(zip(PARTS, parts, strict=False)), logits[: len(u)].detach())

    def after_step(self, network: int) -> None:
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
        self.weights = Weights(within("consistency", consistency), within("balance", balance))


def losses(
    logits: Tensor,
    labels: Tensor,
    u: Tensor,
    v: Tensor,
    weights: Weights | None,
    count: int,
    ranks: Ranks,
    aims: Aims | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Return the total loss and its parts, detached.

    Parameters
    ----------
    logits
        (B, C) of weak views, followed by as many of strong views where there are `weights`.
    labels
        (B,) given.
    u, v
        (B, 1) and (B, C).
    weights
        Of the terms of SOP+; None for SOP.
    count
        Examples in the batch over all ranks.
    ranks
        The processes the batch is spread over.
    aims
        How much every label counts, and which classes strong views learn; only where there are `weights`.
    """
    weak, strong = logits[: len(u)], logits[len(u) :]
    y = one_hot(labels, weak.shape[1])
    U = (u**2 * y).clamp(0, 1)
    V = (v**2 * (1 - y)).clamp(0, 1)
    q = (softmax(weak, dim=1) + U - V.detach()).clamp(min=EPSILON)
    q = normalize(q, p=1, dim=1, eps=EPSILON).clamp(EPSILON, 1)
    hard = one_hot(weak.detach().argmax(1), weak.shape[1])
    trusted = 1 if aims is None else aims.trusted.unsqueeze(1)
    parts = [-(y * q.log() * trusted).sum() / count, ((hard + U - V - y) ** 2 * trusted).sum() / count]
    total = parts[0] + parts[1]
    if weights is not None:
        mean = ranks.sum(q.sum(0)) / count
        more = [consistency(weak, strong, count), ranks.once(-mean.log().mean())]
        total = total + weights.consistency * more[0] + weights.balance * more[1]
        parts += more
        if aims is not None:
            parts.append(missed(strong, aims, count))
            total = total + parts[-1]
    return total, [part.detach() for part in parts]


def _can_fuse(logits: Tensor, count: int, ranks: Ranks) -> bool:
    small = logits.shape[1] <= MOST_CLASSES and count <= MOST_EXAMPLES
    return small and logits.is_cuda and logits.dtype == torch.float32 and ranks.world == 1 and has_triton()
