import numpy as np
import pytest
from tests.instances import many

from prune4rel.judging import similar
from prune4rel.judging.similar import find_similar, nearest_among, reduce, unit_rows


def rows_of(seed, n=60, dim=5):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, dim)).round(1)
    rows[n // 2] = rows[0]
    return rows


def oracle(units, k):
    """Sort everybody by the cosine in double precision."""
    cosines = units.astype(np.float64) @ units.astype(np.float64).T
    found = []
    for row in range(len(units)):
        others = [x for x in range(len(units)) if x != row]
        found.append(sorted(others, key=lambda x: (-np.rint(cosines[row, x] * 2**22), x))[:k])
    return np.array(found), np.take_along_axis(cosines, np.array(found), axis=1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 7, 100])
def test_the_nearest_are_those_of_the_oracle(seed, k):
    units = unit_rows(rows_of(seed))
    found = find_similar(units, k)
    indices, cosines = oracle(units, k)
    assert found.exact
    np.testing.assert_allclose(found.similarities, cosines, atol=3e-7)
    np.testing.assert_array_equal(found.indices, indices)


def test_beyond_the_limit_candidates_come_from_components_and_are_ranked_in_full(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 30)) * np.r_[np.full(4, 3.0), np.full(26, 0.1)]
    units = unit_rows(rows)
    monkeypatch.setattr(similar, "EXACT_WORK", 0)
    monkeypatch.setattr(similar, "REDUCED", 6)
    found = find_similar(units, 5)
    indices, _ = oracle(units, 5)
    assert not found.exact
    assert np.mean([len({*a} & {*b}) / 5 for a, b in zip(found.indices, indices, strict=True)]) > 0.95
    cosines = (units[:, None, :].astype(np.float64) * units[found.indices]).sum(axis=2)
    np.testing.assert_allclose(found.similarities, cosines, atol=3e-7)
    assert (np.diff(found.similarities, axis=1) <= 0).all()


@pytest.mark.parametrize("width", [2, 4, 8])
def test_the_share_found_is_told(monkeypatch, width):
    rng = np.random.default_rng(1)
    units = unit_rows(rng.normal(size=(250, 12)))
    monkeypatch.setattr(similar, "EXACT_WORK", 0)
    monkeypatch.setattr(similar, "REDUCED", width)
    monkeypatch.setattr(similar, "BLOCK", 64)
    found = find_similar(units, 5)
    indices, _ = oracle(units, 5)
    shares = [len({*a} & {*b}) / 5 for a, b in zip(found.indices, indices, strict=True)]
    assert found.found == pytest.approx(np.mean(shares), abs=1e-12)
    assert 0.1 < found.found < 0.999


def test_many_are_looked_for_in_cells(monkeypatch):
    units = unit_rows(many(3000, dim=24, clusters=60).rows)
    exact = find_similar(units, 5)
    monkeypatch.setattr(similar, "EXACT_WORK", 0)
    found = find_similar(units, 5)
    share = np.mean([np.isin(a, b).mean() for a, b in zip(found.indices, exact.indices, strict=True)])
    assert 0.95 < share < 1
    assert found.found == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("work", [similar.EXACT_WORK, 0])
def test_threads_do_not_matter(monkeypatch, work):
    monkeypatch.setattr(similar, "EXACT_WORK", work)
    units = unit_rows(rows_of(0, n=200))
    once = find_similar(units, 5)
    monkeypatch.setenv("PRUNE4REL_THREADS", "1")
    again = find_similar(units, 5)
    np.testing.assert_array_equal(once.indices, again.indices)
    np.testing.assert_array_equal(once.similarities, again.similarities)


def test_the_nearest_among_others(monkeypatch):
    rng = np.random.default_rng(1)
    a, b = unit_rows(rng.normal(size=(50, 4))), unit_rows(rng.normal(size=(37, 4)))
    monkeypatch.setattr(similar, "BLOCK", 8)
    indices, cosines = nearest_among(a, b)
    product = a @ b.T
    np.testing.assert_array_equal(indices, product.argmax(axis=1))
    np.testing.assert_allclose(cosines, product.max(axis=1), atol=1e-6)


def test_one_row_has_no_neighbours_and_equal_rows_are_no_trouble():
    assert find_similar(unit_rows(np.ones((1, 3)))).indices.shape == (1, 0)
    found = find_similar(unit_rows(np.ones((4, 3))), 2)
    assert found.similarities.tolist() == [[0.0, 0.0]] * 4


def test_leading_components_keep_most_of_a_row():
    rng = np.random.default_rng(0)
    rows = unit_rows(rng.normal(size=(100, 10)) * np.r_[5.0, 4.0, np.full(8, 0.01)])
    assert np.linalg.norm(reduce(rows, 2), axis=1).min() > 0.9
