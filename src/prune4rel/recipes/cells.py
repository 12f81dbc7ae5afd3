"""What a recipe is made of: one method at one ratio, with one learner, on one data set with one kind of noise."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

ACCURACY, NOISE, CORRECTED = "test_acc", "noisy_ratio_in_subset_pct", "self_correct_pct"
SECONDS, BINS = "selection_seconds", "relabeling_by_bin"

TITLES = {
    ACCURACY: "test accuracy, %",
    NOISE: "wrong labels in the subset, %",
    CORRECTED: "wrong labels in the subset that are corrected, %",
    SECONDS: "seconds of selecting",
    BINS: "re-labeling accuracy by neighbourhood confidence",
}
LOWER_FIRST = (NOISE, SECONDS)
"""Metrics whose ranking begins with the lowest."""


@dataclass(frozen=True, order=True)
class PaperCell:
    """One entry of a table, named as the paper names it, but for data sets and learners.

    Examples
    --------
    >>> str(PaperCell("cifar10n", "worst", "sop+", "Uniform", 0.2))
    'cifar10n worst, sop+, Uniform, 0.2'
    """

    dataset: str
    noise: str
    learner: str
    method: str
    ratio: float

    def __str__(self) -> str:
        return f"{self.dataset} {self.noise}, {self.learner}, {self.method}, {self.ratio:g}"


def grid(
    sets: Iterable[tuple[str, str]], learners: Iterable[str], methods: Iterable[str], ratios: Iterable[float]
) -> tuple[PaperCell, ...]:
    """Return all combinations of (data set, noise), learner, method and ratio.

    >>> len(grid([("cifar10n", "worst")], ["sop+"], ["Uniform", "SSP"], [0.2, 0.4]))
    4
    """
    return tuple(
        PaperCell(dataset, noise, learner, method, ratio)
        for (dataset, noise), learner, method, ratio in product(sets, learners, methods, ratios)
    )
