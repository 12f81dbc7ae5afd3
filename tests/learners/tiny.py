"""Tasks so small that everything about them can be worked out by hand: a linear network in double precision."""

import numpy as np
import torch

from prune4rel.learners import Examples, Setting, make_learner
from prune4rel.networks import Network

CLASSES, DIM, M = 3, 4, 8


class Linear(Network):
    """Logits are linear in the inputs."""

    def embed(self, x):
        return x


def linear():
    return Linear(DIM, CLASSES).double()


def some_labels(m=M, seed=0):
    return np.random.default_rng(seed).integers(0, CLASSES, m)


def tiny_setting(m=M, **changes):
    values = {"make_network": linear, "labels": some_labels(m), "n_classes": CLASSES, "epochs": 10, "seed": 3}
    return Setting(**values | changes)


def tiny_learner(name, *, m=M, weights_seed=0, setting=None, **options):
    torch.manual_seed(weights_seed)
    setting = setting or tiny_setting(m)
    return make_learner(name, setting, **options) if isinstance(name, str) else name(setting, **options)


def some_examples(learner, rows, n_views=1, seed=0):
    """Examples whose views are random."""
    generator = torch.Generator().manual_seed(seed)
    views = tuple(torch.randn(len(rows), DIM, dtype=torch.float64, generator=generator) for _ in range(n_views))
    rows = torch.as_tensor(rows)
    return Examples(rows, views, learner.given[rows], len(rows))


def weights_of(network):
    return torch.cat([weights.detach().flatten() for weights in network.parameters()]).numpy()


def gradient_of(network):
    return torch.cat([weights.grad.flatten() for weights in network.parameters()]).numpy()


def logits_by(weights, x):
    """Logits of a `Linear` network whose weights are given as one vector."""
    matrix = weights[: DIM * CLASSES].reshape(CLASSES, DIM)
    return np.asarray(x) @ matrix.T + weights[DIM * CLASSES :]


def train_only(learner, network):
    for number, other in enumerate(learner.networks):
        other.train(number == network)
