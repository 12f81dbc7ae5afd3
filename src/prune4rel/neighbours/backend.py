"""What a backend has to offer, whatever it runs on."""

import threading
from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from prune4rel.neighbours.graph import Edges
from prune4rel.neighbours.screen import Screen
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import Advance


class TooManyEdges(Exception):  # noqa: N818 - no error: the caller goes another way
    """More edges than the caller has room for."""


class EdgeBudget:
    """Counts edges over all threads and stops them all when there are too many."""

    def __init__(self, limit: float) -> None:
        self.left = limit
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        """Use up part of the budget."""
        with self._lock:
            self.left -= count
        if self.left < 0:
            raise TooManyEdges

    def exhaust(self) -> None:
        """Make every further `take` fail."""
        with self._lock:
            self.left = -1.0


class Backend(ABC):
    """Finds neighbours among `points`, ruling out pairs by `screen` first."""

    points: Points
    screen: Screen
    check_cost: float
    half: bool
    approximate: bool = False

    @abstractmethod
    def with_screen(self, screen: Screen) -> Self:
        """Return the same rows behind another screen."""

    @abstractmethod
    def upper(self, threshold: Threshold, *, max_edges: float, advance: Advance) -> list[Edges]:
        """Every neighbouring pair i < j, in the order `Edges` promises; `TooManyEdges` past `max_edges`.

        `advance` is told the number of pairs looked at.
        """

    @abstractmethod
    def of(self, rows: NDArray[np.int64], threshold: Threshold, *, max_edges: float, advance: Advance = ...) -> Edges:
        """All neighbours j of the given rows, themselves left out; i counts along `rows`, sorted by i, then j."""
