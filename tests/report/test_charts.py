import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.stories import bare_story, digits_story

from prune4rel.atomic import FORMULA, undo_defuse
from prune4rel.report.charts import DataTable, Lines, Point, Series, aligned, log_axis, number_axis, share_axis
from prune4rel.report.story import label_symbols
from prune4rel.report.words import plain

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8)
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(NUMBERS, st.booleans())
def test_number_axes_hold_their_values(values, zero):
    axis = number_axis("x", values, zero=zero)
    assert all(-1e-9 <= axis.place(value) <= 1 + 1e-9 for value in values)
    assert not zero or axis.low <= 0 <= axis.high
    assert 2 <= len(axis.ticks) <= 8


@given(SHARES, st.booleans())
def test_share_axes_hold_their_values_and_stay_between_0_and_1(values, zero):
    axis = share_axis("x", values, zero=zero)
    assert all(-1e-9 <= axis.place(value) <= 1 + 1e-9 for value in values)
    assert axis.low >= 0
    assert axis.high <= 1
    assert all(text.endswith("%") for _, text in axis.ticks)


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=8))
def test_log_axes_hold_their_values(values):
    axis = log_axis("x", values)
    assert all(-1e-9 <= axis.place(value) <= 1 + 1e-9 for value in values)
    assert len(axis.ticks) <= 8


def lines(values):
    x = number_axis("x", [0, 1])
    return Lines(x, share_axis("y", values), (Series("a", (0, "circle"), tuple(Point(0, y) for y in values)),))


def test_charts_side_by_side_share_their_axis():
    one, other = aligned([lines([0.2, 0.3]), lines([0.8, 0.9])])
    assert one.y == other.y
    assert one.y.low <= 0.2
    assert one.y.high >= 0.9
    assert one.y.ticks[0][1].endswith("%")


def test_charts_of_different_quantities_keep_theirs():
    one, other = lines([0.2, 0.3]), lines([0.8, 0.9])
    other = replace(other, y=replace(other.y, label="z"))
    assert aligned([one, other]) == [one, other]
    assert aligned([one]) == [one]


def test_log_charts_are_aligned_in_powers_of_ten():
    one, other = (replace(lines([0.5]), y=log_axis("gain", values)) for values in ([0.1, 1], [100, 1000]))
    assert [chart.y.low for chart in aligned([one, other])] == pytest.approx([0.1, 0.1])


VALUES = st.none() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(VALUES, VALUES), max_size=5))
def test_csv_can_be_read_back(rows):
    text = DataTable(("a", "b"), tuple(rows)).to_csv()
    head, *found = csv.reader(io.StringIO(text, newline=""))
    assert head == ["a", "b"]
    assert len(found) == len(rows)
    for row, read in zip(rows, found, strict=True):
        for value, cell in zip(row, read, strict=True):
            if isinstance(value, str):
                assert not cell.startswith(FORMULA[:-1])
                assert undo_defuse(cell) == plain(value)
            elif value is None:
                assert cell == ""
            else:
                assert math.isclose(float(cell), value, rel_tol=0)


def test_numbers_of_numpy_are_written_as_numbers():
    table = DataTable(("a", "b", "c"), ((np.float64(0.1), np.int64(3), np.float32(0.5)),))
    assert table.to_csv().splitlines()[1] == "0.1,3,0.5"


def test_a_method_looks_the_same_in_all_stories():
    symbols = label_symbols([bare_story(), digits_story()])
    assert symbols["uniform"] == label_symbols([digits_story()])["uniform"]
    assert set(symbols) == {"uniform", "small-loss", "prune4rel (label-aware)"}
