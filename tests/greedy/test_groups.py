import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.greedy.groups import Groups, next_group


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
