"""Our numbers beside the paper's: mean and spread, the difference, and whether the order agrees."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import fmean, stdev

from prune4rel.recipes.catalogue import Recipe
from prune4rel.recipes.cells import LOWER_FIRST, OURS, SOURCES, TITLES, PaperCell
from prune4rel.recipes.harvest import Finding
from prune4rel.recipes.paper import Published, published, remarks

MOST_NAMED = 3
"""Swapped pairs that are named; of more only the number is told."""


@dataclass(frozen=True)
class Order:
    """How the ranking found here compares with the paper's.

    Parameters
    ----------
    here, paper
        Names, best first.
    tau
        Kendall's tau-b: 1 for the same order, -1 for the opposite one; None where it has no meaning.
    swapped
        Pairs (ahead here, ahead in the paper).
    pairs
        How many pairs both rankings decide.
    """

    here: tuple[str, ...]
    paper: tuple[str, ...]
    tau: float | None
    swapped: tuple[tuple[str, str], ...]
    pairs: int

    @property
    def sentence(self) -> str:
        """It in words."""
        if len(self.here) < 2:
            return "There is no order to compare."
        if not self.pairs:
            return "There is no order to compare: all are level."
        if not self.swapped:
            return "The order agrees."
        if len(self.swapped) <= MOST_NAMED and len(self.swapped) * 2 < self.pairs:
            named = " and ".join(f"{ahead} is ahead of {behind}" for ahead, behind in self.swapped)
            return f"The order agrees except that {named}."
        best = f"best here is {self.here[0]}, in the paper {self.paper[0]}"
        if self.here[0] == self.paper[0]:
            best = f"{self.here[0]} is best in both"
        return f"The order differs in {len(self.swapped)} of {self.pairs} pairs; {best}."


def compare_order(here: Mapping[str, float], paper: Mapping[str, float], *, lower_first: bool = False) -> Order:
    """Compare two rankings of what both have a number for.

    Parameters
    ----------
    here, paper
        A number by name.
    lower_first
        Whether the lowest number is the best.

    Examples
    --------
    >>> found = compare_order({"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 9.0, "b": 7.0, "c": 8.0})
    >>> found.sentence, round(found.tau, 3)
    ('The order agrees except that b is ahead of c.', 0.333)
    """
    sign = -1.0 if lower_first else 1.0
    names = [name for name in here if name in paper]
    ours = {name: sign * here[name] for name in names}
    theirs = {name: sign * paper[name] for name in names}
    swapped, same, decided_here, decided_there = [], 0, 0, 0
    for one, other in combinations(names, 2):
        mine, printed = ours[one] - ours[other], theirs[one] - theirs[other]
        decided_here += mine != 0
        decided_there += printed != 0
        same += mine * printed > 0
        if mine * printed < 0:
            swapped.append((one, other) if mine > 0 else (other, one))
    scale = sqrt(decided_here * decided_there)
    return Order(
        _ranked(names, ours),
        _ranked(names, theirs),
        (same - len(swapped)) / scale if scale else None,
        tuple(swapped),
        same + len(swapped),
    )


def _ranked(names: Sequence[str], values: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: -values[name]))


@dataclass(frozen=True)
class Found:
    """What was found here: mean and, of two or more repeats, standard deviation."""

    mean: float
    std: float | None
    seeds: int


@dataclass(frozen=True)
class Row:
    """One number: ours, None where it was not run; the paper's, None where it prints none; what is to be said of it."""

    cell: PaperCell
    metric: str
    ours: Found | None
    paper: Published | None
    remarks: tuple[str, ...] = ()

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None or self.paper is None else self.ours.mean - self.paper.mean


@dataclass(frozen=True)
class Comparison:
    """Rows that are ranked together."""

    title: str
    metric: str
    rows: tuple[Row, ...]
    across_learners: bool = False

    def name_of(self, row: Row) -> str:
        """Return what a row is called in the block."""
        return f"{row.cell.learner} + {row.cell.method}" if self.across_learners else row.cell.method

    @property
    def order(self) -> Order:
        """Return how the ranking compares; of our own presets the paper knows nothing, so they are not in it."""
        both = [row for row in self.rows if row.ours and row.paper]
        return compare_order(
            {self.name_of(row): row.ours.mean for row in both if row.ours},
            {self.name_of(row): row.paper.mean for row in both if row.paper},
            lower_first=self.metric in LOWER_FIRST,
        )


def compare(
    recipe: Recipe, cells: Sequence[PaperCell], findings: Iterable[Finding], *, smoke: bool = False
) -> list[Comparison]:
    """Put what was found beside what the paper prints, in blocks that are ranked together.

    Parameters
    ----------
    recipe
        Says which metrics, and where the paper prints them.
    cells
        The cells to show; those without findings are shown as not run.
    findings
        What was found.
    smoke
        Whether it was found on stand-ins, which the paper's numbers have nothing to do with.
    """
    found: dict[PaperCell, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.cell, []).append(finding)
    blocks: dict[tuple[object, ...], list[Row]] = {}
    for metric in recipe.metrics:
        for cell in cells:
            paper = None if smoke else printed(recipe, cell, metric)
            said = () if smoke or paper is None or recipe.printed is None else remarks(recipe.printed, cell, metric)
            row = Row(cell, metric, average(found.get(cell, ()), metric), paper, said)
            learner = None if recipe.across_learners else cell.learner
            blocks.setdefault((metric, cell.dataset, cell.noise, learner, cell.ratio), []).append(row)
    return [_block(rows, across=recipe.across_learners) for rows in blocks.values()]


def _block(rows: list[Row], *, across: bool) -> Comparison:
    cell, metric = rows[0].cell, rows[0].metric
    source = SOURCES[cell.dataset].title + ("" if cell.noise == "real" else f" {cell.noise}")
    learner = () if across else (cell.learner,)
    return Comparison(
        ", ".join([source, *learner, f"ratio {cell.ratio:g}", TITLES[metric]]), metric, tuple(rows), across
    )


def average(findings: Iterable[Finding], metric: str) -> Found | None:
    """Return mean and spread over the seeds; each seed is the mean over all label sets of its kind of noise.

    A seed of which a label set is missing does not count.

    >>> cell = PaperCell("cifar10n", "random", "sop+", "Uniform", 0.2)
    >>> some = [Finding(cell, f"random{k}", 0, {"test_acc": 80.0 + k}) for k in (1, 2, 3)]
    >>> average([*some, Finding(cell, "random1", 1, {"test_acc": 99.0})], "test_acc")
    Found(mean=82.0, std=None, seeds=1)
    """
    by_seed: dict[int, dict[str, float]] = {}
    wanted: set[str] = set()
    for finding in findings:
        wanted = set(SOURCES[finding.cell.dataset].labels[finding.cell.noise])
        if metric in finding.numbers:
            by_seed.setdefault(finding.seed, {})[finding.labels] = finding.numbers[metric]
    whole = [fmean(values.values()) for values in by_seed.values() if set(values) == wanted]
    if not whole:
        return None
    return Found(fmean(whole), stdev(whole) if len(whole) > 1 else None, len(whole))


def printed(recipe: Recipe, cell: PaperCell, metric: str) -> Published | None:
    """Return what the paper prints for a cell of a recipe, if it prints it anywhere.

    >>> from prune4rel.recipes.catalogue import get
    >>> printed(get("fig4"), PaperCell("cifar100n", "noisy", "sop+", "Prune4ReL_B (tau=0.95)", 0.2), "test_acc")
    Published(mean=52.9, std=0.8)
    """
    if recipe.printed is None or cell.method in OURS:
        return None
    method = recipe.as_printed.get(cell.method) if recipe.as_printed else cell.method
    if method is None:
        return None
    there = PaperCell(cell.dataset, cell.noise, cell.learner, method, cell.ratio)
    return published(recipe.printed).get((there, metric))


def agreement(blocks: Iterable[Comparison]) -> str:
    """Sum up in a sentence how many orders agree.

    >>> agreement([])
    'There is no order to compare yet.'
    """
    orders = [order for order in (block.order for block in blocks) if order.pairs]
    if not orders:
        return "There is no order to compare yet."
    pairs, swapped = sum(order.pairs for order in orders), sum(len(order.swapped) for order in orders)
    same = sum(not order.swapped for order in orders)
    return (
        f"The order of methods agrees with the paper's in {same} of {len(orders)} settings; of {pairs} pairs of "
        f"methods {pairs - swapped} are in the same order."
    )
