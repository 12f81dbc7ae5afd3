"""The figures, one file each: a pure function from a story to charts, a caption and the numbers behind them."""

from collections.abc import Callable
from dataclasses import dataclass

from prune4rel.report.figure import Figure, Looks, Missing
from prune4rel.report.figures.accuracy import accuracy
from prune4rel.report.figures.balance import class_balance
from prune4rel.report.figures.confusion import confusion
from prune4rel.report.figures.cost import cost
from prune4rel.report.figures.coverage import coverage
from prune4rel.report.figures.curves import curves
from prune4rel.report.figures.noise import subset_noise
from prune4rel.report.figures.relabeling import relabeling
from prune4rel.report.story import Story


@dataclass(frozen=True)
class Section:
    """A part of the page: its anchor, its title, and what draws it."""

    key: str
    title: str
    make: Callable[[Story, Looks], Figure | Missing]


SECTIONS = (
    Section("accuracy", "Accuracy", accuracy),
    Section("noise", "Wrong labels in the subset", subset_noise),
    Section("coverage", "Coverage, pick by pick", coverage),
    Section("balance", "Classes before and after", class_balance),
    Section("relabeling", "Where labels are mended", relabeling),
    Section("confusion", "What was corrected to what", confusion),
    Section("curves", "How training went", curves),
    Section("cost", "Time and memory", cost),
)

__all__ = ["SECTIONS", "Section"]
