"""ELR: early-learning regularisation, which holds a network to what it believed before it began to memorise."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softmax

from prune4rel.augment import Mixture, draw_mixture, mix
from prune4rel.gpu.streams import beside, join
from prune4rel.learners.learner import (
    Drawn,
    Examples,
    Follower,
    Learner,
    Loss,
    Pass,
    Said,
    Setting,
    Stream,
    Streams,
    above,
    within,
)
from prune4rel.learners.losses import cross_entropy, one_hot, soft_cross_entropy, widened
from prune4rel.learners.presets import register_learner

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


RAMP = 5.0


@register_learner("elr+", citation=CITATION)
class ELRPlus(Learner):
    """ELR+: two networks, each remembering what the other's moving average predicts, on mixed inputs.

    Inputs and labels are mixed with those of another example, x = λ x_i + (1 - λ) x_j with λ at least 1/2. So are
    the memories, q = λ t_i + (1 - λ) t_j, and the loss is that of ELR with them. Logits are the mean of both networks.

    Parameters
    ----------
    beta, lambda_elr
        As for ELR.
    alpha
        λ is drawn from Beta(alpha, alpha).
    ramp_steps
        Steps of a network over which the regularisation's weight rises as exp(-5 (1 - step / ramp_steps)²); 0 for
        the whole weight at once.
    refine
        Train on normalised(label · q) instead of the mixed label, as the authors do with 100 classes.
    decay
        Of the moving averages of the weights, a step.
    decay_steps
        Steps over which the decay rises to that, by the same curve; 0 for a true mean of all steps until the decay
        is reached.
    """

    n_networks = 2
    steady = True
    targets: Tensor
    steps: Tensor

    def __init__(
        self,
        setting: Setting,
        *,
        beta: float = 0.7,
        lambda_elr: float = 3.0,
        alpha: float = 1.0,
        ramp_steps: int = 0,
        refine: bool = False,
        decay: float = 0.997,
        decay_steps: int = 40_000,
    ) -> None:
        super().__init__(setting)
        self.beta = within("beta", beta, 0, 1)
        self.lambda_elr = within("lambda_elr", lambda_elr)
        self.alpha = above("alpha", alpha)
        self.ramp_steps = within("ramp_steps", ramp_steps)
        self.refine = refine
        self.decay = within("decay", decay, 0, 1)
        self.decay_steps = within("decay_steps", decay_steps)
        self.followers = nn.ModuleList(Follower(network) for network in self.networks)
        self.register_buffer("targets", torch.zeros(2, self.m, self.n_classes))
        self.register_buffer("steps", torch.ones(2))
        self._losses = [partial(self._loss, network) for network in range(2)]

    def passes(self, epoch: int) -> list[Pass]:
        """Two passes over everything, one a network."""
        del epoch
        stream = Stream(self.everyone, ("weak",))
        return [Pass(network, (stream,), self._losses[network], self._draw, mixes=True) for network in range(2)]

    def after_step(self, network: int) -> None:
        """Let the network's average follow, and count the step."""
        step = self.steps[network]
        decay = self.decay * rising(step, self.decay_steps) if self.decay_steps else (1 - 1 / (step + 1))
        self.followers[network].follow(self.networks[network], decay.clamp(max=self.decay))  # type: ignore[operator]
        step += 1

    def describe(self) -> dict[str, float]:
        """Return the share of examples whose memory prefers another class than the given one."""
        return {"relabelled": share_relabelled(self.targets.sum(0), self.given)}

    def _draw(self, counts: tuple[int, ...], generator: torch.Generator) -> Drawn:
        mixture = draw_mixture(counts[0], self.alpha, generator, mostly_itself=True)
        return mixture.partners, mixture.shares.contiguous()

    def _loss(self, network: int, streams: Streams, drawn: Drawn) -> Loss:
        (examples,) = streams
        mixture = Mixture(*drawn)
        (x,) = examples.views
        y, q, said = beside(lambda: self._targets(network, examples, mixture), x)
        logits = widened(self.networks[network](self.ranks.mine(mix(x, mixture))))
        join()  # targets are made meanwhile
        fit = soft_cross_entropy(logits, y, examples.batch)
        agree = disagreement(logits, q, examples.batch)
        weight = self.lambda_elr * rising(self.steps[network], self.ramp_steps)
        return Loss(fit + weight * agree, {"fit": fit.detach(), "agreement": agree.detach()}, said=said)

    def _targets(self, network: int, examples: Examples, mixture: Mixture) -> tuple[Tensor, Tensor, Said]:
        """Mixed labels, and mixed memories of what the other network's average says, of this rank's rows; and that."""
        ranks = self.ranks
        said = self.probabilities_of(self.followers[1 - network], examples.views[0])
        t = self.beta * self.targets[network][examples.rows] + (1 - self.beta) * said
        self.targets[network][examples.rows] = t.to(self.targets.dtype)
        q = ranks.mine(mix(t, mixture))
        y = ranks.mine(mix(one_hot(examples.labels, self.n_classes), mixture))
        return (normalize(y * q, p=1, dim=1) if self.refine else y), q, Said(examples.rows, said)


def rising(step: Tensor, length: float) -> Tensor:
    """exp(-5 (1 - step / length)²) up to 1 at `length`; 1 throughout where that is 0.

    >>> [round(float(rising(torch.tensor(step), 10)), 4) for step in (0.0, 5.0, 10.0, 20.0)]
    [0.0067, 0.2865, 1.0, 1.0]
    """
    if not length:
        return torch.ones_like(step)
    return torch.exp(-RAMP * (1 - (step / length).clamp(max=1)) ** 2)
