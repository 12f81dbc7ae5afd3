import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.instances import instances, many, points_of
from tests.oracles import geometry as oracle

from prune4rel.neighbours.euclidean import (
    Space,
    column_sums,
    kappa,
    squared_distance,
    squared_distances_to,
)

SCALES = (1e-42, 1e-30, 1e-10, 1.0, 1e10, 1e30, 1e37)


@given(arrays(np.float32, (2, 7), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_a_squared_distance_is_right_to_twelve_digits(rows):
    found = squared_distance(*rows)
    assert found == pytest.approx(float(oracle.squared(*oracle.exact(rows))), rel=1e-12)
    assert found == squared_distance(*rows[::-1])
    assert squared_distance(rows[0], rows[0]) == 0


@pytest.mark.parametrize("dim", [1, 40, 700])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4])
def test_half_a_squared_distance_is_never_below_its_bound(rng, dim, offset):
    rows = (rng.normal(size=(120, dim)) * rng.choice([1e-3, 1, 30], size=(120, 1)) + offset).astype(np.float32)
    space = Space.of(points_of(rows))
    everyone = np.arange(120)
    bound = space.halves[:, None].astype(np.float64) + space.halves - space.products(everyone)
    true = ((rows[:, None].astype(np.float64) - rows) ** 2).sum(axis=2) * space.unit
    assert (bound <= true + 1e-30).all()
    shifted = space.operand(rows).astype(np.float64)
    squares = (shifted**2).sum(axis=1)
    assert (true - bound <= 2.1 * kappa(dim) * (squares[:, None] + squares) / 2 + 1e-30).all()


@given(instances(n=st.integers(1, 12)), st.lists(st.integers(0, 11), min_size=1, max_size=6))
def test_nearest_is_that_of_exact_arithmetic(instance, some):
    space = Space.of(instance.points)
    some = np.array(some) % len(instance)
    nearest = np.full(len(instance), np.inf)
    for part in np.array_split(some, 2):
        if part.size:
            space.lower_nearest(part, nearest)
    rows = oracle.exact(instance.rows)
    expected = [float(min(oracle.squared(row, rows[x]) for x in some)) for row in rows]
    np.testing.assert_allclose(nearest, expected, rtol=1e-12)


@pytest.mark.parametrize("scale", SCALES)
def test_tiny_and_huge_rows_are_at_the_distances_of_ordinary_ones(scale):
    rows = np.sign(many(80, dim=5).rows)
    nearest = np.full(80, np.inf)
    scaled = (rows * scale).astype(np.float32)
    Space.of(points_of(scaled)).lower_nearest(np.array([3, 5, 70]), nearest)
    near = ((rows[:, None] - rows[[3, 5, 70]]) ** 2).sum(axis=2, dtype=np.float64).min(axis=1)
    unit = float(np.abs(scaled).max())
    np.testing.assert_allclose(nearest, near * unit * unit, rtol=1e-11)


def test_tiny_rows_among_huge_ones_are_told_apart(rng):
    rows = np.concatenate([rng.normal(size=(20, 3)) * 1e-20, rng.normal(size=(20, 3)) * 1e20]).astype(np.float32)
    nearest = np.full(40, np.inf)
    Space.of(points_of(rows)).lower_nearest(np.arange(0, 20, 3), nearest)
    wide = rows.astype(np.float64)
    near = ((wide[:, None] - wide[0:20:3]) ** 2).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(nearest, near, rtol=1e-11)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_and_half_precision_change_no_bit(monkeypatch, threads):
    rows = many(2000, dim=9).rows.astype(np.float16)
    plain, other = np.full(2000, np.inf), np.full(2000, np.inf)
    Space.of(points_of(rows.astype(np.float32))).lower_nearest(np.arange(40), plain)
    monkeypatch.setenv("PRUNE4REL_THREADS", threads)
    Space.of(points_of(rows)).lower_nearest(np.arange(40), other)
    np.testing.assert_array_equal(plain, other)


def test_sums_and_distances_from_them_do_not_depend_on_blocks(monkeypatch):
    points = points_of(many(500, dim=6).rows.astype(np.float16))
    some = np.arange(0, 500, 7)
    whole = column_sums(points, some)
    far = squared_distances_to(points, some, whole, len(some))
    monkeypatch.setattr("prune4rel.blocks.BLOCK_BYTES", 1000)
    np.testing.assert_array_equal(column_sums(points, some), whole)
    np.testing.assert_array_equal(squared_distances_to(points, some, whole, len(some)), far)
    rows = points.rows[some].astype(np.float64)
    expected = ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
    np.testing.assert_allclose(far / len(some) ** 2, expected, rtol=1e-11, atol=1e-20)
