"""What was done and the bottom line, in two sentences; and the table of all results."""

from collections.abc import Sequence
from dataclasses import dataclass

from prune4rel.machine import format_seconds
from prune4rel.report.charts import DataTable, Value
from prune4rel.report.story import Cell, Group, Story, groups_of, labels_of, main_setting
from prune4rel.report.words import BASELINES, count, isolate, listed, percent, plural, plus_minus, ratio

CLOSE = "within the spread of the seeds"
SHARES = ("test_accuracy", "best_accuracy", "relabel_accuracy", "wrong_label_ap", "self_correct", "subset_noise")
COLUMNS = (
    ("test_accuracy", "Test accuracy", "after the last epoch"),
    (
        "best_accuracy",
        "Best epoch",
        "highest test accuracy of any epoch; not the result, since it was chosen on test data",
    ),
    ("relabel_accuracy", "Re-labeled right", "share of the whole training set whose true label the model predicts"),
    (
        "wrong_label_ap",
        "Wrong labels found",
        "average precision of finding them in the whole training set, at best 100",
    ),
    ("self_correct", "Self-corrected", "share of the picks with a wrong label whose true label the model predicts"),
    ("subset_noise", "Wrong labels", "share of the picks whose given label is wrong"),
    ("labels_changed", "Labels changed", "picks whose given label the learner replaced"),
    ("steps", "Steps", "of the optimiser in all, warm-up and looking at examples included"),
    ("objective", "Objective", "value of the method's own objective, not comparable between methods"),
)


@dataclass(frozen=True)
class ResultCell:
    """A number of the table as text, and in full for sorting; `main` marks the result."""

    text: str
    value: float | None
    main: bool


@dataclass(frozen=True)
class ResultRow:
    """One group of seeds."""

    label: str
    learner: str
    ratio: float | None
    size: int
    seeds: int
    cells: tuple[ResultCell, ...]
    best: bool
    full: bool


def what_was_done(story: Story) -> str:
    """Say in one sentence what was picked from what, and trained how."""
    noise = "" if story.noise is None else f", {percent(story.noise)} of whose labels are wrong"
    data = (
        f"{isolate(story.dataset)} ({plural(story.n, 'example')} in {plural(len(story.class_names), 'class')}{noise})"
    )
    cells = story.cells
    if not cells:
        did = "trained on everything of" if story.everything else "looked at"
        return f"This run {did} {data}{'.' if story.everything else ' and picked nothing yet.'}"
    methods = labels_of(cells)
    who = isolate(methods[0]) if len(methods) == 1 else f"{len(methods)} methods"
    ratios = sorted({cell.ratio for cell in cells})
    much = ratio(ratios[0]) if len(ratios) == 1 else f"{ratio(ratios[0])} to {ratio(ratios[-1])}"
    picked = f"From {data}, {who} picked {much} of the examples"
    if not any(cell.known("test_accuracy") is not None for cell in cells):
        return f"{picked}."
    learners = [isolate(name) for name in dict.fromkeys(cell.learner for cell in cells)]
    seeds = max(len(group.cells) for group in groups_of(cells))
    each = "the subset" if len(cells) == 1 else "each subset"
    many = f", with {plural(seeds, 'seed')}" if seeds > 1 else ""
    were = "was" if len(learners) == 1 else "were"
    same = "" if story.steps is None else f" Everybody had {count(story.steps)} steps in all, warm-up included."
    return f"{picked}, and {listed(learners)} {were} trained on {each}{many}.{same}"


def bottom_line(story: Story) -> str:
    """Say in one sentence what came out."""
    if (line := _with_equal_steps(story)) is not None:
        return line
    groups = _contest(story)
    if not groups:
        return _without_training(story)
    order = sorted(groups, key=lambda group: -(group.mean("test_accuracy") or 0.0))
    best = order[0]
    score = f"{plus_minus(best.mean('test_accuracy'), best.spread('test_accuracy'))}%"
    where = f"Keeping {ratio(best.ratio)}"
    line = (
        f"{where}, {isolate(best.label)} reaches {score} test accuracy"
        if len(order) == 1
        else f"{where}, {isolate(best.label)} is the most accurate with {score}{_ahead(order)}"
    )
    full = None if story.full_training is None else story.full_training.known("test_accuracy")
    if full is not None:
        line += f"; training on all examples gives {percent(full)}"
    return line + "."


def _with_equal_steps(story: Story) -> str | None:
    """Say who made most of the same number of steps, and how far ahead of the best of the others that is."""
    tested = [
        [group for group in groups_of(cells) if group.values("test_accuracy")]
        for cells in (story.cells, story.everything)
    ]
    if story.steps is None or not all(tested):
        return None
    part, whole = (max(groups, key=lambda group: group.mean("test_accuracy") or 0.0) for groups in tested)
    each = f"With {count(story.steps)} steps each"
    subset = f"{ratio(part.ratio)} by {isolate(part.label)}"
    if (whole.mean("test_accuracy") or 0.0) >= (part.mean("test_accuracy") or 0.0):
        line = f"{each}, {isolate(whole.learner)} on everything is ahead with {_score(whole)}"
        return f"{line}; the best subset is {subset}, with {_score(part)}."
    line = f"{each}, {isolate(part.learner)} on {subset} is ahead with {_score(part)}"
    return f"{line}; training on everything gives {_score(whole)}."


def _score(group: Group) -> str:
    return f"{plus_minus(group.mean('test_accuracy'), group.spread('test_accuracy'))}%"


