"""Networks: from inputs to embeddings and logits. One file a network, registered by a decorator."""

from prune4rel.networks.network import Network, list_networks, make, make_from_file, register_network

__all__ = ["Network", "list_networks", "make", "make_from_file", "register_network"]
