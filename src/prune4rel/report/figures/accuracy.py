"""Test accuracy of every method at every ratio."""

from prune4rel.report.charts import Reference
from prune4rel.report.figure import Figure, Looks, Missing, Table
from prune4rel.report.figures.by_ratio import panels_by_ratio
from prune4rel.report.story import Story, groups_of
from prune4rel.report.words import plural


def accuracy(story: Story, looks: Looks) -> Figure | Missing:
    """Draw test accuracy of the last epoch, the mean over seeds with one standard deviation either way."""
    groups = [group for group in groups_of(story.cells) if group.values("test_accuracy")]
    if not groups:
        return Missing("No model was tested in this run.")
    full = None if story.full_training is None else story.full_training.known("test_accuracy")
    seeds = max(len(group.values("test_accuracy")) for group in groups)
    bars = (
        f"Dots are means over {plural(seeds, 'seed')}, bars one standard deviation either way."
        if seeds > 1
        else "One seed each, so there are no error bars: differences of a point or two may be chance."
    )
    rows = tuple(
        (cell.label, cell.learner, cell.ratio, cell.seed, cell.known("test_accuracy"), cell.known("best_accuracy"))
        for group in groups
        for cell in group.cells
    )
    return Figure(
        caption=f"Test accuracy after the last epoch, by the share of the training set that was kept. {bars}",
        panels=panels_by_ratio(
            groups,
            "test_accuracy",
            label="test accuracy",
            looks=looks,
            references=() if full is None else (Reference(full, "all examples"),),
        ),
        table=Table(("method", "learner", "ratio", "seed", "test_accuracy", "best_epoch_accuracy"), rows),
    )
