"""The page about one or several runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prune4rel.errors import InputError
from prune4rel.machine import format_bytes
from prune4rel.report.atlas import MOST_POINTS, Atlas, atlas_of, ids_fit
from prune4rel.report.charts import Figure, Looks, Missing
from prune4rel.report.label_figures import class_balance, confusion, relabeling
from prune4rel.report.method_figures import accuracy, cost, coverage, curves, subset_noise
from prune4rel.report.page import Shown, render_page, shown
from prune4rel.report.pictures import MOST, gallery_of
from prune4rel.report.story import Story, label_looks, names_of
from prune4rel.report.summary import all_numbers, bottom_line, facts_of, results_of, what_was_done
from prune4rel.report.words import plain
from prune4rel.storage import check_writable, write_whole


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


def render(stories: Sequence[Story]) -> str:
    """Make the page.

    Parameters
    ----------
    stories
        One or several runs; they are shown side by side, in this order.

    Returns
    -------
    The whole HTML document.

    Examples
    --------
    >>> import numpy as np
    >>> from prune4rel.report import Cell, Story, render
    >>> picks = np.array([0, 3])
    >>> cell = Cell(method="uniform", label="uniform", learner="sop+", ratio=0.5, seed=0, size=2, indices=picks)
    >>> story = Story(
    ...     title="<tiny>", dataset="four", n=4, class_names=("cat", "dog"), labels=np.array([0, 1, 0, 1]),
    ...     class_counts=(2, 2), cells=(cell,),
    ... )
    >>> "<h1>&lt;tiny&gt;</h1>" in render([story])
    True
    """
    if not stories:
        raise InputError("a report needs at least one run")
    looks = label_looks(stories)
    names = [plain(name) for name in names_of(stories)]
    atlases = [atlas_of(story, MOST_POINTS // len(stories)) for story in stories]
    runs = [
        _run(story, name, atlas, MOST // len(stories))
        for story, name, atlas in zip(stories, names, atlases, strict=True)
    ]
    with_ids = ids_fit(stories)
    sections = [
        (section, shown(section.title, [section.make(story, looks) for story in stories])) for section in SECTIONS
    ]
    return render_page(
        "run.html",
        title=names[0] if len(names) == 1 else f"{len(names)} runs: {', '.join(names)}",
        runs=runs,
        several=len(stories) > 1,
        sections=sections,
        left_out=_left_out(sections, runs),
        maps=[atlas.to_page(ids=with_ids) if isinstance(atlas, Atlas) else None for atlas in atlases],
    )


def write_report(stories: Sequence[Story], path: str | Path, *, force: bool = False) -> None:
    """Write the page, whole or not at all.

    Parameters
    ----------
    stories
        See `render`.
    path
        Where to; nothing is replaced unless `force` is set.
    """
    check_writable(path, force=force)
    text = render(stories)
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"), force=force)


def _run(story: Story, name: str, atlas: Atlas | Missing, pictures: int) -> dict[str, Any]:
    columns, rows = results_of(story)
    return {
        "name": name,
        "story": story,
        "done": what_was_done(story),
        "line": bottom_line(story),
        "facts": facts_of(story),
        "columns": columns,
        "rows": rows,
        "learners": list(dict.fromkeys(row.learner for row in rows)),
        "seeds": sorted({row.seeds for row in rows if not row.full}) or [1],
        "numbers": all_numbers(story),
        "atlas": atlas,
        "gallery": gallery_of(story, max(1, pictures)),
        "memory": [(what, format_bytes(size)) for what, size in story.peak_memory.items()],
    }


def _left_out(sections: Sequence[tuple[Section, Sequence[Shown]]], runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the sections that no story can fill, by key: title and reasons, each reason once."""
    reasons = {section.key: (section.title, [one.reason for one in made]) for section, made in sections}
    for key, title in (("atlas", "Map"), ("gallery", "Gallery")):
        reasons[key] = (title, [run[key].reason if isinstance(run[key], Missing) else "" for run in runs])
    return {key: (title, list(dict.fromkeys(why))) for key, (title, why) in reasons.items() if all(why)}