def _contest(story: Story) -> list[Group]:
    """Return groups that can be compared fairly: one learner, one ratio, the spotlight's if it was tested."""
    groups = [group for group in groups_of(story.cells) if group.values("test_accuracy")]
    if not groups:
        return []
    smallest_first = sorted((group.cells[0] for group in groups), key=lambda cell: cell.ratio)
    main = main_setting(story, smallest_first)
    return [group for group in groups if (group.learner, group.ratio) == main]


def _ahead(order: Sequence[Group]) -> str:
    best, second = order[0], order[1]
    base = next((group for group in order[1:] if group.label in BASELINES), None)
    line = f", {_points(best, second, ', the runner-up' if len(order) > 2 else '')}"
    return line if base is None or base is second else f"{line}, and {_points(best, base, '')}"


def _points(best: Group, other: Group, who: str) -> str:
    lead = (best.mean("test_accuracy") or 0.0) - (other.mean("test_accuracy") or 0.0)
    spreads = [group.spread("test_accuracy") for group in (best, other)]
    noise = sum(spread**2 for spread in spreads if spread is not None) ** 0.5
    close = f" ({CLOSE})" if all(spread is not None for spread in spreads) and lead <= noise else ""
    return f"{100 * lead:.1f} points above {isolate(other.label)}{who}{close}"


def _without_training(story: Story) -> str:
    cell = story.spotlight or (story.cells[0] if story.cells else None)
    if cell is None:
        return "There is nothing to compare."
    if cell.known("subset_noise") is not None and story.noise is not None:
        return (
            f"Of the {count(cell.size)} picks of {isolate(cell.label)}, {percent(cell.subset_noise)} have a wrong "
            f"label, against {percent(story.noise)} of the whole set; no model was tested on them."
        )
    return f"{isolate(cell.label)} picked {plural(cell.size, 'example')}; no model was tested on them."


def facts_of(story: Story) -> list[tuple[str, str, str]]:
    """Return the few numbers to see first: value, name, and what to hold it against."""
    cell = story.spotlight
    if cell is None:
        return []
    groups = [
        group
        for group in groups_of(story.cells)
        if (group.label, group.learner, group.ratio) == (cell.label, cell.learner, cell.ratio)
    ]
    group = groups[0] if groups else Group(cell.label, cell.learner, cell.ratio, (cell,))
    facts = [(count(cell.size), "examples kept", f"{ratio(cell.ratio)} of {count(story.n)}")]
    mean = group.mean("test_accuracy")
    if mean is not None:
        full = None if story.full_training is None else story.full_training.known("test_accuracy")
        beside = f"{percent(full)} with all examples" if full is not None else f"with {isolate(cell.learner)}"
        facts.insert(0, (f"{plus_minus(mean, group.spread('test_accuracy'))}%", "test accuracy", beside))
    noise = group.mean("subset_noise")
    if noise is not None and story.noise is not None:
        facts.append((percent(noise), "wrong labels kept", f"{percent(story.noise)} in the whole set"))
    mended = group.mean("relabel_accuracy")
    if mended is not None:
        beside = "" if story.noise is None else f"{percent(1 - story.noise)} as given"
        facts.append((percent(mended), "of all labels right after training", beside))
    seconds = cell.seconds.get("selection")
    if seconds is not None and len(facts) < 5:
        facts.append((format_seconds(seconds), "to select", ""))
    return facts


def results_of(story: Story) -> tuple[list[tuple[str, str]], list[ResultRow]]:
    """Return the columns that have numbers (title, meaning), and one row a group."""
    whole = [*story.everything] or [*filter(None, (story.full_training,))]
    groups = [*groups_of(story.cells), *groups_of(whole)]
    used = [column for column in COLUMNS if any(group.values(column[0]) for group in groups)]
    best = {
        key: max(group.mean("test_accuracy") or 0.0 for group in groups_of(story.cells) if _place(group) == key)
        for key in {_place(group) for group in groups_of(story.cells)}
    }
    rows = []
    for group in groups:
        full = any(cell is group.cells[0] for cell in whole)
        mean = group.mean("test_accuracy")
        rows.append(
            ResultRow(
                group.label,
                group.learner,
                group.ratio,
                group.cells[0].size,
                len(group.cells),
                tuple(_number(group, name) for name, *_ in used),
                best=not full and mean is not None and len(groups) > 1 and mean == best[_place(group)],
                full=full,
            )
        )
    return [(title, about) for _, title, about in used], rows


def _place(group: Group) -> tuple[str, float]:
    return group.learner, group.ratio


def _number(group: Group, name: str) -> ResultCell:
    mean = group.mean(name)
    if name in SHARES:
        return ResultCell(plus_minus(mean, group.spread(name)), mean, main=name == "test_accuracy")
    return ResultCell("\u2014" if mean is None else count(mean), mean, main=False)


def all_numbers(story: Story) -> DataTable:
    """Return every number of every cell."""
    every = [*story.cells, *(story.everything or filter(None, (story.full_training,)))]
    steps = list(dict.fromkeys(step for cell in every for step in cell.seconds))
    names = tuple(name for name, *_ in COLUMNS)
    rows = tuple(_row(cell, names, steps) for cell in every)
    columns = ("method", "label", "learner", "ratio", "seed", "size", *names, *(f"{step}_seconds" for step in steps))
    return DataTable(columns, rows)


def _row(cell: Cell, names: Sequence[str], steps: Sequence[str]) -> tuple[Value, ...]:
    return (
        cell.method,
        cell.label,
        cell.learner,
        cell.ratio,
        cell.seed,
        cell.size,
        *(cell.known(name) for name in names),
        *(cell.seconds.get(step) for step in steps),
    )
