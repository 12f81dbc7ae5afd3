import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.ranking import assert_follows_the_examples, assert_ranks_by
from tests.planted import EASY, HARD, MISLABELLED, N, assert_twins_side_by_side, places

import prune4rel as p4r


def forgetting_events(history):
    """Count right-then-wrong in a history of predictions; infinity where none was ever right."""
    if not any(history):
        return math.inf
    return sum(before and not after for before, after in itertools.pairwise(history))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("never_learnt", ["highest", "lowest"])
def test_ranks_by_the_forgetting_events(seed, never_learnt):
    rng = np.random.default_rng(seed)
    histories = rng.random((20, 8)) < rng.choice([0.0, 0.5, 0.9], (20, 1))
    counts = [forgetting_events(history) for history in histories.tolist()]
    arrays = {"labels": rng.integers(0, 3, 20), "forgetting": counts}
    expected = [0.0 if never_learnt == "lowest" and math.isinf(count) else count for count in counts]
    assert_ranks_by("forgetting", arrays, expected, keep="highest", never_learnt=never_learnt)


def test_records_and_checks_the_option():
    arrays = {"labels": [0, 0], "forgetting": [1.0, math.inf], "size": 1}
    assert p4r.select("forgetting", **arrays).options["never_learnt"] == "highest"
    with pytest.raises(p4r.InputError, match="did you mean 'lowest'"):
        p4r.select("forgetting", **arrays, never_learnt="low")


@given(st.data())
def test_the_same_share_of_every_class(data):
    n = data.draw(st.integers(1, 40))
    labels = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    counts = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, math.inf]), min_size=n, max_size=n)))
    size = data.draw(st.integers(1, n))
    picks = p4r.select("forgetting", forgetting=counts, labels=labels, size=size, same_share=True).indices
    taken = np.bincount(labels[picks], minlength=4)
    assert len(picks) == size
    assert (np.abs(taken - size / n * np.bincount(labels, minlength=4)) < 1).all()
    for label in range(4):
        members = np.flatnonzero(labels == label)
        best = sorted(members, key=lambda x: (-counts[x], x))[: taken[label]]
        assert [x for x in picks if labels[x] == label] == best
    assert picks.tolist() == sorted(picks, key=lambda x: (-counts[x], x))


def test_the_same_share_and_the_same_number_are_not_to_be_had_together():
    with pytest.raises(p4r.InputError, match="choose one"):
        p4r.select("forgetting", labels=[0, 1], forgetting=[1.0, 2.0], size=1, balanced=True, same_share=True)


def test_follows_the_examples(rng):
    arrays = {"labels": rng.integers(0, 3, 40), "forgetting": rng.permutation(40).astype(float)}
    assert_follows_the_examples("forgetting", arrays)


def test_never_learnt_first_then_hard_and_easy_last():
    place = places("forgetting")
    assert place[MISLABELLED] == 0
    assert place[HARD] == 1
    assert place[EASY] == N - 1
    assert_twins_side_by_side(place)


def test_the_variant_puts_what_was_never_learnt_with_the_easy():
    place = places("forgetting", never_learnt="lowest")
    assert place[HARD] == 0
    assert (place[EASY], place[MISLABELLED]) == (N - 2, N - 1)
