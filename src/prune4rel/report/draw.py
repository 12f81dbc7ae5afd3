"""Charts laid out as marks, for any width."""

import math
from collections.abc import Callable, Sequence

from prune4rel.report.charts import Axis, Chart, Dots, Lines, Matrix, Point, Reference, Series, Square, Stacks
from prune4rel.report.scene import Box, Disc, Mark, Markup, Path, Place, Scene, Text, svg
from prune4rel.report.words import SHADES, Symbol, shorten, text_width

SIZE, SMALL = 13.0, 12.0
BOLD = 1.08
LINE = 18.0
RADIUS = 4.0
SWATCH, GAP = 20.0, 18.0
FOOT = 46.0

DIRECT = 560.0
"""From this width on, lines are named at their ends; below it, in a legend."""

MOST_TIPS = 30
DOT_ROW, BAR_ROW, BAR = 27.0, 30.0, 16.0

LARGEST_SQUARE = 48.0
DARK_FROM = 0.55
SMALLEST_TEXT = 7.0


def draw(chart: Chart, width: float, about: str) -> Markup:
    """Draw a chart as SVG `width` pixels wide; `about` is read out to those who cannot see it."""
    return svg(scene_of(chart, width), about)


def scene_of(chart: Chart, width: float) -> Scene:
    """Lay a chart out on a sheet of some width."""
    match chart:
        case Lines():
            return _lines(chart, width)
        case Dots():
            return _dots(chart, width)
        case Stacks():
            return _stacks(chart, width)
        case Matrix():
            return _matrix(chart, width)


def _lines(chart: Lines, width: float) -> Scene:
    direct = width >= DIRECT
    names = [series.name for series in chart.series] + [reference.label for reference in chart.references]
    room = min(0.32 * width, BOLD * max(text_width(name, SIZE) for name in names) + 22) if direct else 10.0
    symbols = [(one.name, one.symbol) for one in chart.series]
    marks, head = ([], 0.0) if direct else legend(symbols, width, chart.references)
    ticks = max((text_width(text, SMALL) for _, text in chart.y.ticks), default=0.0)
    left, right, top = 12 + ticks, width - room, head + 34.0
    bottom = top + max(min(0.52 * width, 330.0), LINE * (len(names) if direct else 0))

    def across(value: float) -> float:
        return left + chart.x.place(value) * (right - left)

    def up(value: float) -> float:
        return bottom - chart.y.place(value) * (bottom - top)

    for value, text in chart.y.ticks:
        marks.append(Path([(left, up(value)), (right, up(value))], "grid"))
        marks.append(Text(left - 8, up(value) + 4, text, "tick", anchor="end"))
    marks.append(Text(0.0, top - 14, chart.y.label, "axis"))
    marks += bottom_axis(chart.x, left, right, bottom, bottom)
    for reference in chart.references:
        marks.append(Path([(left, up(reference.value)), (right, up(reference.value))], "reference"))
    for one in chart.series:
        marks += _line(one, [(across(point.x), up(point.y)) for point in one.points], up)
    if direct:
        ends = [up(one.points[-1].y) for one in chart.series] + [up(one.value) for one in chart.references]
        kinds = [f"name c{one.symbol[0]}" for one in chart.series] + ["note"] * len(chart.references)
        for name, kind, y in zip(names, kinds, apart(ends, LINE - 2, top, bottom), strict=True):
            marks.append(Text(right + 12, y + 4.5, shorten(name, room - 14, BOLD * SIZE), kind, name))
    return Scene(marks, width, bottom + FOOT)


