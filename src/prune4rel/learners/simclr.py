"""SimCLR: embeddings that need no labels, in which two views of an example are near each other."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from prune4rel.learners.learner import Drawn, Learner, Loss, Setting, Streams, above
from prune4rel.loading.schedule import Ranks
from prune4rel.networks import Network


class ProjectedNetwork(nn.Module):
    """A network with a projection on top of its embeddings; its classifier is left as it is.

    Parameters
    ----------
    network
        What to train.
    projected
        Length of a projection.

    Examples
    --------
    >>> from prune4rel.networks import make
    >>> encoder = ProjectedNetwork(make("mlp", 3, shape=(4,), width=8), projected=5)
    >>> x = torch.zeros(2, 4)
    >>> encoder(x).shape, encoder.embed(x).shape, encoder.network(x).shape
    (torch.Size([2, 5]), torch.Size([2, 8]), torch.Size([2, 3]))
    """

    def __init__(self, network: Network, projected: int) -> None:
        super().__init__()
        self.network = network
        self.network.head.requires_grad_(requires_grad=False)
        self.projection = nn.Sequential(
            nn.Linear(network.dim, network.dim), nn.ReLU(), nn.Linear(network.dim, projected)
        )

    def embed(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into embeddings (B, d)."""
        return self.network.embed(x)

    def forward(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into projections (B, projected)."""
        projections: Tensor = self.projection(self.embed(x))
        return projections


class SimCLR(Learner):
    """SimCLR: two strong views of an example have to find each other among all views of a batch.

    Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, ICML 2020. The loss is
    NT-Xent of the projections; labels are not used, and logits mean nothing. Use `embed`.

    Parameters
    ----------
    temperature
        What cosines are divided by.
    projected
        Length of a projection.

    Examples
    --------
    >>> import numpy as np
    >>> from prune4rel.networks import make
    >>> setting = Setting(lambda: make("mlp", 3, shape=(4,), width=8), labels=np.zeros(5, dtype=int), n_classes=3)
    >>> SimCLR(setting).embed(torch.zeros(2, 4)).shape
    torch.Size([2, 8])
    """

    steady = True

    views = ("strong", "strong")

    def __init__(self, setting: Setting, *, temperature: float = 0.5, projected: int = 128) -> None:
        super().__init__(setting)
        self.temperature = above("temperature", temperature)
        self.networks = nn.ModuleList(ProjectedNetwork(network, projected) for network in self.networks)  # type: ignore[arg-type]

    def loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return NT-Xent; both views share one forward pass."""
        del drawn
        (examples,) = streams
        first, second = self.networks[0](torch.cat(examples.views)).chunk(2)
        return Loss(nt_xent(first, second, examples.batch, self.temperature, self.ranks), {})

    def predict(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into logits (B, C) of a classifier that was never trained."""
        encoder: ProjectedNetwork = self.networks[0]  # type: ignore[assignment]
        logits: Tensor = encoder.network(x)
        return logits


def nt_xent(first: Tensor, second: Tensor, batch: int, temperature: float, ranks: Ranks) -> Tensor:
    """Return a rank's share of the normalised, temperature-scaled cross-entropy of two views.

    Parameters
    ----------
    first, second
        (B, k) projections of this rank's part of the batch.
    batch
        How many examples all ranks hold.

    Examples
    --------
    >>> views = torch.eye(2)
    >>> nt_xent(views, views, 2, 1.0, Ranks())
    tensor(0.5514)
    """
    with torch.autocast(first.device.type, enabled=False):
        wide = torch.promote_types(first.dtype, torch.float32)
        places = ranks.mine(torch.arange(batch, device=first.device))
        own = torch.cat([places, places + batch])
        z = normalize(torch.cat([first, second]).to(wide), dim=1)
        everybody = ranks.sum(z.new_zeros(2 * batch, z.shape[1]).index_copy(0, own, z))
        cosines = z @ everybody.T / temperature
        itself = torch.arange(2 * batch, device=z.device) == own.unsqueeze(1)
        partners = (own + batch) % (2 * batch)
        return cross_entropy(cosines.masked_fill(itself, -torch.inf), partners, reduction="sum") / (2 * batch)
