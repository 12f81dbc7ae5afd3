"""How many wrong labels the subsets hold."""

from dataclasses import replace

from prune4rel.report.charts import Reference
from prune4rel.report.figure import Figure, Looks, Missing, Table
from prune4rel.report.figures.by_ratio import panels_by_ratio
from prune4rel.report.story import Cell, Story, groups_of


def subset_noise(story: Story, looks: Looks) -> Figure | Missing:
    """Draw the share of wrong labels among the picks of every method."""
    groups = [group for group in groups_of(_once_a_selection(story.cells)) if group.values("subset_noise")]
    if not groups:
        return Missing("The true labels are not known, so wrong ones cannot be counted.")
    whole = story.noise
    rows = tuple(
        (cell.label, cell.ratio, cell.seed, cell.size, cell.known("subset_noise"))
        for group in groups
        for cell in group.cells
    )
    return Figure(
        caption="Share of wrong labels among the picks, against that of the whole training set. "
        "Fewer is not always better: a learner can correct the labels whose neighbours it trusts.",
        panels=panels_by_ratio(
            groups,
            "subset_noise",
            label="wrong labels in the subset",
            looks=looks,
            references=() if whole is None else (Reference(whole, "whole set"),),
            zero=True,
            high_first=False,
        ),
        table=Table(("method", "ratio", "seed", "size", "subset_noise"), rows),
    )


def _once_a_selection(cells: tuple[Cell, ...]) -> list[Cell]:
    """Several learners may train on the same picks: they count once."""
    seen: dict[tuple[object, ...], Cell] = {}
    for cell in cells:
        seen.setdefault((cell.label, cell.ratio, cell.seed, cell.subset_noise), replace(cell, learner=""))
    return list(seen.values())
