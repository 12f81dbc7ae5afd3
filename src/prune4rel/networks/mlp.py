"""A multi-layer perceptron, for feature vectors of any kind and for very small images."""

from torch import Tensor, nn

from prune4rel.networks.network import IMAGE, Network, Shape, numbers_in, positive, register_network


@register_network("mlp")
class MLP(Network):
    """Linear layers with layer normalisation and ReLU; inputs of any shape are flattened.

    No input of a batch has to do with another, so that batches of one are fine.

    Parameters
    ----------
    n_classes
        Number of classes.
    shape
        Shape of one input: ``(d,)`` for features.
    width
        Length of every hidden layer and of the embedding.
    depth
        Number of hidden layers.

    Examples
    --------
    >>> import torch
    >>> network = MLP(10, shape=(64,), width=32)
    >>> network(torch.zeros(2, 64)).shape, network.dim
    (torch.Size([2, 10]), 32)
    """

    def __init__(self, n_classes: int, *, shape: Shape = IMAGE, width: int = 256, depth: int = 2) -> None:
        inside = numbers_in(shape)
        super().__init__(positive(width, "width"), n_classes)
        layers: list[nn.Module] = []
        for _ in range(positive(depth, "depth")):
            layers += [nn.Linear(inside, width), nn.LayerNorm(width), nn.ReLU()]
            inside = width
        self.layers = nn.Sequential(*layers)

    def embed(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into (B, width)."""
        embeddings: Tensor = self.layers(x.flatten(1))
        return embeddings