def _line(series: Series, places: list[Place], up: Callable[[float], float]) -> list[Mark]:
    tint = f"c{series.symbol[0]}"
    marks: list[Mark] = [Path(places, f"{'dashed' if series.dashed else 'line'} {tint}")] if len(places) > 1 else []
    told = -(-len(places) // MOST_TIPS)
    for number, (point, (x, y)) in enumerate(zip(series.points, places, strict=True)):
        if interval := _interval(point):
            marks.append(Path([(x, up(end)) for end in interval], f"whisker {tint}"))
        if series.markers or len(places) == 1:
            marks.append(marker(series.symbol, x, y, point.tip))
        elif number % told == 0:
            marks.append(Disc(x, y, 6.0, "touch", point.tip))
    return marks


def _interval(point: Point) -> tuple[float, float] | None:
    if point.low is None or point.high is None or point.high <= point.low:
        return None
    return point.low, point.high


def _dots(chart: Dots, width: float) -> Scene:
    left = _room_for([row.name for row in chart.rows], 0.5 * width)
    right = width - 22.0
    marks, head = legend(chart.keys, width)
    top = head + (22.0 if chart.references else 6.0)
    bottom = top + DOT_ROW * len(chart.rows) + 4

    def at(value: float) -> float:
        return left + chart.axis.place(value) * (right - left)

    marks += bottom_axis(chart.axis, left, right, top, bottom)
    for reference in chart.references:
        x = at(reference.value)
        marks.append(Path([(x, top - 4), (x, bottom)], "reference"))
        half = text_width(reference.label, SIZE) / 2
        marks.append(Text(min(max(x, half), width - half), top - 9, reference.label, "note", anchor="middle"))
    for place, row in enumerate(chart.rows):
        y = top + DOT_ROW * (place + 0.5) + 2
        marks.append(_row_name(row.name, left, y + 4.5))
        known = [at(point.y) for point in row.points if point is not None]
        if len(known) > 1:
            marks.append(Path([(min(known), y), (max(known), y)], "link"))
        for (_, symbol), point in zip(chart.keys, row.points, strict=True):
            mine = chart.row_symbols[place] if chart.row_symbols else symbol
            if point is not None:
                if interval := _interval(point):
                    marks.append(Path([(at(end), y) for end in interval], f"whisker c{mine[0]}"))
                marks.append(marker(mine, at(point.y), y, point.tip, radius=4.8))
    return Scene(marks, width, bottom + FOOT)


def _stacks(chart: Stacks, width: float) -> Scene:
    left = _room_for([row.name for row in chart.rows], 0.36 * width)
    right = width - max((text_width(row.end, SMALL) for row in chart.rows), default=0.0) - 16
    marks, head = legend(chart.keys, width)
    top = head + 4.0
    bottom = top + BAR_ROW * len(chart.rows)
    marks += bottom_axis(chart.axis, left, right, top, bottom)
    for place, row in enumerate(chart.rows):
        x, y = left, top + BAR_ROW * place + (BAR_ROW - BAR) / 2
        marks.append(_row_name(row.name, left, y + BAR - 4))
        for value, tip, (_, symbol) in zip(row.values, row.tips, chart.keys, strict=True):
            wide = chart.axis.place(value) * (right - left)
            if wide > 0:
                marks.append(Box(x, y, max(wide, 0.5), BAR, f"bar c{symbol[0]}", tip))
            x += wide
        marks.append(Text(x + 8, y + BAR - 4, row.end, "tick"))
    return Scene(marks, width, bottom + FOOT)


def _matrix(chart: Matrix, width: float) -> Scene:
    """Row names go to the left and column names on top, upright where there is room."""
    n = len(chart.names)
    longest = max(text_width(name, SMALL) for name in chart.names)
    room = min(0.3 * width, longest + 2)
    left = room + 34
    side = min(LARGEST_SQUARE, (width - left - 2) / n)
    upright = longest <= side - 4
    head = SMALL + 8 if upright else min(90.0, longest + 8)
    top = head + 32
    right, bottom = left + side * n, top + side * n
    marks: list[Mark] = [
        Text(left, 12.0, chart.column_label, "axis"),
        Text(13.0, (top + bottom) / 2, chart.row_label, "axis", anchor="middle", turned=True),
    ]
    size = min(SMALL, 0.92 * side)
    for place, name in enumerate(chart.names):
        middle = (place + 0.5) * side
        y = top + middle + 0.35 * size
        marks.append(Text(left - 8, y, shorten(name, room, size), "tick", name, "end", size))
        if upright:
            marks.append(Text(left + middle, top - 8, shorten(name, side, size), "tick", name, "middle", size))
        else:
            x = left + middle + 0.35 * size
            marks.append(Text(x, top - 8, shorten(name, head - 4, size), "tick", name, "start", size, turned=True))
    inside = side - max(1.0, 0.05 * side)
    every = [square for line in chart.squares for square in line]
    stays = _text_size([square for square in every if square.strength is None], inside)
    moves = _text_size([square for square in every if square.strength is not None], inside)
    for row, squares in enumerate(chart.squares):
        for column, square in enumerate(squares):
            x, y = left + column * side, top + row * side
            same = square.strength is None
            size = stays if same else moves
            kind = "same" if square.strength is None else f"shade s{round(SHADES * square.strength)}"
            marks.append(Box(x, y, inside, inside, kind, square.tip, corner=0.06 * inside))
            if square.text and size:
                tone = "quiet" if same else "onto" if (square.strength or 0) > DARK_FROM else "cell"
                x, y = x + inside / 2, y + inside / 2 + 0.35 * size
                marks.append(Text(x, y, square.text, tone, anchor="middle", size=size))
    return Scene(marks, max(width, right), bottom + 6)


def _text_size(squares: Sequence[Square], inside: float) -> float:
    """Return the size at which the widest text fits, 0 if it would be too small to read."""
    widest = max((text_width(square.text, 1.0) for square in squares), default=0.0)
    size = min(SIZE, 0.36 * inside, (inside - 2) / widest if widest else SIZE)
    return size if size >= SMALLEST_TEXT else 0.0


def _room_for(names: Sequence[str], most: float) -> float:
    return min(most, max((text_width(name, SIZE) for name in names), default=0.0) + 4) + 12


def _row_name(name: str, left: float, y: float) -> Text:
    return Text(left - 12, y, shorten(name, left - 14, SIZE), "key", name, anchor="end")


def marker(symbol: Symbol, x: float, y: float, tip: str = "", radius: float = RADIUS) -> Mark:
    """Return a marker in one of the shapes of the palette, with what to say about it."""
    colour, shape = symbol
    kind = f"mark c{colour}"
    if shape == "circle":
        return Disc(x, y, radius, kind, tip)
    if shape == "cross":
        arm, half = 1.25 * radius, 0.42 * radius
        corners = [
            (half, half), (half, arm), (-half, arm), (-half, half), (-arm, half), (-arm, -half),
            (-half, -half), (-half, -arm), (half, -arm), (half, -half), (arm, -half), (arm, half),
        ]  # fmt: skip
    else:
        sides, turn, size = {"square": (4, 0.125, 1.25), "diamond": (4, 0.0, 1.35), "triangle": (3, 0.25, 1.35)}[shape]
        steps = [2 * math.pi * (side / sides + turn) for side in range(sides)]
        corners = [(size * radius * math.cos(step), -size * radius * math.sin(step)) for step in steps]
    return Path([(x + dx, y + dy) for dx, dy in corners], kind, tip, closed=True)


def legend(
    keys: Sequence[tuple[str, Symbol]], width: float, references: Sequence[Reference] = ()
) -> tuple[list[Mark], float]:
    """Return markers with their names, as many a line as fit, and their height."""
    entries = [*keys, *((reference.label, None) for reference in references)]
    marks: list[Mark] = []
    if not any(name for name, _ in entries):
        return marks, 0.0
    x, y = 0.0, SIZE
    for name, symbol in entries:
        text = shorten(name, width - SWATCH, SIZE)
        wide = SWATCH + text_width(text, SIZE)
        if x and x + wide > width:
            x, y = 0.0, y + LINE
        dotted = Path([(x, y - 4.5), (x + SWATCH - 6, y - 4.5)], "reference")
        marks.append(marker(symbol, x + 7, y - 4.5) if symbol else dotted)
        marks.append(Text(x + SWATCH - 3, y, text, "key", name))
        x += wide + GAP
    return marks, y + 12


def bottom_axis(axis: Axis, left: float, right: float, top: float, bottom: float) -> list[Mark]:
    """Return ticks and label below, and fine lines upwards; ticks that would touch are left out."""
    marks: list[Mark] = []
    last = -math.inf
    for value, text in axis.ticks:
        x = left + axis.place(value) * (right - left)
        if not left - 0.5 <= x <= right + 0.5:
            continue
        if top < bottom:
            marks.append(Path([(x, top), (x, bottom)], "grid"))
        half = text_width(text, SMALL) / 2
        if x - half >= last + 6:
            last = x + half
            marks.append(Text(x, bottom + 18, text, "tick", anchor="middle"))
    marks.append(Text((left + right) / 2, bottom + 38, axis.label, "axis", anchor="middle"))
    return marks


def apart(wanted: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Move places so that neighbours are `least` apart and all lie between `low` and `high`, as little as may be.

    >>> apart([10, 12, 50], 10, 0, 100)
    [6.0, 16.0, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda item: wanted[item])
    clusters: list[tuple[float, int]] = []
    for item in order:
        clusters.append((float(wanted[item]), 1))
        while len(clusters) > 1 and clusters[-2][0] + clusters[-2][1] * least > clusters[-1][0]:
            (later, few), (first, many) = clusters.pop(), clusters.pop()
            clusters.append(((first * many + (later - many * least) * few) / (many + few), many + few))
    places = [first + step * least for first, members in clusters for step in range(members)]
    for step in reversed(range(len(places))):
        places[step] = min(places[step], high - (len(places) - 1 - step) * least)
    for step in range(len(places)):
        places[step] = max(places[step], low + step * least)
    found = dict(zip(order, places, strict=True))
    return [found[item] for item in range(len(wanted))]
