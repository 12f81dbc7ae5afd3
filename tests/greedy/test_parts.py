from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.greedy.parts import Part, even, merged, proportional, split

counts = st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(any)


def round_robin(have, size):
    shares = [0] * len(have)
    for _ in range(size):
        turn = min((g for g in range(len(have)) if shares[g] < have[g]), key=lambda g: (shares[g], g))
        shares[turn] += 1
    return shares


def largest_remainder(have, size):
    exact = [Fraction(count * size, sum(have)) for count in have]
    shares = [int(share) for share in exact]
    by_remainder = sorted(range(len(have)), key=lambda g: (shares[g] - exact[g], g))
    for g in by_remainder[: size - sum(shares)]:
        shares[g] += 1
    return shares


@given(counts, st.data())
def test_even_shares_go_round(have, data):
    size = data.draw(st.integers(1, sum(have)))
    assert even(np.array(have), size).tolist() == round_robin(have, size)


@given(counts, st.data())
def test_proportional_shares_have_the_largest_remainders_rounded_up(have, data):
    size = data.draw(st.integers(0, sum(have)))
    shares = proportional(np.array(have), size)
    assert shares.tolist() == largest_remainder(have, size)
    assert shares.sum() == size
    assert (shares <= have).all()


@pytest.mark.parametrize("balanced", [False, True])
def test_large_classes_are_cut_at_random_and_completely(balanced):
    labels = np.array([0] * 25 + [3] * 4)
    parts = split(labels, 12, balanced=balanced, chunk=10, seed=1)
    assert [part.label for part in parts] == [0, 0, 0, 3]
    assert max(len(part.members) for part in parts) <= 10
    assert sum(part.budget for part in parts) == 12
    assert np.sort(np.concatenate([part.members for part in parts])).tolist() == list(range(29))
    assert all((np.diff(part.members) > 0).all() for part in parts)
    again = split(labels, 12, balanced=balanced, chunk=10, seed=1)
    other = split(labels, 12, balanced=balanced, chunk=10, seed=2)
    assert all(np.array_equal(a.members, b.members) for a, b in zip(parts, again, strict=True))
    assert not all(np.array_equal(a.members, b.members) for a, b in zip(parts, other, strict=True))


def test_merging_keeps_the_order_within_a_part_even_where_gains_rise():
    parts = [Part(0, np.arange(3), 3), Part(1, np.arange(3, 5), 2)]
    picks = [np.array([0, 1, 2]), np.array([3, 4])]
    gains = [np.array([1.0, 5.0, 0.5]), np.array([3.0, 0.75])]
    assert merged(parts, picks, gains, balanced=False).tolist() == [3, 0, 1, 4, 2]
    assert merged(parts, picks, gains, balanced=True).tolist() == [0, 3, 1, 4, 2]


def test_classes_take_turns_also_where_they_are_cut():
    parts = [Part(0, np.arange(2), 1), Part(0, np.arange(2, 4), 1), Part(1, np.arange(4, 6), 2)]
    picks = [np.array([0]), np.array([2]), np.array([4, 5])]
    gains = [np.array([1.0]), np.array([2.0]), np.array([9.0, 8.0])]
    assert np.concatenate(picks)[merged(parts, picks, gains, balanced=True)].tolist() == [2, 4, 0, 5]
