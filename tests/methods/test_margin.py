import pytest
from tests.oracles.ranking import (
    assert_follows_the_examples,
    assert_ranks_by,
    assert_same_from_disk_in_blocks,
    distinct,
    instance,
)
from tests.planted import EASY, HARD, MISLABELLED, N, assert_twins_side_by_side, places


def margin(p):
    """Highest minus second; where there is one class, the second is nothing."""
    first, second = sorted([*map(float, p), 0.0], reverse=True)[:2]
    return first - second


@pytest.mark.parametrize("seed", range(12))
def test_ranks_by_the_gap_between_the_two_likeliest_classes(seed):
    arrays = instance(seed)
    assert_ranks_by("margin", arrays, [margin(p) for p in arrays["probabilities"]], keep="lowest")


def test_follows_the_examples():
    assert_follows_the_examples("margin", distinct())


def test_blocks_on_disk(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("margin", monkeypatch, tmp_path)


def test_hard_first_and_what_the_model_is_sure_of_last_mislabelled_or_not():
    place = places("margin")
    assert place[HARD] == 0
    assert {place[EASY], place[MISLABELLED]} == {N - 2, N - 1}
    assert_twins_side_by_side(place)
