"""Sets that no one machine holds: arrays in shards, the neighbour graph on a Ray cluster, and what it will cost.

`select(..., engine="ray")` is the way in. Ray itself is imported when a cluster is asked for, and not before.
"""

from prune4rel.scale.shards import Shards, open_shards
from prune4rel.scale.signals import SignalShards, finish_signals, open_signals, write_part, write_signals

__all__ = [
    "Shards",
    "SignalShards",
    "finish_signals",
    "open_shards",
    "open_signals",
    "write_part",
    "write_signals",
]
