import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel import blocks
from prune4rel.blocks import map_blocks, rows_per_block, spans


@given(st.integers(0, 50), st.integers(1, 60))
def test_spans_cover_everything_once_in_order(n, size):
    pieces = list(spans(n, size))
    assert [x for start, stop in pieces for x in range(start, stop)] == list(range(n))
    assert all(stop - start <= size for start, stop in pieces)


@pytest.mark.parametrize(("width", "rows"), [(1, 2**20), (2**20, 1), (2**30, 1), (0, 2**20)])
def test_blocks_are_about_eight_megabytes(width, rows):
    assert rows_per_block(width) == rows


@pytest.mark.parametrize("n", [0, 1, 10, 11, 35])
def test_results_come_in_order_of_the_blocks(monkeypatch, n):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 80)
    assert map_blocks(lambda start, stop: (start, stop), n, 1) == list(spans(n, 10))


def test_single_block_stays_in_this_thread():
    assert map_blocks(lambda *_: threading.current_thread(), 10, 1) == [threading.current_thread()]


def test_failure_in_a_block_gets_through(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8)

    def fail(start, _stop):
        if start == 3:
            raise KeyError(start)

    with pytest.raises(KeyError, match="3"):
        map_blocks(fail, 5, 1)
