"""Networks: from inputs to embeddings and logits. One file a network, registered by a decorator."""

from prune4rel.networks.network import Network
from prune4rel.networks.registry import make, networks, register

__all__ = ["Network", "make", "networks", "register"]
