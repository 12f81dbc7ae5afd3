import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import instances, many, points_of
from tests.oracles import geometry as oracle

from prune4rel.neighbours.euclidean import Space
from prune4rel.neighbours.nearest import likely_neighbours, nearest_neighbours, nearest_of


@given(instances(n=st.integers(1, 14)), st.integers(1, 6), st.integers(1, 16))
def test_neighbours_are_those_of_exact_arithmetic(instance, k, tile):
    found = nearest_neighbours(Space.of(instance.points), k, tile=tile)
    indices, squares = oracle.nearest_neighbours(instance.rows, k)
    assert found.indices.tolist() == indices
    np.testing.assert_allclose(found.squared, np.array(squares).reshape(found.squared.shape), rtol=1e-12)


@given(instances(n=st.integers(1, 14)), st.integers(1, 6), st.data())
def test_those_of_some_rows_are_the_same(instance, k, data):
    space = Space.of(instance.points)
    start = data.draw(st.integers(0, len(instance.rows) - 1))
    stop = data.draw(st.integers(start + 1, len(instance.rows)))
    found, alone = nearest_of(space, (start, stop), k), nearest_neighbours(space, k)
    assert found.indices.tolist() == alone.indices[start:stop].tolist()
    assert found.squared.tolist() == alone.squared[start:stop].tolist()


@pytest.mark.parametrize("kind", ["clustered", "lattice"])
def test_many_of_some_rows_are_the_same(rng, monkeypatch, kind):
    monkeypatch.setattr("prune4rel.neighbours.nearest.TILE", 64)
    rows = many(400, dim=30).rows if kind == "clustered" else rng.integers(-2, 3, size=(400, 3)).astype(np.float32)
    space = Space.of(points_of(rows))
    found, alone = nearest_of(space, (30, 390), 5), nearest_neighbours(space, 5)
    np.testing.assert_array_equal(found.indices, alone.indices[30:390])
    np.testing.assert_array_equal(found.squared, alone.squared[30:390])


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


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_share_of_nearest_neighbours_that_is_reported_is_found(share, k):
    space = Space.of(many(1500, dim=12, clusters=40).points)
    wanted = nearest_neighbours(space, k)
    found, cells = likely_neighbours(space, k, share=share)
    same = np.mean([np.isin(a, b).mean() for a, b in zip(found.indices, wanted.indices, strict=True)])
    assert cells.found == pytest.approx(same, abs=0.03)
    assert same > share - 0.03
    assert (found.squared >= wanted.squared).all()
    assert all(len(set(row)) == k for row in found.indices.tolist())


def test_nearest_neighbours_in_one_cell_are_exact():
    space = Space.of(many(15, dim=3).points)
    found, cells = likely_neighbours(space, 4, share=0.9)
    assert len(cells.centres) == 1
    np.testing.assert_array_equal(found.indices, nearest_neighbours(space, 4).indices)
    np.testing.assert_array_equal(found.squared, nearest_neighbours(space, 4).squared)


def test_likely_neighbours_of_duplicates_are_the_lowest_and_nobody_is_left_alone():
    """All rows are equal, so that one cell has them all and others nobody."""
    found, _ = likely_neighbours(Space.of(points_of(np.ones((600, 4), dtype=np.float32))), 3, share=0.9)
    assert found.indices[0].tolist() == [1, 2, 3]
    assert found.indices[599].tolist() == [0, 1, 2]
    assert (found.squared == 0).all()


@pytest.mark.parametrize("workers", ["1", "3"])
def test_likely_neighbours_are_the_same_on_any_number_of_threads(monkeypatch, workers):
    space = Space.of(many(1500, dim=12, clusters=40).points)
    one, _ = likely_neighbours(space, 3, share=0.8, seed=7)
    monkeypatch.setenv("PRUNE4REL_THREADS", workers)
    other, _ = likely_neighbours(space, 3, share=0.8, seed=7)
    np.testing.assert_array_equal(one.indices, other.indices)


def test_rows_with_few_others_in_their_cells_are_compared_with_everybody():
    """More neighbours are wanted than a cell has rows."""
    space = Space.of(many(400, dim=8).points)
    found, _ = likely_neighbours(space, 60, share=0.05)
    assert (found.indices < 400).all()
    assert np.isfinite(found.squared).all()


def test_nobody_looks_into_more_cells_than_told():
    """Rows without any neighbourhood would look nearly everywhere; what is found then is told all the same."""
    rows = np.random.default_rng(0).normal(size=(3000, 30)).astype(np.float32)
    space = Space.of(points_of(rows))
    wanted = nearest_neighbours(space, 4)
    shares = []
    for most in (3, 10, None):
        found, cells = likely_neighbours(space, 4, share=0.9, most=most)
        shares.append(np.mean([np.isin(a, b).mean() for a, b in zip(found.indices, wanted.indices, strict=True)]))
        assert cells.found == pytest.approx(shares[-1], abs=0.05)
        assert most is None or cells.looked_at <= most / len(cells.centres)
    assert shares[0] < shares[1] < shares[2]
