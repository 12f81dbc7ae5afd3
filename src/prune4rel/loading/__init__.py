"""Loading: from a split to batches on the device, in an order that a seed decides."""

from prune4rel.loading.batch import Batch, DrawnTransform, Transform
from prune4rel.loading.choose import make_loader
from prune4rel.loading.decode import read_image
from prune4rel.loading.device import DeviceLoader
from prune4rel.loading.loader import Loader
from prune4rel.loading.source import Split
from prune4rel.loading.stream import StreamLoader

__all__ = [
    "Batch",
    "DeviceLoader",
    "DrawnTransform",
    "Loader",
    "Split",
    "StreamLoader",
    "Transform",
    "make_loader",
    "read_image",
]
