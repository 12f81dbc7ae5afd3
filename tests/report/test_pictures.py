import io
import sys
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tests.report.stories import bare_story, digits_story

from prune4rel import InputError
from prune4rel.report.charts import Missing
from prune4rel.report.pictures import cards_of, gallery_of, picture_uri, surest


def pixels_of(uri):
    head, data = uri.split(",", 1)
    assert head == "data:image/webp;base64"
    return np.asarray(Image.open(io.BytesIO(b64decode(data))).convert("RGB"))


def test_cards_are_corrections_surest_first_with_their_own_pictures():
    story = digits_story()
    gallery = gallery_of(story, most=50)
    assert len(gallery.cards) == 50
    assert gallery.corrections == (story.corrected != story.labels).sum()
    sure = [card.confidence for card in gallery.cards]
    assert sure == sorted(sure, reverse=True)
    for card in gallery.cards:
        assert (card.given, card.corrected) == (story.labels[card.index], story.corrected[card.index])
        assert card.given != card.corrected
        assert card.right == (story.corrected[card.index] == story.clean_labels[card.index])
        np.testing.assert_array_equal(pixels_of(card.picture), story.thumbnails(np.array([card.index]))[0])


def test_every_given_class_has_a_card():
    story = digits_story()
    assert {card.given for card in gallery_of(story, most=10).cards} == set(range(10))


def test_fewer_corrections_than_places_are_all_taken():
    taken = surest(np.array([2, 0, 3]), np.array([0.1, 0.9, 0.5, 0.5]), np.array([0, 0, 0, 1]), most=10)
    assert taken.tolist() == [2, 3, 0]


def test_large_pictures_become_thumbnails(rng):
    pixels = rng.integers(0, 256, (300, 200, 3), dtype=np.uint8)
    assert pixels_of(picture_uri(pixels)).shape == (96, 64, 3)


@pytest.mark.parametrize(
    ("thumbnails", "trouble"),
    [
        (None, "not pictures"),
        (lambda indices: np.zeros((len(indices), 4, 4), dtype=np.uint8), "could not be shown"),
        (lambda indices: np.zeros((len(indices), 4, 4, 3)), "could not be shown"),
    ],
)
def test_without_pictures_the_labels_are_left(thumbnails, trouble):
    gallery = gallery_of(replace(digits_story(), thumbnails=thumbnails), most=5)
    assert trouble in gallery.trouble
    assert [card.picture for card in gallery.cards] == [None] * 5


@pytest.mark.parametrize("error", [InputError("files are gone"), FileNotFoundError("gone")])
def test_pictures_that_cannot_be_read_are_told(error):
    def broken(_):
        raise error

    assert "gone" in gallery_of(replace(digits_story(), thumbnails=broken)).trouble


def test_without_pillow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    gallery = gallery_of(digits_story(), most=3)
    assert "prune4rel[report]" in gallery.trouble
    assert len(gallery.cards) == 3


def test_nothing_to_show_says_why():
    assert "No model" in gallery_of(bare_story()).reason
    labels = np.array([0, 1, 0, 1])
    agreed = gallery_of(bare_story(corrected=labels, confidence=np.ones(4)))
    assert isinstance(agreed, Missing)
    assert "agrees" in agreed.reason


def test_the_table_names_classes_and_ids():
    story = replace(digits_story(), ids=np.array([f"img{place}" for place in range(digits_story().n)]))
    row = gallery_of(story, most=1).table().rows[0]
    assert row[1] == f"img{row[0]}"
    assert row[2] == story.class_names[story.labels[row[0]]]


def test_texts_take_the_place_of_pictures():
    labels = np.array([0, 1, 1])
    told = cards_of(
        np.array([2, 0]),
        ("good", "bad"),
        given=labels,
        corrected=1 - labels,
        confidence=np.array([0.9, 0.8, 1.0]),
        texts=["a <b>", "b", "c"],
    )
    assert [(card.text, card.picture, card.name) for card in told.cards] == [("c", None, "#2"), ("a <b>", None, "#0")]
    assert (told.trouble, told.checked, told.corrections) == ("", False, 2)
