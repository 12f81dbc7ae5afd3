import numpy as np
import pytest

from prune4rel.half import widen


def test_every_half_precision_number_is_widened_exactly():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    np.testing.assert_array_equal(widen(every), every.astype(np.float32), strict=True)


def test_single_precision_rows_are_not_copied(rng):
    rows = rng.normal(size=(4, 3)).astype(np.float32)
    assert np.shares_memory(widen(rows), rows)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_any_layout_becomes_contiguous(rng, kind):
    rows = np.asfortranarray(rng.normal(size=(6, 4)).astype(kind))[::2]
    found = widen(rows)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, rows.astype(np.float32), strict=True)
