from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.greedy.groups import Groups, Part, best_first, draw_pool, even, merged, next_group, proportional, split


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20))
def test_groups_hold_their_members_in_ascending_order(labels):
    groups = Groups.make(len(labels), np.array(labels))
    for g, (start, size) in enumerate(zip(groups.starts, groups.sizes, strict=True)):
        wanted = [x for x, label in enumerate(labels) if label == g]
        assert groups.members[start : start + size].tolist() == wanted


def test_without_groups_everyone_is_in_one():
    groups = Groups.make(4, None)
    assert groups.members.tolist() == [0, 1, 2, 3]
    assert groups.sizes.tolist() == [4]
    assert groups.of.tolist() == [0, 0, 0, 0]


def turns(taken, left, count):
    taken, left = np.array(taken), np.array(left)
    order = []
    for _ in range(count):
        g = next_group(taken, left)
        order.append(g)
        taken[g] += 1
        left[g] -= 1
    return order


def test_turns_go_round_and_a_group_that_runs_out_drops_out():
    assert turns([0, 0, 0], [3, 1, 3], 7) == [0, 1, 2, 0, 2, 0, 2]


def test_an_uneven_start_is_evened_out_first():
    assert turns([2, 0, 1], [5, 5, 5], 6) == [1, 1, 2, 0, 1, 2]


def test_a_group_without_members_never_has_its_turn():
    assert turns([0, 0, 0], [2, 0, 2], 4) == [0, 2, 0, 2]


counts = st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(any)


def round_robin(have, size, taken=()):
    shares = list(taken) or [0] * len(have)
    for _ in range(size - sum(shares)):
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
    taken = [data.draw(st.integers(0, count)) for count in have]
    size = data.draw(st.integers(sum(taken), sum(have)))
    assert even(np.array(have), size, np.array(taken)).tolist() == round_robin(have, size, taken)


@given(counts, st.data())
def test_proportional_shares_are_never_below_what_is_taken(have, data):
    taken = np.array([data.draw(st.integers(0, count)) for count in have])
    size = data.draw(st.integers(int(taken.sum()), sum(have)))
    shares = proportional(np.array(have), size, taken)
    assert shares.sum() == size
    assert ((taken <= shares) & (shares <= have)).all()
    free = shares > taken
    if (largest_remainder(have, size) >= taken).all():
        assert shares.tolist() == largest_remainder(have, size)
    elif free.any():
        left = np.where(shares == taken, 0, have)
        assert (abs(shares - left * shares[free].sum() / left.sum())[free] < 1 + 1e-9).all()


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


few_values = st.sampled_from([-np.inf, 0.0, 1.0, 2.0, np.inf])


@given(st.lists(few_values, max_size=12), st.integers(1, 14))
def test_best_first_is_a_sort_cut_short(keys, count):
    wanted = sorted(range(len(keys)), key=lambda place: (-keys[place], place))[:count]
    assert best_first(np.array(keys), count).tolist() == wanted


@given(
    st.lists(st.tuples(few_values, st.booleans(), st.integers(0, 3)), min_size=1, max_size=25),
    st.integers(1, 12),
)
def test_a_pool_holds_the_best_of_every_group_and_bounds_the_rest(entries, wanted):
    keys, gone, labels = map(np.array, zip(*entries, strict=True))
    groups = Groups.make(len(keys), labels)
    pool = draw_pool(keys.astype(float), gone, groups, wanted)
    left = [[x for x in range(len(keys)) if labels[x] == g and not gone[x]] for g in range(labels.max() + 1)]
    share = max(1, wanted // max(1, sum(map(bool, left))))
    members = []
    for g, candidates in enumerate(left):
        ranked = sorted(candidates, key=lambda x: (-keys[x], x))
        members += ranked[:share]
        if len(ranked) > share:
            assert (pool.bounds[g], pool.outside[g]) == (keys[ranked[share]], ranked[share])
        else:
            assert (pool.bounds[g], pool.outside[g]) == (-np.inf, np.iinfo(np.int64).max)
    assert pool.members.tolist() == members
    assert pool.group_of.tolist() == labels[members].tolist()


@pytest.mark.parametrize("wanted", [1, 100])
def test_nobody_left_is_an_empty_pool(wanted):
    pool = draw_pool(np.ones(3), np.ones(3, dtype=bool), Groups.make(3, None), wanted)
    assert pool.members.size == 0
    assert pool.bounds.tolist() == [-np.inf]
