"""A convolution of images with few channels: one layer, and its kernels for a GPU."""

from prune4rel.networks.first_convolution.layer import FirstConvolution

__all__ = ["FirstConvolution"]
