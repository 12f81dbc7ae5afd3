"""The same figures as pictures for papers, drawn by matplotlib."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prune4rel.errors import InputError
from prune4rel.report.atlas import LAYERS, Atlas, atlas_of
from prune4rel.report.charts import Axis, Chart, Dots, Lines, Matrix, Reference, Stacks
from prune4rel.report.draw.marks import apart
from prune4rel.report.figure import Missing, label_looks
from prune4rel.report.figures import SECTIONS
from prune4rel.report.gallery import Gallery, gallery_of
from prune4rel.report.palette import INK, MUTED, RULE, SERIES, WASH, shade
from prune4rel.report.story import Story
from prune4rel.report.words import plain, shorten
from prune4rel.storage import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

DPI = 200
WIDTH = 6.4
COLOURS = SERIES["light"]
MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "P"}
NAME_WIDTH = 26.0
ACROSS, DOWN = 8, 4
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.edgecolor": RULE["light"],
    "axes.labelcolor": MUTED["light"],
    "text.color": INK["light"],
    "xtick.color": MUTED["light"],
    "ytick.color": MUTED["light"],
    "text.parse_math": False,
}


def write_figures(stories: Sequence[Story], folder: str | Path, *, force: bool = False) -> list[Path]:
    """Write every figure that has data as PNG.

    Parameters
    ----------
    stories
        One or several runs; with several, names end in the number of the run.
    folder
        Where to; made if it is not there. Nothing in it is replaced unless `force` is set.

    Returns
    -------
    The files written, such as ``accuracy.png``.
    """
    if not stories:
        raise InputError("figures need at least one run")
    matplotlib = _matplotlib()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    looks = label_looks(stories)
    written: list[Path] = []

    def save(name: str, place: int, canvas: "Canvas") -> None:
        path = folder / (f"{name}-{place + 1}.png" if len(stories) > 1 else f"{name}.png")
        write_whole(path, lambda part: canvas.savefig(part, dpi=DPI, format="png", bbox_inches="tight"), force=force)
        written.append(path)

    with matplotlib.rc_context(STYLE):
        for place, story in enumerate(stories):
            for section in SECTIONS:
                made = section.make(story, looks)
                if not isinstance(made, Missing):
                    save(section.key, place, _paint([(panel.title, panel.chart) for panel in made.panels]))
            atlas = atlas_of(story)
            if not isinstance(atlas, Missing):
                save("map", place, _paint_map(atlas))
            pictures = gallery_of(story, ACROSS * DOWN)
            if isinstance(pictures, Gallery) and not pictures.trouble:
                save("gallery", place, _paint_gallery(story, pictures))
    return written


def _matplotlib() -> Any:
    try:
        import matplotlib as mpl  # noqa: PLC0415 - slow, and only for figures on disk
        import matplotlib.figure  # noqa: PLC0415
    except ImportError:
        raise InputError("figures need matplotlib; install it with: pip install 'prune4rel[report]'") from None
    return mpl


def _new(width: float, height: float, panels: int = 1) -> "tuple[Canvas, list[Axes]]":
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415

    canvas = Canvas(figsize=(width, height), layout="constrained")
    return canvas, list(np.atleast_1d(canvas.subplots(1, panels)).ravel())


def _paint(panels: Sequence[tuple[str, Chart]]) -> "Canvas":
    canvas, spaces = _new(WIDTH * min(2, len(panels)), max(_height(chart) for _, chart in panels), len(panels))
    painters: dict[type, Callable[[Axes, Any], None]] = {
        Lines: _lines,
        Dots: _dots,
        Stacks: _stacks,
        Matrix: _matrix,
    }
    for axes, (title, chart) in zip(spaces, panels, strict=True):
        for side in ("top", "right", "left", "bottom"):
            axes.spines[side].set_visible(False)
        axes.tick_params(length=0)
        painters[type(chart)](axes, chart)
        if title:
            axes.set_title(plain(title), loc="left", fontsize=10, fontweight="bold")
    return canvas


def _height(chart: Chart) -> float:
    if isinstance(chart, Dots | Stacks):
        return 1.0 + 0.27 * len(chart.rows)
    return WIDTH if isinstance(chart, Matrix) else 3.8


def _lines(axes: "Axes", chart: Lines) -> None:
    for one in chart.series:
        colour = COLOURS[one.look[0]]
        x, y = [point.x for point in one.points], [point.y for point in one.points]
        lows = [point.y if point.low is None else point.low for point in one.points]
        highs = [point.y if point.high is None else point.high for point in one.points]
        axes.errorbar(
            x,
            y,
            yerr=[np.subtract(y, lows), np.subtract(highs, y)] if lows != highs else None,
            color=colour,
            marker=MARKERS[one.look[1]] if one.markers or len(x) == 1 else None,
            markersize=4.5,
            linewidth=1.5,
            linestyle="--" if one.dashed else "-",
        )
    _scale(axes.xaxis, axes.set_xlim, axes.set_xscale, chart.x)
    _scale(axes.yaxis, axes.set_ylim, axes.set_yscale, chart.y)
    axes.set_xlabel(chart.x.label)
    axes.set_ylabel(chart.y.label)
    axes.grid(axis="y", color=RULE["light"], linewidth=0.7)
    for reference in chart.references:
        axes.axhline(reference.value, color=MUTED["light"], linewidth=1, linestyle=":")
    names = [(one.name, one.points[-1].y, COLOURS[one.look[0]]) for one in chart.series]
    names += [(reference.label, reference.value, MUTED["light"]) for reference in chart.references]
    places = apart([chart.y.place(value) for _, value, _ in names], 0.055, 0.0, 1.0)
    for (name, _, colour), place in zip(names, places, strict=True):
        axes.text(1.02, place, _short(name), color=colour, transform=axes.transAxes, va="center")


def _dots(axes: "Axes", chart: Dots) -> None:
    for place, row in enumerate(chart.rows):
        known = [point.y for point in row.points if point is not None]
        axes.plot(known, [place] * len(known), color=RULE["light"], linewidth=2.5, zorder=1)
        for (_, look), point in zip(chart.keys, row.points, strict=True):
            if point is None:
                continue
            colour, marker = chart.row_looks[place] if chart.row_looks else look
            error = None if point.low is None or point.high is None else [[point.y - point.low], [point.high - point.y]]
            axes.errorbar(point.y, place, xerr=error, color=COLOURS[colour], marker=MARKERS[marker], markersize=5.5)
    _rows(axes, chart.axis, [row.name for row in chart.rows])
    _references_across(axes, chart.references)
    _key(axes, chart.keys)


def _stacks(axes: "Axes", chart: Stacks) -> None:
    for place, row in enumerate(chart.rows):
        left = 0.0
        for value, (_, look) in zip(row.values, chart.keys, strict=True):
            axes.barh(place, value, left=left, color=COLOURS[look[0]], height=0.58, edgecolor="white", linewidth=0.6)
            left += value
        axes.text(left, place, f"  {row.end}", va="center", fontsize=8, color=MUTED["light"])
    _rows(axes, chart.axis, [row.name for row in chart.rows])
    _key(axes, chart.keys)


def _matrix(axes: "Axes", chart: Matrix) -> None:
    n = len(chart.names)
    paint = np.empty((n, n), dtype=object)
    for row, squares in enumerate(chart.squares):
        for column, square in enumerate(squares):
            paint[row, column] = WASH["light"] if square.strength is None else shade(square.strength)
            if n <= 15 and square.text:
                dark = (square.strength or 0) > 0.55
                axes.text(
                    column,
                    row,
                    square.text,
                    ha="center",
                    va="center",
                    color="white" if dark else INK["light"],
                    fontsize=7,
                )
    axes.imshow(np.array([[_rgb(colour) for colour in line] for line in paint]), aspect="equal")
    names = [_short(name) for name in chart.names]
    axes.set_xticks(range(n), names, rotation=90, fontsize=7)
    axes.set_yticks(range(n), names, fontsize=7)
    axes.set_xlabel(chart.column_label)
    axes.set_ylabel(chart.row_label)


def _paint_map(atlas: Atlas) -> "Canvas":
    canvas, (axes,) = _new(WIDTH, WIDTH)
    dot = float(np.clip(12_000 / len(atlas.shown), 0.5, 14))
    x, y = atlas.places.T
    axes.scatter(x, y, s=dot, color=MUTED["light"], alpha=0.35, linewidths=0, label="All", rasterized=True)
    for key, name, _, colour in reversed(LAYERS):
        if key not in atlas.masks:
            continue
        x, y = atlas.places[atlas.masks[key]].T
        if key == "noisy":
            axes.scatter(x, y, s=2.4 * dot, facecolors="none", edgecolors=COLOURS[colour], linewidths=0.5, label=name)
        else:
            size = dot if key == "corrected" else 2.4 * dot
            axes.scatter(x, y, s=size, color=COLOURS[colour], linewidths=0, label=name)
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.05), ncols=4, markerscale=2)
    return canvas


def _paint_gallery(story: Story, gallery: Gallery) -> "Canvas":
    """Put the surest corrections on one sheet: given label, then corrected label."""
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415

    if story.thumbnails is None:
        raise AssertionError("a gallery without trouble has pictures")
    pictures = story.thumbnails(np.array([card.index for card in gallery.cards]))
    rows = -(-len(pictures) // ACROSS)
    canvas = Canvas(figsize=(WIDTH, 1.15 * rows), layout="constrained")
    for axes in canvas.subplots(rows, ACROSS, squeeze=False).ravel():
        axes.set_axis_off()
    for axes, card, pixels in zip(canvas.axes, gallery.cards, pictures, strict=False):
        axes.imshow(pixels)
        names = (shorten(story.class_names[label], 9, 1.0) for label in (card.given, card.corrected))
        axes.set_title("\n".join(names), fontsize=6)
    return canvas


def _scale(axis: Any, limits: Callable[..., Any], scale: Callable[..., Any], told: Axis) -> None:
    if told.log:
        scale("log")
    limits(told.low, told.high)
    axis.set_ticks([value for value, _ in told.ticks], labels=[text for _, text in told.ticks])
    axis.set_tick_params(which="minor", length=0)


def _rows(axes: "Axes", axis: Axis, names: Sequence[str]) -> None:
    _scale(axes.xaxis, axes.set_xlim, axes.set_xscale, axis)
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(axis.label)
    axes.grid(axis="x", color=RULE["light"], linewidth=0.7)
    axes.set_axisbelow(True)


def _references_across(axes: "Axes", references: Sequence[Reference]) -> None:
    for reference in references:
        axes.axvline(reference.value, color=MUTED["light"], linewidth=1, linestyle=":")
        axes.text(reference.value, -0.7, reference.label, ha="center", va="bottom", fontsize=8, color=MUTED["light"])


def _key(axes: "Axes", keys: Sequence[tuple[str, tuple[int, str]]]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    handles = [
        Line2D([], [], color=COLOURS[colour], marker=MARKERS[marker], linestyle="", label=name)
        for name, (colour, marker) in keys
        if name
    ]
    if handles:
        axes.legend(handles=handles, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.05), ncols=len(handles))


def _short(name: str) -> str:
    return shorten(name, NAME_WIDTH, 1.0)


def _rgb(colour: str) -> tuple[float, float, float]:
    return int(colour[1:3], 16) / 255, int(colour[3:5], 16) / 255, int(colour[5:7], 16) / 255
