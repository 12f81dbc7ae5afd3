import sys
from base64 import b64decode
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.report.stories import bare_story, digits_story

from prune4rel import InputError
from prune4rel.report import atlas, map_kind, map_of
from prune4rel.report.atlas import MOST_ID_BYTES, atlas_of, ids_fit
from prune4rel.report.charts import Missing


def oracle(rows):
    """Two main components by a full singular value decomposition."""
    centred = rows - rows.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T


@pytest.mark.parametrize(("n", "d"), [(300, 40), (300, 5), (20, 64)])
def test_is_the_principal_plane(n, d, rng, monkeypatch):
    monkeypatch.setattr(atlas, "rows_per_block", lambda _: 7)
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
    monkeypatch.setattr(atlas, "find_spec", lambda _: None)
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

    monkeypatch.setattr(atlas, "find_spec", lambda _: object())
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    rows = rng.normal(size=(60, 5))
    np.testing.assert_allclose(map_of(rows, 9), rows[:, :2] * 2, rtol=1e-6)
    assert asked["random_state"] == 9
    assert (map_kind(60), map_kind(60, "pca"), map_kind(10)) == ("UMAP", "PCA", "PCA")


def unpacked(array):
    kind = {"Uint8Array": "<u1", "Uint16Array": "<u2", "Uint32Array": "<u4"}[array["type"]]
    return np.frombuffer(b64decode(array["data"]), dtype=kind)


def test_the_page_gets_every_array_back():
    story = digits_story()
    page = atlas_of(story).to_page()
    arrays = {name: unpacked(array) for name, array in page["arrays"].items()}
    np.testing.assert_array_equal(arrays["labels"], story.labels)
    np.testing.assert_array_equal(arrays["corrected"], story.corrected)
    np.testing.assert_array_equal(arrays["clean_labels"], story.clean_labels)
    np.testing.assert_array_equal(arrays["flags"] & 1 > 0, story.corrected != story.labels)
    np.testing.assert_array_equal(arrays["flags"] & 2 > 0, story.clean_labels != story.labels)
    np.testing.assert_array_equal(arrays["flags"] & 4 > 0, story.picked)
    np.testing.assert_allclose(arrays["confidence"] / 255, story.confidence, atol=1 / 500)
    assert "index" not in arrays


def test_places_keep_their_shape():
    story = digits_story()
    page = atlas_of(story).to_page()
    x, y = (unpacked(page["arrays"][name]) / 65535 for name in "xy")
    scale = np.ptp(story.map_xy, axis=0).max()
    np.testing.assert_allclose(x - x.mean(), (story.map_xy[:, 0] - story.map_xy[:, 0].mean()) / scale, atol=1e-4)
    np.testing.assert_allclose(y - y.mean(), (story.map_xy[:, 1] - story.map_xy[:, 1].mean()) / scale, atol=1e-4)


def test_too_many_points_are_sampled_and_numbered():
    some = atlas_of(digits_story(), most=100)
    index = unpacked(some.to_page()["arrays"]["index"])
    assert len(index) == 100
    assert (np.diff(index.astype(int)) > 0).all()
    np.testing.assert_array_equal(unpacked(some.to_page()["arrays"]["labels"]), digits_story().labels[index])


def test_missing_parts_have_no_layer():
    bare = replace(digits_story(), clean_labels=None, corrected=None, confidence=None, spotlight=None)
    found = atlas_of(bare)
    assert found.layers == []
    assert set(found.to_page()["arrays"]) == {"x", "y", "labels", "flags"}
    assert isinstance(atlas_of(bare_story()), Missing)
    assert isinstance(atlas_of(bare_story(map_xy=np.full((4, 2), np.nan))), Missing)


def test_examples_without_a_place_are_left_out():
    story = bare_story(map_xy=np.array([[0, 0], [np.nan, 1], [1, 1], [np.inf, 0]]))
    assert atlas_of(story).shown.tolist() == [0, 2]


def test_many_classes_take_wider_numbers():
    names = tuple(f"class {number}" for number in range(300))
    story = bare_story(
        class_names=names, class_counts=(0,) * 300, labels=np.array([0, 299, 1, 2]), map_xy=np.eye(4)[:, :2]
    )
    assert unpacked(atlas_of(story).to_page()["arrays"]["labels"]).tolist() == [0, 299, 1, 2]


def test_ids_travel_only_where_they_are_short():
    short = bare_story(ids=np.array(list("abcd")), map_xy=np.zeros((4, 2)))
    assert ids_fit([short])
    assert atlas_of(short).to_page()["ids"] == list("abcd")
    assert "ids" not in atlas_of(short).to_page(ids=False)
    assert not ids_fit([bare_story(ids=np.array(["x" * MOST_ID_BYTES] * 4))])
