import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.prune4rel import next_class

from prune4rel.methods.method import Request
from prune4rel.methods.ranking import keep_best, rounds

numbers = st.sampled_from([0.0, 1.0, -1.0, np.inf, -np.inf]) | st.floats(-5, 5)


def one_by_one(scores, labels, size, *, keep, balanced):
    """Take the best that is left, the lowest index among equals, from the class whose turn it is."""
    picks = []
    for _ in range(size):
        left = np.setdiff1d(np.arange(len(scores)), picks)
        if balanced:
            left = left[labels[left] == next_class(labels, picks, left)]
        best = max if keep == "highest" else min
        picks.append(int(best(left, key=lambda x: (scores[x], -x if keep == "highest" else x))))
    return picks


@given(
    st.lists(st.tuples(numbers, st.integers(0, 3)), min_size=1, max_size=15),
    st.sampled_from(["highest", "lowest"]),
    st.booleans(),
    st.data(),
)
def test_picks_are_those_taken_one_by_one(entries, keep, balanced, data):
    scores, labels = np.array([score for score, _ in entries]), np.array([label for _, label in entries])
    request = Request(size=data.draw(st.integers(1, len(entries))), balanced=balanced)
    outcome = keep_best(scores, labels, request, keep=keep, spice=3)
    assert outcome.indices.tolist() == one_by_one(scores, labels, request.size, keep=keep, balanced=balanced)
    worth = scores if keep == "highest" else -scores
    np.testing.assert_array_equal(outcome.gains, worth[outcome.indices])
    np.testing.assert_array_equal(outcome.scores, scores)
    assert outcome.options == {"spice": 3}
    assert outcome.stats == {"keep": keep}


@pytest.mark.parametrize(("labels", "wanted"), [([5, 5, 7, 5], [0, 1, 0, 2]), ([], []), ([1], [0])])
def test_rounds_count_earlier_entries_of_the_same_label(labels, wanted):
    assert rounds(np.array(labels, dtype=np.int64)).tolist() == wanted
