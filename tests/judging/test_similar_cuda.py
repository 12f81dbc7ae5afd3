"""Neighbours as a GPU finds them, held against the processor's: on a GPU where there is one, else on PyTorch's CPU."""

import numpy as np
import pytest

from prune4rel.judging.similar import find_similar, unit_rows

torch = pytest.importorskip("torch")

similar_cuda = pytest.importorskip("prune4rel.judging.similar_cuda")
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"


def find(units, k):
    return similar_cuda.find_similar_there(torch.from_numpy(units).to(DEVICE), k)


def clouds(n, dim):
    """Rows in sixty clouds, some way apart."""
    rng = np.random.default_rng(0)
    return unit_rows(rng.normal(size=(60, dim))[rng.integers(0, 60, n)] + 0.5 * rng.normal(size=(n, dim)))


def same(found, others):
    return np.mean([np.isin(a, b).mean() for a, b in zip(found, others, strict=True)])


@pytest.mark.parametrize(("queries", "columns"), [(8192, 131_072), (128, 100), (7, 500)])
def test_everyone_is_compared_with_everybody_tile_by_tile(monkeypatch, queries, columns):
    monkeypatch.setattr(similar_cuda, "QUERIES", queries)
    monkeypatch.setattr(similar_cuda, "COLUMNS", columns)
    monkeypatch.setattr(similar_cuda, "AT_ONCE", 2000)
    units = unit_rows(np.random.default_rng(0).normal(size=(500, 16)))
    found, here = find(units, 4), find_similar(units, 4)
    assert (found.indices == here.indices).mean() > 0.999
    np.testing.assert_allclose(found.similarities, here.similarities, atol=1e-6)
    assert found.found > 0.999


def test_ties_go_to_the_lowest_index():
    found = find(unit_rows(np.repeat(np.eye(3), 5, axis=0)), 3)
    assert found.indices[:5].tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("width", [100, 18])
def test_in_cells_most_are_found_and_the_share_is_told(monkeypatch, width):
    monkeypatch.setattr(similar_cuda, "ALL_ROWS", 0)
    monkeypatch.setattr(similar_cuda, "REDUCED", width)
    monkeypatch.setattr(similar_cuda, "AT_ONCE", 2**14)
    units = clouds(3000, 24)
    found, here = find(units, 5), find_similar(units, 5)
    share = same(found.indices, here.indices)
    assert share > (0.95 if width == 100 else 0.6)
    assert found.found == pytest.approx(share, abs=0.04)
    assert not found.exact
    assert (np.diff(found.similarities, axis=1) <= 0).all()
    assert (found.indices != np.arange(3000)[:, None]).all()


@pytest.mark.parametrize("share", [0.6, 0.9])
def test_the_share_that_is_aimed_at_is_found(share):
    units = clouds(3000, 12)
    places = similar_cuda.likely_places(torch.from_numpy(units).to(DEVICE), 11, share).cpu().numpy()
    here = np.concatenate([np.arange(3000)[:, None], find_similar(units, 10).indices], axis=1)
    assert same(places, here) > share - 0.03
    assert all(len(set(row)) == 11 for row in places.tolist())


def test_who_meets_few_others_is_compared_with_everybody():
    units = clouds(400, 8)
    places = similar_cuda.likely_places(torch.from_numpy(units).to(DEVICE), 60, 0.05)
    assert int(places.min()) >= 0


@pytest.mark.parametrize(("n", "indices"), [(1, [[]]), (2, [[1], [0]])])
def test_hardly_any_rows(n, indices):
    assert find(unit_rows(np.eye(n, 3)), 5).indices.tolist() == indices
