import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.greedy.groups import Groups
from prune4rel.greedy.pool import best_first, draw_pool

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
