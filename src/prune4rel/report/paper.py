"""Figures for papers: the marks of the page painted as PNG or PDF, with matplotlib as a mere canvas."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from prune4rel.atomic import make_folder
from prune4rel.errors import InputError
from prune4rel.report import scene
from prune4rel.report.atlas import LAYERS, Atlas, atlas_of
from prune4rel.report.charts import Figure, Missing
from prune4rel.report.draw import GAP, SIZE, SWATCH, scene_of
from prune4rel.report.page import SECTIONS
from prune4rel.report.pictures import Gallery, gallery_of
from prune4rel.report.scene import STYLES, Mark, Scene
from prune4rel.report.story import Story, label_symbols
from prune4rel.report.words import INK, MUTED, RULE, SERIES, SHADES, WASH, plain, shade, shorten, text_width
from prune4rel.storage import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["png", "pdf"]
Panels = Sequence[tuple[str, Scene]]

DPI = 200
PER_INCH = 106.0
POINT = 72 / PER_INCH
WIDE, HALF = 680.0, 480.0
EDGE, BETWEEN, HEAD = 10.0, 36.0, 26.0
COLOURS = {"ink": INK["light"], "muted": MUTED["light"], "rule": RULE["light"], "wash": WASH["light"]}
PLAIN = {"paper": "white", "none": "none"}
ALIGN = {"start": "left", "middle": "center", "end": "right"}
ACROSS, DOWN = 8, 4
SIDE, CARD = 72.0, 112.0


def write_figures(
    stories: Sequence[Story], folder: str | Path, *, kind: Kind = "png", force: bool = False
) -> list[Path]:
    """Write every figure that has data.

    Parameters
    ----------
    stories
        One or several runs; with several, names end in the number of the run.
    folder
        Where to; made if it is not there. Nothing in it is replaced unless `force` is set.
    kind
        ``"png"``, or ``"pdf"`` for lines and letters that stay sharp at any size.

    Returns
    -------
    The files written, such as ``accuracy.png``.
    """
    if not stories:
        raise InputError("figures need at least one run")
    _matplotlib()
    folder = Path(folder)
    make_folder(folder)
    symbols = label_symbols(stories)
    written: list[Path] = []
    for place, story in enumerate(stories):
        made = {section.key: _panels(section.make(story, symbols)) for section in SECTIONS}
        made |= {"map": _map(atlas_of(story)), "gallery": _gallery(story, gallery_of(story, ACROSS * DOWN))}
        for name, panels in made.items():
            if panels:
                path = folder / (f"{name}-{place + 1}.{kind}" if len(stories) > 1 else f"{name}.{kind}")
                write_whole(path, partial(paint, panels, kind=kind), force=force)
                written.append(path)
    return written


def paint(panels: Panels, path: str | Path, kind: Kind = "png") -> None:
    """Paint scenes beside each other, each below its title, on white paper."""
    head = HEAD if any(title for title, _ in panels) else 0.0
    width = sum(one.width + BETWEEN for _, one in panels) - BETWEEN + 2 * EDGE
    height = max(one.height for _, one in panels) + head + 2 * EDGE
    matplotlib = _matplotlib()
    with matplotlib.rc_context({"pdf.fonttype": 42, "text.parse_math": False}):
        sheet = matplotlib.figure.Figure(figsize=(width / PER_INCH, height / PER_INCH), facecolor="white")
        left = EDGE
        for title, one in panels:
            axes = sheet.add_axes((left / width, 0, one.width / width, 1))
            for place, mark in enumerate((scene.Text(0.0, 14.0 - HEAD, plain(title), "title"), *one.marks)):
                _put(axes, mark, place)
            axes.set(xlim=(0, one.width), ylim=(height - head - EDGE, -head - EDGE))
            axes.set_axis_off()
            left += one.width + BETWEEN
        sheet.savefig(path, dpi=DPI, format=kind, metadata={"CreationDate": None} if kind == "pdf" else None)


def _matplotlib() -> Any:
    try:
        import matplotlib.figure  # noqa: PLC0415 - slow, and only for figures on disk
    except ImportError:
        raise InputError("figures need matplotlib; install it with: pip install 'prune4rel[report]'") from None
    return matplotlib


def _put(axes: "Axes", mark: Mark, place: int) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.patches import Circle, FancyBboxPatch, Polygon  # noqa: PLC0415

    if isinstance(mark, scene.Picture):
        edges = (mark.x, mark.x + mark.side, mark.y + mark.side, mark.y)
        axes.imshow(mark.pixels, extent=edges, aspect="auto", zorder=place)
        return
    name, _, tint = mark.kind.partition(" ")
    style = STYLES[name]
    if style.fill == "transparent":
        return
    own = "" if not tint else SERIES["light"][int(tint[1:])] if tint[0] == "c" else shade(int(tint[1:]) / SHADES)
    colours = COLOURS | PLAIN | {"tint": own}
    fill, stroke = colours[style.fill], colours[style.stroke]
    width = style.width * POINT * (stroke != "none")
    area: dict[str, Any] = {"facecolor": fill, "edgecolor": stroke, "linewidth": width, "zorder": place}
    match mark:
        case scene.Path(closed=False):
            ends: dict[str, Any] = {"solid_capstyle": "round", "dash_capstyle": "round", "solid_joinstyle": "round"}
            line = Line2D(
                *zip(*mark.places, strict=True),
                color=stroke,
                alpha=style.opacity,
                linewidth=width,
                zorder=place,
                **ends,
            )
            if style.dash:
                line.set_dashes([length / style.width for length in style.dash])
            axes.add_line(line)
        case scene.Path():
            axes.add_patch(Polygon(np.array(mark.places), **area))
        case scene.Disc():
            axes.add_patch(Circle((mark.x, mark.y), mark.radius, **area))
        case scene.Box():
            shape = f"round,pad=0,rounding_size={mark.corner}" if mark.corner else "square,pad=0"
            axes.add_patch(FancyBboxPatch((mark.x, mark.y), mark.width, mark.height, boxstyle=shape, **area))
        case scene.Cloud():
            size = (2 * mark.radius * POINT) ** 2
            axes.scatter(mark.places[:, 0], mark.places[:, 1], s=size, alpha=style.opacity, rasterized=True, **area)
        case scene.Text():
            axes.text(
                mark.x,
                mark.y,
                mark.words,
                color=fill,
                fontsize=(mark.size or style.size) * POINT,
                fontweight="bold" if style.bold else "normal",
                fontstyle="italic" if style.italic else "normal",
                horizontalalignment=ALIGN[mark.anchor],
                verticalalignment="baseline",
                rotation=90 if mark.turned else 0,
                rotation_mode="anchor",
                zorder=place,
            )


def _panels(figure: Figure | Missing) -> Panels:
    if isinstance(figure, Missing):
        return []
    width = WIDE if len(figure.panels) == 1 else HALF
    return [(panel.title, scene_of(panel.chart, width)) for panel in figure.panels]


def _map(atlas: Atlas | Missing) -> Panels:
    if isinstance(atlas, Missing):
        return []
    radius = float(np.clip(12_000 / len(atlas.shown), 0.5, 14)) ** 0.5 / 2 / POINT
    top = 2 * SIZE
    layers = [("All", "haze", radius, atlas.places)]
    for key, name, _, colour in reversed(LAYERS):
        if key in atlas.masks:
            kind = f"{'ring' if key == 'noisy' else 'dot'} c{colour}"
            layers.append((name, kind, radius * (1 if key == "corrected" else 1.55), atlas.places[atlas.masks[key]]))
    marks: list[Mark] = [
        scene.Cloud(WIDE * np.array([0, 1]) + (WIDE * np.array([1, -1])) * places + (0, top), size, kind)
        for _, kind, size, places in layers
    ]
    x = 0.0
    for name, kind, _, _ in layers:
        marks.append(scene.Disc(x + 7, SIZE - 4.5, 4.0, kind))
        marks.append(scene.Text(x + SWATCH - 3, SIZE, name, "key"))
        x += SWATCH + text_width(name, SIZE) + GAP
    return [("", Scene(marks, WIDE, WIDE + top + radius))]


def _gallery(story: Story, gallery: Gallery | Missing) -> Panels:
    """Put the surest corrections on one sheet: given label, then corrected label, then the picture."""
    if isinstance(gallery, Missing) or gallery.trouble or story.thumbnails is None:
        return []
    pictures = story.thumbnails(np.array([card.index for card in gallery.cards]))
    marks: list[Mark] = []
    step = WIDE / ACROSS
    for place, (card, pixels) in enumerate(zip(gallery.cards, pictures, strict=True)):
        x, y = (place % ACROSS) * step, (place // ACROSS) * CARD
        for line, label in enumerate((card.given, card.corrected)):
            words = shorten(story.class_names[label], step - 6, 11.0)
            marks.append(scene.Text(x + step / 2, y + 11 + 14 * line, words, "key", anchor="middle", size=11.0))
        marks.append(scene.Picture(x + (step - SIDE) / 2, y + 31, SIDE, pixels))
    return [("", Scene(marks, WIDE, CARD * -(-len(pictures) // ACROSS)))]
