import csv
import io
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.report.stories import bare_story, digits_story

from prune4rel.report.figure import FORMULA, Table, label_looks
from prune4rel.report.words import plain

VALUES = st.none() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(VALUES, VALUES), max_size=5))
def test_csv_can_be_read_back(rows):
    text = Table(("a", "b"), tuple(rows)).to_csv()
    head, *found = csv.reader(io.StringIO(text, newline=""))
    assert head == ["a", "b"]
    assert len(found) == len(rows)
    for row, read in zip(rows, found, strict=True):
        for value, cell in zip(row, read, strict=True):
            if isinstance(value, str):
                assert not cell.startswith(FORMULA)
                assert cell.removeprefix("'") == plain(value).removeprefix("'")
            elif value is None:
                assert cell == ""
            else:
                assert math.isclose(float(cell), value, rel_tol=0)


def test_numbers_of_numpy_are_written_as_numbers():
    table = Table(("a", "b", "c"), ((np.float64(0.1), np.int64(3), np.float32(0.5)),))
    assert table.to_csv().splitlines()[1] == "0.1,3,0.5"


def test_a_method_looks_the_same_in_all_stories():
    looks = label_looks([bare_story(), digits_story()])
    assert looks["uniform"] == label_looks([digits_story()])["uniform"]
    assert set(looks) == {"uniform", "small-loss", "prune4rel (label-aware)"}
