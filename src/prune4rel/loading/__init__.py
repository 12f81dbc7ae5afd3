"""Loading: from a split to batches on the device, in an order that a seed decides."""

from prune4rel.data.decode import read_image
from prune4rel.loading.loader import DeviceLoader, Loader, StreamLoader, make_loader
from prune4rel.loading.schedule import Batch, DrawnTransform, Transform
from prune4rel.loading.source import SplitLike

__all__ = [
    "Batch",
    "DeviceLoader",
    "DrawnTransform",
    "Loader",
    "SplitLike",
    "StreamLoader",
    "Transform",
    "make_loader",
    "read_image",
]
