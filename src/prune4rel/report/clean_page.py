"""The page about labels: the worst first, by class and by pair of classes, copies, and what to do next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.labels import Labels
from prune4rel.report.charts import (
    DataTable,
    Figure,
    Lines,
    Matrix,
    Missing,
    Panel,
    Point,
    Series,
    Square,
    number_axis,
    share_axis,
)
from prune4rel.report.label_figures import busiest, wilson
from prune4rel.report.page import Shown, render_page, shown
from prune4rel.report.pictures import Gallery, cards_of, picture_uri
from prune4rel.report.story import Thumbnails
from prune4rel.report.words import BASELINE, count, isolate, percent, plural

WORST = 96
PER_PAIR = 12
MOST_PAIRS = 40
MOST_GROUPS = 40
MOST_MEMBERS = 6
LONELY = 24
BINS = 10
FEWEST_IN_A_BIN = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelStory:
    """Everything there is to tell about a table of labels. Parts that are None leave their section out.

    Parameters
    ----------
    title
        What the labels are of.
    labels
        The table.
    interval
        Between which shares of wrong labels the truth lies, nine times in ten.
    matrix_error
        (C, C) standard errors of ``labels.noise_matrix``.
    clean_labels
        (n,) true labels, where they are known.
    groups
        Copies: rows of the training split, rows of the test split, ``"exact"`` or ``"near"``, whether their labels
        contradict each other; those that do first.
    n_groups, in_test
        How many groups there are, and how many training examples lie in the test split, too.
    unlike
        (k,) rows unlike all others, the loneliest first.
    annotators
        Name, votes and estimated share of right votes of everyone who voted.
    thumbnails, texts
        What to show of an example: ``thumbnails(rows)`` returns (k, h, w, 3) uint8 pictures; n texts.
    test_thumbnails, test_texts
        The same of the test split.
    commands
        What to do next, and the command that does it.
    facts, notes
        How it was made, by name; sentences on what looked odd.

    Examples
    --------
    >>> labels = Labels(
    ...     given_label=[0, 1],
    ...     predicted_label=[1, 1],
    ...     label_score=[0.1, 0.9],
    ...     is_label_issue=[True, False],
    ...     confidence=[0.9, 0.9],
    ...     class_names=("<cat>", "dog"),
    ... )
    >>> "&lt;cat&gt;" in render_labels(LabelStory(title="pets", labels=labels))
    True
    """

    title: str
    labels: Labels
    interval: tuple[float, float] | None = None
    matrix_error: NDArray[np.float64] | None = None
    clean_labels: NDArray[np.int64] | None = None
    groups: Sequence[tuple[Sequence[int], Sequence[int], str, bool]] = ()
    n_groups: int = 0
    in_test: int = 0
    unlike: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    annotators: Sequence[tuple[str, int, float]] = ()
    thumbnails: Thumbnails | None = None
    texts: Sequence[str] | None = None
    test_thumbnails: Thumbnails | None = None
    test_texts: Sequence[str] | None = None
    commands: Sequence[tuple[str, str]] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Copy:
    """One member of a group of copies, as it is shown."""

    name: str
    label: str
    split: str
    picture: str | None
    text: str | None


def render_labels(story: LabelStory) -> str:
    """Make the page; returns the whole HTML document."""
    labels = story.labels
    issues = np.flatnonzero(labels.is_label_issue)
    return render_page(
        "clean.html",
        title=story.title,
        story=story,
        n=len(labels),
        n_classes=len(labels.class_names),
        n_issues=len(issues),
        interval=story.interval,
        decided=_decided(labels),
        worst=_worst(story, issues),
        pairs=_pairs(labels, issues),
        classes=_classes(labels),
        matrix=_shown("What is given as what", _matrix(story)),
        reliability=_shown("How sure, and how often right", _reliability(story)),
        groups=[(_copies(story, group), group[2], group[3]) for group in story.groups[:MOST_GROUPS]],
        lonely=_lonely(story),
        annotators=DataTable(
            ("annotator", "votes", "estimated_share_right"),
            tuple((name, votes, share) for name, votes, share in story.annotators),
        ),
    )


def _shown(title: str, figure: Figure | Missing) -> Shown:
    return shown(title, [figure])[0]


def _decided(labels: Labels) -> dict[str, int]:
    """Count what people decided."""
    verified = np.zeros(len(labels), dtype=np.bool_) if labels.verified is None else labels.verified
    removed = 0 if labels.removed is None else int(labels.removed.sum())
    if not verified.any() and not removed:
        return {}
    kept = int((verified & (labels.corrected_label == labels.given_label)).sum())
    left = int((labels.is_label_issue & ~verified & (~labels.removed if labels.removed is not None else True)).sum())
    return {"given label kept": kept, "label changed": int(verified.sum()) - kept, "removed": removed, "left": left}


def _worst(story: LabelStory, issues: NDArray[np.int64]) -> Gallery | None:
    """Choose the issues with the lowest scores, and of every pair of classes its worst."""
    if not len(issues):
        return None
    labels = story.labels
    order = issues[np.argsort(labels.label_score[issues], kind="stable")]
    pair = labels.given_label[order] * len(labels.class_names) + labels.predicted_label[order]
    turn = np.empty(len(order), dtype=np.int64)
    by_pair = np.argsort(pair, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(pair[by_pair]) != 0])
    lengths = np.diff(np.r_[starts, len(pair)])
    turn[by_pair] = np.arange(len(pair)) - np.repeat(starts, lengths)
    rank = np.arange(len(order))
    chosen = order[(rank < WORST // 2) | ((turn < PER_PAIR) & (rank < 20 * WORST))]
    if len(chosen) > 2 * WORST:
        keep = np.argsort(np.where(rank < WORST // 2, -1, turn), kind="stable")[: 2 * WORST]
        chosen = order[np.sort(keep)]
    gallery = cards_of(
        chosen,
        labels.class_names,
        given=labels.given_label,
        corrected=labels.predicted_label,
        confidence=labels.confidence,
        true=story.clean_labels,
        ids=labels.ids,
        thumbnails=story.thumbnails,
        texts=story.texts,
        corrections=len(issues),
    )
    about = (
        f"{count(len(gallery.cards))} of {plural(len(issues), 'suspicious label')}, the worst first, and the worst of "
        "every pair of classes: as given, what it is believed to be, and how likely that is."
    )
    return replace(gallery, about=f"{about} {gallery.trouble}".rstrip())


def _pairs(labels: Labels, issues: NDArray[np.int64]) -> DataTable:
    C = len(labels.class_names)
    issues = issues[labels.predicted_label[issues] != labels.given_label[issues]]
    times = np.bincount(labels.given_label[issues] * C + labels.predicted_label[issues], minlength=1)
    sizes = np.bincount(labels.given_label, minlength=C)
    order = [int(pair) for pair in np.argsort(-times, kind="stable")[:MOST_PAIRS] if times[pair]]
    return DataTable(
        ("given", "believed_to_be", "labels", "share_of_the_given_class"),
        tuple(
            (labels.class_names[p // C], labels.class_names[p % C], int(times[p]), percent(times[p] / sizes[p // C]))
            for p in order
        ),
    )


def _classes(labels: Labels) -> DataTable:
    C = len(labels.class_names)
    given = np.bincount(labels.given_label, minlength=C)
    flagged = np.bincount(labels.given_label[labels.is_label_issue], minlength=C)
    after = np.bincount(labels.corrected_label, minlength=C)
    mean = np.bincount(labels.given_label, labels.label_score, minlength=C) / np.maximum(1, given)
    order = np.argsort(-flagged / np.maximum(1, given), kind="stable")
    return DataTable(
        ("class", "given", "suspicious", "share_suspicious", "mean_score", "after_correction"),
        tuple(
            (
                labels.class_names[c],
                int(given[c]),
                int(flagged[c]),
                percent(flagged[c] / given[c]) if given[c] else "",
                float(round(mean[c], 3)) if given[c] else None,
                int(after[c]),
            )
            for c in order
        ),
    )


def _matrix(story: LabelStory) -> Figure | Missing:
    """Draw the estimated share of each true class that was given each label."""
    labels = story.labels
    matrix = labels.noise_matrix
    if matrix is None:
        return Missing("No matrix was estimated.")
    names, off = labels.class_names, matrix * (1 - np.eye(len(matrix)))
    drawn = busiest(off)
    strongest = float(off[np.ix_(drawn, drawn)].max()) or 1.0
    error = story.matrix_error

    def square(true: int, given: int) -> Square:
        share = float(matrix[true, given])
        spread = "" if error is None else f" ± {percent(float(error[true, given]))}"
        words = "are given as it" if true == given else f"are given as {isolate(names[given])}"
        tip = f"{percent(share)}{spread} of {isolate(names[true])} {words}"
        text = "" if share < 0.005 else f"{100 * share:.0f}"
        return Square(None if true == given else share / strongest, text, tip)

    chart = Matrix(
        "true class",
        "given label",
        tuple(names[c] for c in drawn),
        tuple(tuple(square(int(a), int(b)) for b in drawn) for a in drawn),
    )
    some = "" if len(drawn) == len(matrix) else f" The {len(drawn)} classes that are mistaken most are drawn."
    rows = tuple(
        (names[a], names[b], float(matrix[a, b]), None if error is None else float(error[a, b]))
        for a, b in zip(*np.nonzero(matrix >= 5e-5), strict=True)
    )
    return Figure(
        f"Estimated share, in per cent, of each true class (rows) that was given each label (columns).{some}",
        (Panel("", chart),),
        DataTable(("true", "given", "share", "standard_error"), rows),
    )


def _reliability(story: LabelStory) -> Figure | Missing:
    """Draw how often predictions of a confidence agree with the given label, and are true where that is known."""
    labels = story.labels
    judged = np.asarray(labels.source) != "nobody"
    judged &= True if labels.verified is None else ~labels.verified
    bins = np.minimum((labels.confidence * BINS).astype(np.int64), BINS - 1)
    series = [("given label agrees", (BASELINE, "square"), labels.given_label)]
    if story.clean_labels is not None:
        series.append(("right", (0, "circle"), story.clean_labels))
    drawn, rows = [], []
    for name, symbol, against in series:
        points = []
        for place in range(BINS):
            here = judged & (bins == place)
            if (size := int(here.sum())) < FEWEST_IN_A_BIN:
                continue
            share = float((labels.predicted_label[here] == against[here]).mean())
            low, high = wilson(share, size)
            mean = float(labels.confidence[here].mean())
            points.append(Point(mean, share, low, high, f"{percent(share)} of {count(size)} at {percent(mean)}"))
            rows.append((name, mean, share, size))
        drawn.append(Series(name, symbol, tuple(points), dashed=name != "right"))
    if not rows:
        return Missing("There are too few labels.")
    both = " and are right" if story.clean_labels is not None else ""
    return Figure(
        f"Predictions by how sure they are: how often they agree with the given label{both}. Sure predictions that "
        "disagree with the given label are the suspicious ones. Bars are 95% intervals.",
        (
            Panel(
                "",
                Lines(
                    number_axis("confidence", [0.0, 1.0]),
                    share_axis("share of predictions", [0.0, 1.0]),
                    tuple(drawn),
                    (),
                ),
            ),
        ),
        DataTable(("against", "mean_confidence", "share", "examples"), tuple(rows)),
    )


def _copies(story: LabelStory, group: tuple[Sequence[int], Sequence[int], str, bool]) -> list[Copy]:
    labels = story.labels
    train, test = list(group[0])[:MOST_MEMBERS], list(group[1])[:MOST_MEMBERS]
    shots = _shots(story.thumbnails, train) + _shots(story.test_thumbnails, test)
    members = [("train", row, story.texts) for row in train] + [("test", row, story.test_texts) for row in test]
    found = []
    for (split, row, texts), shot in zip(members, shots, strict=True):
        own = split == "train"
        name = f"#{row}" if labels.ids is None or not own else str(labels.ids[row])
        label = labels.class_names[labels.given_label[row]] if own else ""
        found.append(Copy(name, label, split, shot, None if texts is None else texts[row]))
    return found


def _shots(thumbnails: Thumbnails | None, rows: list[int]) -> list[str | None]:
    if thumbnails is None or not rows:
        return [None] * len(rows)
    try:
        return [picture_uri(one) for one in np.asarray(thumbnails(np.array(rows)))]
    except (OSError, InputError):
        return [None] * len(rows)


def _lonely(story: LabelStory) -> Gallery | None:
    if not len(story.unlike):
        return None
    labels = story.labels
    gallery = cards_of(
        story.unlike[:LONELY],
        labels.class_names,
        given=labels.given_label,
        corrected=labels.given_label,
        confidence=labels.label_score,
        ids=labels.ids,
        thumbnails=story.thumbnails,
        texts=story.texts,
        corrections=len(story.unlike),
    )
    about = (
        f"{count(len(gallery.cards))} of {plural(len(story.unlike), 'example')}, the loneliest first, with their label."
    )
    return replace(gallery, about=f"{about} {gallery.trouble}".rstrip())
