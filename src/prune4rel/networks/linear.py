"""No hidden layer at all: a linear classifier on the inputs as they are."""

from torch import Tensor

from prune4rel.networks.network import IMAGE, Network, Shape, numbers_in, register_network


@register_network("linear")
class Linear(Network):
    """A linear classifier; inputs of any shape are flattened, and are their own embeddings.

    Parameters
    ----------
    n_classes
        Number of classes.
    shape
        Shape of one input: ``(d,)`` for features.

    Examples
    --------
    >>> import torch
    >>> network = Linear(10, shape=(64,))
    >>> network(torch.zeros(2, 64)).shape, network.dim
    (torch.Size([2, 10]), 64)
    """

    def __init__(self, n_classes: int, *, shape: Shape = IMAGE) -> None:
        super().__init__(numbers_in(shape), n_classes)

    def embed(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into the same numbers (B, d)."""
        return x.flatten(1)
