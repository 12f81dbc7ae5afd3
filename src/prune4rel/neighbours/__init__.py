"""Who is near whom: the exact graph of all pairs whose similarity reaches a threshold.

Every backend works the same way. A cheap matrix product gives, for every pair, a number that is at most a
proven margin below the true cosine; pairs that cannot be ruled out by it are computed again in one canonical
way, in double precision. So all backends, tile sizes and thread counts return the same graph.
"""

from prune4rel.neighbours.build import Neighbourhood, neighbourhood
from prune4rel.neighbours.graph import Graph
from prune4rel.neighbours.similarity import Similarity, Threshold

__all__ = ["Graph", "Neighbourhood", "Similarity", "Threshold", "neighbourhood"]
