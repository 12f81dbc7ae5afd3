"""Batch normalisation followed by ReLU: one layer, and on a GPU one operation."""

from prune4rel.networks.norm_relu.layer import NormReLU, meet_and_part

__all__ = ["NormReLU", "meet_and_part"]
