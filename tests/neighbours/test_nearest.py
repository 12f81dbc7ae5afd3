import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import instances, many, points_of
from tests.oracles import geometry as oracle

from prune4rel.neighbours.euclidean import Space
from prune4rel.neighbours.nearest import nearest_neighbours


@given(instances(n=st.integers(1, 14)), st.integers(1, 6), st.integers(1, 16))
def test_neighbours_are_those_of_exact_arithmetic(instance, k, tile):
    found = nearest_neighbours(Space.of(instance.points), k, tile=tile)
    indices, squares = oracle.nearest_neighbours(instance.rows, k)
    assert found.indices.tolist() == indices
    np.testing.assert_allclose(found.squared, np.array(squares).reshape(found.squared.shape), rtol=1e-12)


@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("tile", [5, 64, 1024])
@pytest.mark.parametrize("kind", ["clustered", "lattice"])
def test_tiles_and_threads_do_not_show(rng, monkeypatch, threads, tile, kind):
    rows = many(400, dim=30).rows if kind == "clustered" else rng.integers(-2, 3, size=(400, 3)).astype(np.float32)
    wide = rows.astype(np.float64)
    squares = ((wide[:, None] - wide) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    expected = np.argsort(np.round(squares, 12), axis=1, kind="stable")[:, :5]
    monkeypatch.setenv("PRUNE4REL_THREADS", threads)
    np.testing.assert_array_equal(nearest_neighbours(Space.of(points_of(rows)), 5, tile=tile).indices, expected)


def test_equal_rows_have_the_first_of_them_as_neighbours():
    found = nearest_neighbours(Space.of(points_of(np.ones((3000, 4), dtype=np.float32))), 3)
    np.testing.assert_array_equal(found.indices[5:], np.tile([0, 1, 2], (2995, 1)))
    assert found.indices[:4].tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    assert not found.squared.any()


def test_a_single_row_has_no_neighbours():
    found = nearest_neighbours(Space.of(points_of(np.ones((1, 4), dtype=np.float32))), 3)
    assert found.indices.shape == found.squared.shape == (1, 0)


def test_progress_covers_all_pairs(rng):
    looked_at = []
    space = Space.of(points_of(rng.normal(size=(300, 3)).astype(np.float32)))
    nearest_neighbours(space, 2, tile=8, advance=looked_at.append)
    assert sum(looked_at) == pytest.approx(300 * 301 / 2, rel=0.05)
