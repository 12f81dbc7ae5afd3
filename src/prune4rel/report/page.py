"""What pages of every kind share, and the page about runs."""

from base64 import b64encode
from collections.abc import Callable, Sequence
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
from prune4rel.report.charts import Chart, DataTable, Figure, Missing, Symbols, aligned
from prune4rel.report.draw import draw
from prune4rel.report.label_figures import class_balance, confusion, relabeling
from prune4rel.report.method_figures import accuracy, by_steps, cost, coverage, curves, subset_noise
from prune4rel.report.pictures import MOST, gallery_of
from prune4rel.report.scene import STYLES, Markup, Style
from prune4rel.report.story import Story, label_symbols, names_of
from prune4rel.report.summary import all_numbers, bottom_line, facts_of, results_of, what_was_done
from prune4rel.report.words import PAPER, SERIES, SHADES, count, isolate, percent, plain, ratio, shade, short, variables
from prune4rel.storage import check_writable, to_json, write_text

WIDTHS = (760, 480, 340)
MOST_ROWS = 120


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

    caption: str = ""
    drawings: tuple[Drawn, ...] = ()
    table: DataTable | None = None
    reason: str = ""


def render_page(template: str, *, title: str, **told: Any) -> str:
    """Fill a template that extends ``page.html``, the frame of all pages.

    Parameters
    ----------
    template
        File in ``templates``. It fills the blocks ``main`` and, for JSON that the script reads, ``data``.
    title
        Of the window.
    told
        What the template shows. Text is escaped; `Markup` is not.

    Returns
    -------
    The whole HTML document.
    """
    script = _file("page.js")
    return str(
        _environment()
        .get_template(template)
        .render(
            title=title,
            style=Markup(_style_sheet()),
            script=Markup(script),
            digest=b64encode(sha256(script.encode()).digest()).decode("ascii"),
            **told,
        )
    )


def shown(title: str, made: Sequence[Figure | Missing]) -> list[Shown]:
    """Draw figures that stand beside each other under one title, with the same axes."""
    return [Shown(reason=one.reason) if isinstance(one, Missing) else _drawn(title, one) for one in _side_by_side(made)]


def _drawn(title: str, figure: Figure) -> Shown:
    drawings = []
    for panel in figure.panels:
        about = f"{title}{f', {panel.title}' if panel.title else ''}. {figure.caption}"
        drawings.append(Drawn(panel.title, *(draw(panel.chart, width, about) for width in WIDTHS)))
    return Shown(figure.caption, tuple(drawings), figure.table)


def _side_by_side(made: Sequence[Figure | Missing]) -> list[Figure | Missing]:
    figures = [one for one in made if isinstance(one, Figure)]
    if len({len(figure.panels) for figure in figures}) != 1:
        return list(made)
    columns = [aligned([figure.panels[place].chart for figure in figures]) for place in range(len(figures[0].panels))]
    charts = iter(zip(*columns, strict=True))
    return [one if isinstance(one, Missing) else _with_charts(one, next(charts)) for one in made]


def _with_charts(figure: Figure, charts: Sequence[Chart]) -> Figure:
    panels = tuple(replace(panel, chart=chart) for panel, chart in zip(figure.panels, charts, strict=True))
    return replace(figure, panels=panels)


def _style_sheet() -> str:
    """Return the CSS: the palette as variables for both modes, the styles of marks, and the rest from a file."""

    def block(mode: str) -> str:
        steps = [(f"--s{step}", shade(step / SHADES, mode)) for step in range(SHADES + 1)]
        return ";".join(f"{name}:{value}" for name, value in [*variables(mode), *steps])

    tints = [f"c{place}" for place in range(len(SERIES["light"]))] + [f"s{step}" for step in range(SHADES + 1)]
    light, dark = block("light"), block("dark")
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}"
        f"@media print{{:root:root:root{{color-scheme:light;{light};--paper:#ffffff}}}}"
        + "".join(f".{tint}{{--tint:var(--{tint})}}" for tint in tints)
        + "".join(_rule(name, style) for name, style in STYLES.items())
        + _file("page.css")
    )


def _rule(name: str, style: Style) -> str:
    def colour(of: str) -> str:
        return of if of in {"none", "transparent"} else f"var(--{of})"

    rules = [f"fill:{colour(style.fill)}"]
    if style.stroke != "none":
        rules += [f"stroke:{colour(style.stroke)}", f"stroke-width:{style.width:g}"]
    if style.dash:
        rules.append(f"stroke-dasharray:{style.dash[0]:g} {style.dash[1]:g}")
    if style.opacity < 1:
        rules.append(f"opacity:{style.opacity:g}")
    rules += [f"font-size:{style.size:g}px"] if style.size != Style.size else []
    rules += ["font-weight:550"] if style.bold else []
    rules += ["font-style:italic"] if style.italic else []
    return f"svg .{name}{{{';'.join(rules)}}}"


def _file(name: str) -> str:
    return (files("prune4rel.report") / "templates" / name).read_text(encoding="utf-8")


def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only for reports

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
        "csv": lambda table: f"data:text/csv;charset=utf-8;base64,{b64encode(table.to_csv().encode()).decode('ascii')}",
        "number": lambda value: "" if value is None else value if isinstance(value, str) else _number(value),
        "json": lambda value: Markup(to_json(value).replace("<", "\\u003c")),
    }
    environment.tests["missing"] = lambda value: isinstance(value, Missing)
    environment.globals |= {"paper": PAPER, "version": __version__, "most_rows": MOST_ROWS}
    return environment


def _number(value: float) -> str:
    return str(value) if isinstance(value, Integral) else short(float(f"{value:.4g}"))


@dataclass(frozen=True)
class Section:
    """A part of the page: its anchor, its title, and what draws it."""

    key: str
    title: str
    make: Callable[[Story, Symbols], Figure | Missing]


SECTIONS = (
    Section("accuracy", "Accuracy", accuracy),
    Section("steps", "Accuracy against steps", by_steps),
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
    symbols = label_symbols(stories)
    names = [plain(name) for name in names_of(stories)]
    atlases = [atlas_of(story, MOST_POINTS // len(stories)) for story in stories]
    runs = [
        _run(story, name, atlas, MOST // len(stories))
        for story, name, atlas in zip(stories, names, atlases, strict=True)
    ]
    with_ids = ids_fit(stories)
    sections = [
        (section, shown(section.title, [section.make(story, symbols) for story in stories])) for section in SECTIONS
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
    write_text(path, render(stories), force=force)


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
