"""Everybody with the same number of steps, as tables: one a data set, what was trained on everything among them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from prune4rel.atomic import csv_text
from prune4rel.recipes.cells import ACCURACY, FOUND, IN_ALL, RIGHT, SOURCES, STEPS, TITLES, PaperCell
from prune4rel.recipes.compare import Found, average
from prune4rel.recipes.harvest import Finding
from prune4rel.steps.select import EVERYTHING

METRICS = (ACCURACY, RIGHT, FOUND, STEPS, IN_ALL)
HEADER = (
    "trained on",
    "learner",
    TITLES[ACCURACY],
    "beside SOP+ on everything",
    *(TITLES[name] for name in METRICS[1:]),
    "seeds",
)
NOT_RUN = "not run"


@dataclass(frozen=True)
class BudgetRow:
    """One contender.

    Parameters
    ----------
    cell
        Which.
    numbers
        Mean and spread over the seeds, by metric; those that are not known are left out.
    lead
        Its accuracy minus that of SOP+ on everything, mean over the seeds that both have; None where there are none.
    """

    cell: PaperCell
    numbers: dict[str, Found]
    lead: Found | None

    @property
    def row(self) -> tuple[str, ...]:
        """It as text, in the columns of `HEADER`."""
        cell, accuracy = self.cell, self.numbers.get(ACCURACY)
        name = cell.method if cell.method == EVERYTHING else f"{100 * cell.ratio:g} % by {cell.method}"
        if accuracy is None:
            return name, cell.learner, NOT_RUN, *[""] * (len(HEADER) - 3)
        said = [_text(self.numbers.get(metric), metric) for metric in METRICS]
        return (
            name,
            cell.learner,
            said[0],
            "" if self.lead is None else _signed(self.lead),
            *said[1:],
            str(accuracy.seeds),
        )


@dataclass(frozen=True)
class BudgetTable:
    """All contenders on one data set."""

    dataset: str
    noise: str
    entries: tuple[BudgetRow, ...]

    @property
    def title(self) -> str:
        """What it is about."""
        return f"{SOURCES[self.dataset].title} {self.noise}"

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """It as text, in the columns of `HEADER`."""
        return [entry.row for entry in self.entries]


def tables_of(cells: Sequence[PaperCell], findings: Iterable[Finding]) -> tuple[BudgetTable, ...]:
    """Put what was found into a table a data set.

    Parameters
    ----------
    cells
        The contenders to show; those without findings are shown as not run.
    findings
        What was found.

    Examples
    --------
    >>> whole, part = PaperCell("cifar10n", "worst", "sop+", "everything", 1.0), PaperCell(
    ...     "cifar10n", "worst", "sop+", "uniform", 0.2)
    >>> found = [Finding(whole, "worst", seed, {ACCURACY: 90.0 + seed}) for seed in range(2)]
    >>> found += [Finding(part, "worst", 1, {ACCURACY: 82.5})]
    >>> (table,) = tables_of([whole, part], found)
    >>> [(row[0], row[2], row[3]) for row in table.rows]
    [('everything', '90.5 ± 0.7', ''), ('20 % by uniform', '82.5', '-8.5')]
    """
    by_cell: dict[PaperCell, list[Finding]] = {}
    for finding in findings:
        by_cell.setdefault(finding.cell, []).append(finding)
    tables = []
    for dataset, noise in dict.fromkeys((cell.dataset, cell.noise) for cell in cells):
        usual = by_cell.get(PaperCell(dataset, noise, "sop+", EVERYTHING, 1.0), [])
        own = [cell for cell in cells if (cell.dataset, cell.noise) == (dataset, noise)]
        tables.append(BudgetTable(dataset, noise, tuple(_entry(cell, by_cell.get(cell, []), usual) for cell in own)))
    return tuple(tables)


def _entry(cell: PaperCell, found: Sequence[Finding], usual: Sequence[Finding]) -> BudgetRow:
    numbers = {metric: mean for metric in METRICS if (mean := average(found, metric)) is not None}
    at = {(one.labels, one.seed): one.numbers[ACCURACY] for one in usual if ACCURACY in one.numbers}
    leads = [
        one.numbers[ACCURACY] - at[one.labels, one.seed]
        for one in found
        if ACCURACY in one.numbers and (one.labels, one.seed) in at
    ]
    if not leads or (cell.method, cell.learner) == (EVERYTHING, "sop+"):
        return BudgetRow(cell, numbers, None)
    return BudgetRow(cell, numbers, Found(fmean(leads), stdev(leads) if len(leads) > 1 else None, len(leads)))


def _signed(lead: Found) -> str:
    return f"{lead.mean:+.1f}" + ("" if lead.std is None else f" ± {lead.std:.1f}")


def _text(number: Found | None, metric: str) -> str:
    if number is None:
        return "-"
    if metric in (STEPS, IN_ALL):
        return f"{number.mean:,.0f}"
    digits = 3 if metric == FOUND else 1
    spread = "" if number.std is None else f" ± {number.std:.{digits}f}"
    return f"{number.mean:.{digits}f}{spread}"


def tables_to_csv(tables: Iterable[BudgetTable], *, smoke: bool = False) -> str:
    """Write every mean, a line each; what was not run is left out."""
    rows = []
    for table in tables:
        for entry in table.entries:
            cell = entry.cell
            what = (cell.dataset, cell.noise, cell.learner, cell.method, cell.ratio)
            told = {**entry.numbers, **({} if entry.lead is None else {"lead": entry.lead})}
            for metric, number in told.items():
                rows.append((*what, metric, number.mean, number.std, number.seeds, smoke))
    header = ("dataset", "noise", "learner", "method", "ratio", "metric", "mean", "std", "seeds", "smoke")
    return csv_text(header, rows)
