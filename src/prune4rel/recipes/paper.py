"""The published numbers of the paper's Tables 1 to 6, as printed, and what is wrong with some of them."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prune4rel.reading import reading
from prune4rel.recipes.cells import ACCURACY, CORRECTED, NOISE, PaperCell

RANDOM, WORST, NOISY = ("cifar10n", "random"), ("cifar10n", "worst"), ("cifar100n", "noisy")
ALL_THREE = (RANDOM, WORST, NOISY)
USUAL_RATIOS = (0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Published:
    """A mean and, where the paper prints one, a standard deviation; in percent."""

    mean: float
    std: float | None = None


@cache
def published(table: int) -> dict[tuple[PaperCell, str], Published]:
    """Return what a table prints, by cell and metric.

    >>> len(published(1)), published(3)[PaperCell("cifar10n", "worst", "sop+", "Prune4ReL-MaxProb", 0.2), "test_acc"]
    (240, Published(mean=82.7, std=None))
    """
    found: dict[tuple[PaperCell, str], Published] = {}
    path = Path(__file__).with_name("paper.csv")
    with path.open(encoding="utf-8", newline="") as file, reading(path, "list of the paper's numbers"):
        for number, dataset, noise, learner, method, ratio, metric, mean, std in list(csv.reader(file))[1:]:
            if number == str(table):
                cell = PaperCell(dataset, noise, learner, method, float(ratio))
                found[cell, metric] = Published(float(mean), float(std) if std else None)
    return found


@dataclass(frozen=True)
class Erratum:
    """A remark on some printed numbers: in these tables, of this metric, wherever all that is given matches."""

    tables: tuple[int, ...]
    metric: str
    text: str
    dataset: str
    noise: str
    learners: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    ratios: tuple[float, ...] = ()

    def concerns(self, table: int, cell: PaperCell, metric: str) -> bool:
        """Whether it is about this number."""
        return (
            table in self.tables
            and metric == self.metric
            and (cell.dataset, cell.noise) == (self.dataset, self.noise)
            and cell.learner in (self.learners or (cell.learner,))
            and cell.method in (self.methods or (cell.method,))
            and cell.ratio in (self.ratios or (cell.ratio,))
        )


_RELATIVE = "The gains the paper's text speaks of are relative, not points: "

ERRATA = (
    Erratum(
        (1, 2),
        ACCURACY,
        _RELATIVE + "its 9.1 % are 52.9 against SmallLoss's 48.5, its 21.6 % are 52.9 against cross-entropy with "
        "Forgetting's 43.5.",
        "cifar100n",
        "noisy",
        ("sop+",),
        ("Prune4ReL_B",),
        (0.2,),
    ),
    Erratum(
        (1,),
        ACCURACY,
        _RELATIVE + "its 3.7 % are 39.4 against kCenterGreedy's 38.0.",
        "cifar100n",
        "noisy",
        ("dividemix",),
        ("Prune4ReL_B",),
        (0.2,),
    ),
    Erratum(
        (2,),
        ACCURACY,
        _RELATIVE + "its 21.6 % are also 92.9 against cross-entropy with SmallLoss's 76.4.",
        "cifar10n",
        "worst",
        ("sop+",),
        ("Prune4ReL_B",),
        (0.8,),
    ),
    Erratum(
        (6,),
        ACCURACY,
        _RELATIVE + "its 8.6 % are 30.2 against Uniform's 27.8.",
        "imagenet-n",
        "asym20",
        (),
        ("Prune4ReL_B",),
        (0.05,),
    ),
    Erratum(
        (4,),
        NOISE,
        "Table 4 repeats here the accuracy of Moderate with SOP+ from Table 1. At ratio 0.8 it is impossible: with "
        "40.2 % wrong labels no subset of that size has more than 50.25 %.",
        "cifar100n",
        "noisy",
        (),
        ("Moderate",),
        (0.4, 0.6, 0.8),
    ),
    Erratum(
        (4,),
        NOISE,
        "More than there can be: the three random label sets have 17.67 % wrong labels on average, so that a subset of "
        "80 % has at most 22.08 %.",
        "cifar10n",
        "random",
        (),
        ("Prune4ReL",),
        (0.8,),
    ),
    Erratum(
        (5,),
        ACCURACY,
        "Table 1 has 87.8 for the same setting; 88.1 is its number for DivideMix with Prune4ReL_B.",
        "cifar10n",
        "random",
        (),
        ("Prune4ReL",),
        (0.2,),
    ),
    *(
        Erratum(
            (table,),
            metric,
            "The paper gives the random label sets of CIFAR-10N about 18 % wrong labels; they have 17.23, 18.12 and "
            "17.64 %, 17.67 % on average.",
            "cifar10n",
            "random",
        )
        for table, metric in ((4, NOISE), (5, NOISE), (5, CORRECTED))
    ),
    Erratum(
        (2,),
        ACCURACY,
        "The re-labeling model does not win here: DivideMix with Prune4ReL_B has 39.4, cross-entropy with Forgetting "
        "43.5.",
        "cifar100n",
        "noisy",
        ("dividemix", "cross-entropy"),
        ("Prune4ReL_B", "Forgetting"),
        (0.2,),
    ),
)


def remarks(table: int, cell: PaperCell, metric: str) -> tuple[str, ...]:
    """Return what is to be said of a printed number.

    >>> remarks(5, PaperCell("cifar10n", "random", "sop+", "Prune4ReL", 0.2), "test_acc")
    ('Table 1 has 87.8 for the same setting; 88.1 is its number for DivideMix with Prune4ReL_B.',)
    """
    return tuple(dict.fromkeys(each.text for each in ERRATA if each.concerns(table, cell, metric)))
