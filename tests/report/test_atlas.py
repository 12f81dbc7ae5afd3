from base64 import b64decode
from dataclasses import replace

import numpy as np
from tests.report.stories import bare_story, digits_story

from prune4rel.report.atlas import MOST_ID_BYTES, atlas_of, ids_fit
from prune4rel.report.figure import Missing


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
    atlas = atlas_of(digits_story(), most=100)
    index = unpacked(atlas.to_page()["arrays"]["index"])
    assert len(index) == 100
    assert (np.diff(index.astype(int)) > 0).all()
    np.testing.assert_array_equal(unpacked(atlas.to_page()["arrays"]["labels"]), digits_story().labels[index])


def test_missing_parts_have_no_layer():
    bare = replace(digits_story(), clean_labels=None, corrected=None, confidence=None, spotlight=None)
    atlas = atlas_of(bare)
    assert atlas.layers == []
    assert set(atlas.to_page()["arrays"]) == {"x", "y", "labels", "flags"}
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
