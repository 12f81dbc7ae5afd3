"""The selection loop: which example next, given who is near whom."""

from prune4rel.greedy.lazy import Picks, lazy_greedy
from prune4rel.greedy.streaming import streaming_greedy

__all__ = ["Picks", "lazy_greedy", "streaming_greedy"]
