"""One HTML page that needs nothing but itself."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from numbers import Integral
from pathlib import Path
from typing import Any

from prune4rel._version import __version__
from prune4rel.errors import InputError
from prune4rel.machine import format_bytes
from prune4rel.report.atlas import MOST_POINTS, Atlas, atlas_of, ids_fit
from prune4rel.report.charts import Chart, aligned
from prune4rel.report.draw import Markup, draw
from prune4rel.report.figure import Figure, Looks, Missing, Table, label_looks
from prune4rel.report.figures import SECTIONS, Section
from prune4rel.report.gallery import MOST, gallery_of
from prune4rel.report.palette import PAPER, SERIES, shade, variables
from prune4rel.report.story import Story, names_of
from prune4rel.report.summary import all_numbers, bottom_line, facts_of, results_of, what_was_done
from prune4rel.report.words import count, isolate, percent, plain, ratio, short
from prune4rel.storage import check_writable, to_json, write_whole

WIDTHS = (760, 480, 340)
MOST_ROWS = 120
SHADES = 20


@dataclass(frozen=True)
class Drawn:
    """A panel of a figure in the widths the page may need."""

    title: str
    wide: Markup
    medium: Markup
    narrow: Markup


@dataclass(frozen=True)
class Shown:
    """What one section shows of one story: drawings, or the reason why there are none."""

    key: str
    caption: str = ""
    drawings: tuple[Drawn, ...] = ()
    table: Table | None = None
    reason: str = ""


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
    script = _file("page.js")
    atlases = [atlas_of(story, MOST_POINTS // len(stories)) for story in stories]
    runs = [
        _run(story, name, atlas, MOST // len(stories))
        for story, name, atlas in zip(stories, names, atlases, strict=True)
    ]
    with_ids = ids_fit(stories)
    sections = [(section, _shown(section, stories, looks)) for section in SECTIONS]
    return str(
        _environment()
        .get_template("page.html")
        .render(
            title=names[0] if len(names) == 1 else f"{len(names)} runs: {', '.join(names)}",
            runs=runs,
            several=len(stories) > 1,
            sections=sections,
            left_out=_left_out(sections, runs),
            maps=[
                to_json(atlas.to_page(ids=with_ids)).replace("<", "\\u003c") if isinstance(atlas, Atlas) else None
                for atlas in atlases
            ],
            style=Markup(_file("page.css")),
            colours=_colours(),
            script=Markup(script),
            digest=b64encode(sha256(script.encode()).digest()).decode("ascii"),
            version=__version__,
            most_rows=MOST_ROWS,
        )
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
    gallery = gallery_of(story, max(1, pictures))
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
        "gallery": gallery,
        "gallery_table": None if isinstance(gallery, Missing) else gallery.table(story),
        "memory": [(what, format_bytes(size)) for what, size in story.peak_memory.items()],
    }


def _shown(section: Section, stories: Sequence[Story], looks: Looks) -> list[Shown]:
    made = _side_by_side([section.make(story, looks) for story in stories])
    return [Shown(section.key, reason=one.reason) if isinstance(one, Missing) else _drawn(section, one) for one in made]


def _drawn(section: Section, figure: Figure) -> Shown:
    drawings = []
    for panel in figure.panels:
        about = f"{section.title}{f', {panel.title}' if panel.title else ''}. {figure.caption}"
        drawings.append(Drawn(panel.title, *(draw(panel.chart, width, about) for width in WIDTHS)))
    return Shown(section.key, figure.caption, tuple(drawings), figure.table)


def _side_by_side(made: Sequence[Figure | Missing]) -> list[Figure | Missing]:
    """Give panels that stand beside each other the same axes."""
    figures = [one for one in made if isinstance(one, Figure)]
    if len({len(figure.panels) for figure in figures}) != 1:
        return list(made)
    columns = [aligned([figure.panels[place].chart for figure in figures]) for place in range(len(figures[0].panels))]
    charts = iter(zip(*columns, strict=True))
    return [one if isinstance(one, Missing) else _with_charts(one, next(charts)) for one in made]


def _with_charts(figure: Figure, charts: Sequence[Chart]) -> Figure:
    panels = tuple(replace(panel, chart=chart) for panel, chart in zip(figure.panels, charts, strict=True))
    return replace(figure, panels=panels)


def _left_out(sections: Sequence[tuple[Section, Sequence[Shown]]], runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the sections that no story can fill, by key: title and reasons, each reason once."""
    reasons = {section.key: (section.title, [one.reason for one in shown]) for section, shown in sections}
    for key, title in (("atlas", "Map"), ("gallery", "Gallery")):
        reasons[key] = (title, [run[key].reason if isinstance(run[key], Missing) else "" for run in runs])
    return {key: (title, list(dict.fromkeys(why))) for key, (title, why) in reasons.items() if all(why)}


def _colours() -> Markup:
    """Return the palette as CSS: variables for both modes, classes for series, and the steps of the heat map."""

    def block(mode: str) -> str:
        steps = [(f"--s{step}", shade(step / SHADES, mode)) for step in range(SHADES + 1)]
        return ";".join(f"{name}:{value}" for name, value in [*variables(mode), *steps])

    places = range(len(SERIES["light"]))
    series = "".join(f".c{place}{{--tint:var(--c{place})}}" for place in places)
    steps = "".join(f".s{step}{{fill:var(--s{step})}}" for step in range(SHADES + 1))
    light, dark = block("light"), block("dark")
    return Markup(
        f":root{{color-scheme:light;{light}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}"
        f"@media print{{:root:root:root{{color-scheme:light;{light};--paper:#ffffff}}}}"
        f"{series}{steps}"
    )


def _file(name: str) -> str:
    return (files("prune4rel.report") / "templates" / name).read_text(encoding="utf-8")


def _csv_link(table: Table) -> str:
    return f"data:text/csv;charset=utf-8;base64,{b64encode(table.to_csv().encode()).decode('ascii')}"


def _environment() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only for reports
    except ImportError:
        raise InputError("a report needs Jinja2; install it with: pip install 'prune4rel[report]'") from None
    environment = Environment(
        loader=PackageLoader("prune4rel.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": count,
        "percent": percent,
        "ratio": ratio,
        "isolate": isolate,
        "plain": plain,
        "csv": _csv_link,
        "number": lambda value: "" if value is None else value if isinstance(value, str) else _number(value),
    }
    environment.tests["missing"] = lambda value: isinstance(value, Missing)
    environment.globals["paper"] = PAPER
    return environment


def _number(value: float) -> str:
    return str(value) if isinstance(value, Integral) else short(float(f"{value:.4g}"))
