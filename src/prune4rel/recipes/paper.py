"""The published numbers of the paper's Tables 1 to 6, as printed, and what is wrong with some of them."""

from dataclasses import dataclass
from functools import cache

from prune4rel.recipes.cells import ACCURACY, CORRECTED, NOISE, PaperCell

RANDOM, WORST, NOISY = ("cifar10n", "random"), ("cifar10n", "worst"), ("cifar100n", "noisy")
ALL_THREE = (RANDOM, WORST, NOISY)
USUAL_RATIOS = (0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Published:
    """A mean and, where the paper prints one, a standard deviation; in percent."""

    mean: float
    std: float | None = None


@dataclass(frozen=True)
class Printed:
    """A table as it is printed: a line a method, with ``|`` between the data sets and a column a ratio."""

    sets: tuple[tuple[str, str], ...]
    ratios: tuple[float, ...]
    metric: str
    lines: str


TABLES: dict[int, tuple[Printed, ...]] = {
    1: (
        Printed(
            ALL_THREE,
            USUAL_RATIOS,
            ACCURACY,
            """
dividemix Uniform 87.5±0.2 91.9±0.2 93.7±0.1 94.8±0.1 | 83.2±0.2 88.5±0.1 90.2±0.0 91.4±0.0 |
    30.5±1.0 55.3±0.5 57.5±1.9 58.6±0.9
dividemix SmallLoss 68.1±4.0 82.4±0.8 89.0±0.3 93.1±0.1 | 70.3±0.6 80.3±0.2 89.1±0.0 92.1±0.1 |
    33.3±3.2 47.4±1.1 59.4±0.7 62.0±1.2
dividemix Margin 68.5±2.9 88.5±0.3 93.2±0.2 94.7±0.1 | 61.3±0.8 75.1±0.7 85.3±0.2 90.2±0.1 |
    17.1±0.8 30.8±1.0 46.3±2.4 61.2±1.3
dividemix kCenterGreedy 87.4±0.5 93.0±0.1 94.4±0.1 95.0±0.0 | 82.7±0.8 88.4±0.1 90.6±0.1 92.2±0.0 |
    38.0±1.0 50.0±1.8 59.7±1.3 63.0±0.9
dividemix Forgetting 85.2±0.5 93.0±0.2 94.5±0.1 95.1±0.1 | 78.3±0.6 88.3±0.2 90.4±0.1 92.0±0.2 |
    26.4±1.3 54.3±0.8 63.1±1.3 66.6±1.1
dividemix GraNd 21.8±0.6 60.9±4.5 92.5±1.8 94.8±0.1 | 18.5±1.7 25.5±0.9 49.3±0.9 88.0±0.5 |
    15.5±1.2 26.0±1.9 44.7±1.5 60.4±1.6
dividemix SSP 85.8±1.8 92.2±1.5 93.0±1.1 94.5±0.2 | 81.4±2.5 86.5±1.9 89.6±1.2 91.9±0.4 |
    30.1±2.2 52.4±1.3 58.7±0.5 63.4±0.5
dividemix Moderate 86.4±0.8 91.4±0.3 93.8±0.5 94.8±0.2 | 81.4±1.2 86.5±0.6 90.0±0.6 91.6±0.2 |
    34.2±1.4 54.5±1.3 56.1±0.5 59.9±0.6
dividemix Prune4ReL 87.6±0.3 92.4±0.4 94.5±0.2 95.1±0.1 | 83.7±0.5 88.8±0.3 90.2±0.3 92.0±0.3 |
    37.2±1.0 55.3±0.7 61.2±0.5 65.5±0.8
dividemix Prune4ReL_B 88.1±0.3 93.0±0.2 94.5±0.2 95.1±0.1 | 83.7±0.4 88.6±0.4 90.8±0.2 92.4±0.2 |
    39.4±0.8 56.3±0.5 63.5±0.3 67.4±0.7
sop+ Uniform 87.5±0.3 91.5±0.1 93.4±0.0 94.8±0.2 | 81.9±0.1 87.5±0.1 90.8±0.1 91.8±0.1 |
    46.5±0.0 55.7±0.2 60.8±0.3 64.4±0.2
sop+ SmallLoss 77.6±2.5 86.2±0.1 90.7±0.6 94.3±0.2 | 78.8±0.2 84.1±0.1 89.3±0.1 92.3±0.2 |
    48.5±0.8 59.8±0.4 63.9±0.2 66.1±0.6
sop+ Margin 52.1±5.0 79.6±8.6 92.6±3.9 95.1±1.3 | 45.7±1.1 61.8±0.7 84.6±0.3 92.5±0.0 |
    20.0±1.2 34.4±0.3 50.4±0.6 63.3±0.1
sop+ kCenterGreedy 86.3±0.4 92.2±0.3 94.1±0.2 95.3±0.1 | 81.9±0.0 88.0±0.0 91.3±0.1 92.3±0.0 |
    44.8±0.6 55.9±0.4 61.6±0.3 65.2±0.6
sop+ Forgetting 82.4±1.0 93.0±0.2 94.2±0.3 95.0±0.1 | 71.1±0.4 87.7±0.1 90.6±0.3 92.2±0.0 |
    38.0±0.5 55.3±0.2 63.2±0.1 65.8±0.4
sop+ GraNd 24.2±5.5 51.6±3.2 85.9±1.2 94.9±0.2 | 15.4±1.6 25.7±0.8 51.0±0.5 86.8±0.5 |
    11.0±0.1 19.0±0.6 38.7±0.5 62.1±0.5
sop+ SSP 80.5±2.6 91.7±1.5 93.8±1.0 95.0±0.2 | 70.8±2.7 86.6±1.9 89.2±0.9 92.3±0.4 |
    39.2±2.2 54.9±1.5 62.7±0.7 65.0±0.3
sop+ Moderate 87.8±1.0 92.8±0.5 94.0±0.3 94.9±0.2 | 75.2±1.5 81.9±1.2 87.7±0.7 91.8±0.3 |
    46.4±1.8 54.6±1.7 60.2±0.4 64.6±0.4
sop+ Prune4ReL 87.8±1.2 92.7±0.3 94.4±0.2 95.1±0.1 | 82.7±0.5 88.1±0.4 91.3±0.3 92.5±0.2 |
    50.2±0.2 59.1±0.5 63.9±0.3 65.7±0.5
sop+ Prune4ReL_B 88.5±0.3 93.1±0.2 94.4±0.1 95.3±0.1 | 84.9±0.6 89.2±0.6 91.3±0.3 92.9±0.1 |
    52.9±0.8 60.1±0.6 64.1±0.4 66.2±0.3
""",
        ),
    ),
    2: (
        Printed(
            ALL_THREE,
            USUAL_RATIOS,
            ACCURACY,
            """
cross-entropy Uniform 75.6±0.1 81.0±0.1 83.0±0.1 84.3±0.5 | 58.6±0.3 63.9±0.2 66.4±0.1 67.5±0.5 |
    37.4±0.2 46.1±0.2 50.1±0.0 52.3±0.1
cross-entropy SmallLoss 75.0±1.5 83.4±0.6 87.5±0.3 90.1±0.2 | 70.1±0.3 77.5±1.6 80.6±0.5 76.4±0.1 |
    42.2±0.4 54.7±0.5 57.7±0.1 57.4±0.2
cross-entropy Forgetting 82.2±0.5 86.2±0.1 86.1±0.0 85.4±0.2 | 71.2±0.3 73.3±0.2 71.4±0.2 69.6±0.1 |
    43.5±0.4 54.5±0.1 57.5±0.4 56.6±0.3
dividemix Prune4ReL_B 88.1±0.3 93.0±0.2 94.5±0.2 95.1±0.1 | 83.7±0.4 88.6±0.4 90.8±0.2 92.4±0.2 |
    39.4±0.8 56.3±0.5 63.5±0.3 67.4±0.7
sop+ Prune4ReL_B 88.5±0.3 93.1±0.2 94.4±0.1 95.3±0.1 | 84.9±0.6 89.2±0.6 91.3±0.3 92.9±0.1 |
    52.9±0.8 60.1±0.6 64.1±0.4 66.2±0.3
""",
        ),
    ),
    3: (
        Printed(
            (WORST, NOISY),
            USUAL_RATIOS,
            ACCURACY,
            """
sop+ Prune4ReL-MaxProb 82.7 88.1 91.3 92.5 | 50.2 59.1 63.9 65.7
sop+ Prune4ReL-DiffProb 82.5 88.5 91.2 92.5 | 49.2 59.3 64.1 66.0
""",
        ),
    ),
    4: (
        Printed(
            ALL_THREE,
            USUAL_RATIOS,
            NOISE,
            """
sop+ SmallLoss 0.1 0.2 1.0 4.0 | 0.8 3.6 11.5 26.2 | 3.5 8.7 16.3 27.4
sop+ Margin 29.7 25.7 22.5 19.7 | 54.6 52.1 48.5 44.6 | 61.5 56.8 51.6 46.2
sop+ kCenterGreedy 19.0 18.8 19.1 18.6 | 40.0 41.1 41.6 42.1 | 37.5 38.7 39.9 40.4
sop+ Forgetting 17.0 17.7 17.5 17.8 | 37.7 38.8 39.2 40.2 | 37.9 34.6 33.0 36.8
sop+ GraNd 67.5 41.7 28.6 21.5 | 91.5 79.4 64.2 50.1 | 93.9 57.3 61.2 49.3
sop+ SSP 25.2 23.7 21.6 19.5 | 48.5 46.4 43.2 42.1 | 52.7 52.3 46.8 43.0
sop+ Moderate 6.6 7.1 8.4 13.5 | 31.7 33.4 34.7 40.0 | 33.2 54.6 60.2 64.6
sop+ Prune4ReL 17.0 18.7 19.3 22.5 | 38.7 42.7 43.5 46.5 | 28.3 29.1 33.3 37.2
""",
        ),
    ),
    5: tuple(
        Printed((RANDOM,), (0.2,), metric, f"sop+ kCenterGreedy {k}\nsop+ Forgetting {f}\nsop+ Prune4ReL {p}")
        for metric, k, f, p in ((ACCURACY, 86.3, 82.4, 88.1), (NOISE, 19.0, 17.0, 17.0), (CORRECTED, 75.2, 61.7, 90.3))
    ),
    6: (
        Printed(
            (("imagenet-n", "asym20"),),
            (0.05, 0.1, 0.2, 0.4),
            ACCURACY,
            """
sop+ Uniform 27.8 42.5 52.7 59.2
sop+ SmallLoss 22.8 31.4 42.7 54.4
sop+ Forgetting 4.1 8.3 50.6 57.2
sop+ Prune4ReL_B 30.2 44.3 53.5 60.0
""",
        ),
    ),
}


@cache
def published(table: int) -> dict[tuple[PaperCell, str], Published]:
    """Return what a table prints, by cell and metric.

    >>> len(published(1)), published(3)[PaperCell("cifar10n", "worst", "sop+", "Prune4ReL-MaxProb", 0.2), "test_acc"]
    (240, Published(mean=82.7, std=None))
    """
    found: dict[tuple[PaperCell, str], Published] = {}
    for part in TABLES[table]:
        for line in part.lines.replace("|\n", "").strip().splitlines():
            learner, method, *words = line.replace("|", "").split()
            places = [(*one, ratio) for one in part.sets for ratio in part.ratios]
            for (dataset, noise, ratio), word in zip(places, words, strict=True):
                mean, _, std = word.partition("±")
                number = Published(float(mean), float(std) if std else None)
                found[PaperCell(dataset, noise, learner, method, ratio), part.metric] = number
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
