import sys
from types import SimpleNamespace

import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.report import map_kind, map_of, projection


def oracle(rows):
    """Two main components by a full singular value decomposition."""
    centred = rows - rows.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T


@pytest.mark.parametrize(("n", "d"), [(300, 40), (300, 5), (20, 64)])
def test_is_the_principal_plane(n, d, rng, monkeypatch):
    monkeypatch.setattr(projection, "rows_per_block", lambda _: 7)
    rows = rng.normal(size=(n, d)) * np.geomspace(9, 0.5, d) + 5
    found, wanted = map_of(rows, kind="pca"), oracle(rows)
    signs = np.sign((found * wanted).sum(axis=0))
    np.testing.assert_allclose(found * signs, wanted, atol=2e-3 * np.abs(wanted).max())


def test_same_seed_same_map_and_any_seed_nearly_so(rng):
    rows = rng.normal(size=(200, 30)) * np.geomspace(5, 0.1, 30)
    np.testing.assert_array_equal(map_of(rows, 3, kind="pca"), map_of(rows, 3, kind="pca"))
    np.testing.assert_allclose(map_of(rows, 3, kind="pca"), map_of(rows, 4, kind="pca"), atol=1e-2)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (1, 6), (4, 1), (5, 20)])
def test_degenerate_embeddings_have_a_map(shape):
    found = map_of(np.ones(shape, dtype=np.float16), kind="pca")
    assert found.shape == (shape[0], 2)
    assert np.abs(found).max(initial=0) < 1e-6


def test_refuses_what_is_no_table():
    with pytest.raises(InputError, match="two dimensions"):
        map_of(np.zeros(3))
    with pytest.raises(InputError, match="one of auto, pca, umap"):
        map_of(np.zeros((3, 3)), kind="tsne")


def test_umap_is_named_with_its_extra_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(projection, "find_spec", lambda _: None)
    assert map_kind(10_000) == "PCA"
    with pytest.raises(InputError, match=r"prune4rel\[umap\]"):
        map_kind(10_000, "umap")


def test_umap_is_used_where_it_is_installed(monkeypatch, rng):
    asked = {}

    class UMAP:
        def __init__(self, **options):
            asked.update(options)

        def fit_transform(self, rows):
            return rows[:, :2] * 2

    monkeypatch.setattr(projection, "find_spec", lambda _: object())
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    rows = rng.normal(size=(60, 5))
    np.testing.assert_allclose(map_of(rows, 9), rows[:, :2] * 2, rtol=1e-6)
    assert asked["random_state"] == 9
    assert (map_kind(60), map_kind(60, "pca"), map_kind(10)) == ("UMAP", "PCA", "PCA")
