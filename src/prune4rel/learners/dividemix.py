"""DivideMix: two networks tell each other which labels to believe, and guess the others."""

from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import softmax

from prune4rel.augment import Mixture, draw_mixture, mix
from prune4rel.gpu.streams import beside, join
from prune4rel.learners.learner import (
    Drawn,
    Examples,
    Learner,
    Loss,
    Pass,
    Predict,
    Said,
    Setting,
    Stream,
    Streams,
    above,
    within,
)
from prune4rel.learners.losses import (
    clean_probabilities,
    cross_entropy,
    most_trusted,
    negative_entropy,
    one_hot,
    soft_cross_entropy,
    widened,
)
from prune4rel.learners.presets import register_learner

LEAST = 1e-8
"""A mean prediction of a class below this counts as this, so that no logarithm of zero is taken."""


@register_learner(
    "dividemix",
    citation="Li, Socher, Hoi: DivideMix: Learning with Noisy Labels as Semi-supervised Learning. ICLR 2020",
)
class DivideMix(Learner):
    """DivideMix: two networks divide the examples for each other; labels that are not believed are guessed.

    After a warm-up by cross-entropy, before every epoch, each network's losses are fitted by two Gaussians. w is the
    probability of the lower one. The other network is trained on examples with w above kappa as labelled, and on the
    rest as unlabelled. Targets are sharpened means over two weak views: w · label + (1 - w) · p for labelled examples,
    both networks' p for the others. Inputs and targets are mixed, and the loss is soft cross-entropy on the labelled
    half, plus lambda_u times the mean of (p - target)² on the other, plus a penalty for neglecting classes.
    Logits are the mean of both networks.

    Where nobody has w above kappa, the half with the highest w is labelled.

    Parameters
    ----------
    warmup_epochs
        Epochs of cross-entropy at the start; at most half of all.
    lambda_u
        Weight of the unlabelled term.
    kappa
        w from which a label is believed; 0 to 1.
    temperature
        Of the sharpening p^(1 / temperature); below 1 makes guesses surer.
    alpha
        Inputs are mixed by shares from Beta(alpha, alpha).
    penalty
        Weight of Σ_c 1/C · log(1/C / mean p_c).
    ramp_epochs
        Epochs after the warm-up over which `lambda_u` rises linearly from 0; 0 for all of it at once.
    warmup_penalty
        Weight of Σ p log p in the warm-up, which keeps predictions unsure; for noise that is not symmetric.
    """

    n_networks = 2
    clean: Tensor
    labelled: Tensor
    weight_u: Tensor

    def __init__(
        self,
        setting: Setting,
        *,
        warmup_epochs: int = 10,
        lambda_u: float = 1.0,
        kappa: float = 0.5,
        temperature: float = 0.5,
        alpha: float = 4.0,
        penalty: float = 1.0,
        ramp_epochs: int = 0,
        warmup_penalty: float = 0.0,
    ) -> None:
        super().__init__(setting)
        self.warmup_epochs = int(min(within("warmup_epochs", warmup_epochs), setting.epochs // 2))
        if self.warmup_epochs < warmup_epochs:
            self.notes.append(
                f"DivideMix warms up for {self.warmup_epochs} instead of {warmup_epochs} epochs: "
                f"at most half of the {setting.epochs}"
            )
        self.lambda_u, self.kappa = within("lambda_u", lambda_u), within("kappa", kappa, 0, 1)
        self.temperature, self.alpha = above("temperature", temperature), above("alpha", alpha)
        self.penalty, self.warmup_penalty = within("penalty", penalty), within("warmup_penalty", warmup_penalty)
        self.ramp_epochs = within("ramp_epochs", ramp_epochs)
        self.register_buffer("clean", torch.ones(2, self.m))
        self.register_buffer("labelled", torch.zeros(2, self.m, dtype=torch.bool))
        self.register_buffer("weight_u", torch.zeros(()))
        self._warm_up_losses = [partial(self._warm_up, network) for network in range(2)]
        self._losses = [partial(self._mix_match, network) for network in range(2)]

    def begin_epoch(self, epoch: int, predict: Predict) -> None:
        """Divide the examples by either network's losses."""
        since = epoch - self.warmup_epochs
        if since < 0:
            return
        self.weight_u.fill_(self.lambda_u * (min(1.0, since / self.ramp_epochs) if self.ramp_epochs else 1.0))
        for number, network in enumerate(self.networks):
            losses = functional.cross_entropy(predict(network).double(), self.given, reduction="none").numpy()
            seed = np.random.SeedSequence([self.setting.seed, epoch, number]).generate_state(1)[0]
            clean = torch.from_numpy(clean_probabilities(losses, int(seed))).to(self.clean)
            # all ranks go by the first one's losses, lest they divide differently by a rounding error
            self.clean[number].copy_(self.ranks.gather(clean)[: self.m])
            w = self.clean[number].double().cpu().numpy()
            self.labelled[number].copy_(torch.from_numpy(most_trusted(w, w > self.kappa)))

    def passes(self, epoch: int) -> list[Pass]:
        """One pass a network: over everything in the warm-up, then over what the other network divided."""
        if epoch < self.warmup_epochs:
            everyone = (Stream(self.everyone, ("weak",)),)
            return [Pass(network, everyone, self._warm_up_losses[network]) for network in range(2)]
        passes = []
        for network in range(2):
            labelled = self.labelled[1 - network].cpu().numpy()
            parts = (np.flatnonzero(labelled), np.flatnonzero(~labelled))
            streams = tuple(Stream(rows, ("weak", "weak")) for rows in parts if len(rows))
            passes.append(Pass(network, streams, self._losses[network], self._draw, mixes=True))
        return passes

    def describe(self) -> dict[str, float]:
        """Return the shares of examples that either network holds for rightly labelled."""
        first, second = self.labelled.float().mean(dim=1).tolist()
        return {"labelled_by_first": first, "labelled_by_second": second} if first else {}

    def _warm_up(self, network: int, streams: Streams, drawn: Drawn) -> Loss:
        del drawn
        (examples,) = streams
        logits = widened(self.networks[network](examples.views[0]))
        total = cross_entropy(logits, examples.labels, examples.batch)
        parts = {"labelled": total.detach()}
        if self.warmup_penalty:
            sure = negative_entropy(logits, examples.batch)
            total = total + self.warmup_penalty * sure
            parts["sureness"] = sure.detach()
        return Loss(total, parts, logits.detach())

    def _draw(self, counts: tuple[int, ...], generator: torch.Generator) -> Drawn:
        mixture = draw_mixture(2 * sum(counts), self.alpha, generator, mostly_itself=True)
        return mixture.partners, mixture.shares.contiguous()

    def _mix_match(self, network: int, streams: Streams, drawn: Drawn) -> Loss:
        """Both views of the labelled examples come first, then both of the others, if there are any."""
        mixture, mine = Mixture(*drawn), self.ranks.mine
        inputs = torch.cat([view for examples in streams for view in examples.views])
        targets, said = self._targets(network, inputs, streams, mixture)
        logits = widened(self.networks[network](mine(mix(inputs, mixture))))
        join()  # targets are made meanwhile
        p = softmax(logits, dim=1)

        n, n_labelled = len(inputs), 2 * streams[0].batch
        is_labelled = mine(torch.arange(n, device=inputs.device) < n_labelled).unsqueeze(1)
        fit = soft_cross_entropy(logits, targets * is_labelled, n_labelled)
        mean = self.ranks.sum(p.sum(dim=0)) / n
        neglect = self.ranks.once(-mean.clamp(min=LEAST).log().mean() - np.log(self.n_classes))
        total = fit + self.penalty * neglect
        parts = {"labelled": fit.detach(), "neglect": neglect.detach()}
        if n > n_labelled:
            errors = (p - targets) ** 2 * ~is_labelled
            guess = errors.sum() / ((n - n_labelled) * self.n_classes)
            total = total + self.weight_u * guess
            parts["unlabelled"] = guess.detach()
        return Loss(total, parts, said=said)

    @torch.no_grad()
    def _targets(self, network: int, inputs: Tensor, streams: Streams, mixture: Mixture) -> tuple[Tensor, Said]:
        """Mixed targets of this rank's rows, there after a `join`; and what the network said of weak views."""
        labelled, *others = streams
        unlabelled = inputs[2 * labelled.batch :]
        said_by_other = (
            beside(lambda: self.probabilities_of(self.networks[1 - network], unlabelled), inputs) if others else None
        )
        said = self.probabilities_of(self.networks[network], inputs)
        parts = torch.split(said, [2 * len(examples.rows) for examples in streams])
        heard = Said(torch.cat([examples.rows for examples in streams]), torch.cat(list(map(_mean_of_views, parts))))
        guess = partial(self._guess, network, said, said_by_other, labelled)
        targets = beside(lambda: self.ranks.mine(mix(guess(), mixture)), said)
        return targets, heard

    def _guess(self, network: int, said: Tensor, said_by_other: Tensor | None, labelled: Examples) -> Tensor:
        """Targets of all rows of the inputs, whichever rank holds them."""
        n_labelled = 2 * labelled.batch
        w = self.clean[1 - network][labelled.rows].unsqueeze(1)
        believed = w * one_hot(labelled.labels, self.n_classes) + (1 - w) * _mean_of_views(said[:n_labelled])
        targets = [sharpen(believed, self.temperature)] * 2
        if said_by_other is not None:
            guessed = (_mean_of_views(said[n_labelled:]) + _mean_of_views(said_by_other)) / 2
            targets += [sharpen(guessed, self.temperature)] * 2
        return torch.cat(targets)


def _mean_of_views(p: Tensor) -> Tensor:
    """Mean over two views that lie one after the other, (2B, C) to (B, C)."""
    first, second = p.chunk(2)
    return (first + second) / 2


def sharpen(p: Tensor, temperature: float) -> Tensor:
    """Return p^(1 / temperature), normalised; rows (B, C) are distributions.

    >>> sharpen(torch.tensor([[0.75, 0.25]]), 0.5)
    tensor([[0.9000, 0.1000]])
    """
    return softmax(p.log() / temperature, dim=1)
