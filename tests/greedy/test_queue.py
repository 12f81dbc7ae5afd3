import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.greedy.queue import LINE, lower, make_queue, pop, put, refill, unload

keys = st.sampled_from([0.0, -0.5, -0.501, -1.0, -40.0, -5000.0, -math.inf]) | st.floats(-2, 0)
falls = st.sampled_from([0.0, 1e-9, 0.004, 0.02, 1.0, 3000.0, math.inf])


class Model:
    """A queue beside the keys its candidates have now, as the greedy loop keeps them."""

    def __init__(self, values, groups):
        self.keys = np.array(values, dtype=float)
        sizes = np.bincount(groups)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        finite = self.keys[np.isfinite(self.keys)]
        self.queue = make_queue(len(values), starts, finite.max() if finite.size else 0.0)
        for x, g in enumerate(groups):
            put(self.queue, g, x, self.keys[x])

    def unload(self, g):
        begin = self.queue.starts[g]
        self.unloaded = slice(begin, begin + unload(self.queue, g))
        return self.queue.heap[self.unloaded].tolist()

    def refill(self, g):
        self.queue.heap_keys[self.unloaded] = self.keys[self.queue.heap[self.unloaded]]
        refill(self.queue, g, self.unloaded.stop - self.unloaded.start)

    def first_of(self, g):
        while self.queue.heap_sizes[g] == 0:
            self.unload(g)
            self.refill(g)
        return int(self.queue.heap[self.queue.starts[g]])

    def lower_first(self, g, key):
        self.keys[self.first_of(g)] = key
        lower(self.queue, g, key)

    def best(self, waiting):
        return min(waiting, key=lambda x: (-self.keys[x], x))


@given(st.lists(st.tuples(keys, st.integers(0, 2)), min_size=1, max_size=60))
def test_candidates_leave_highest_key_first_and_lowest_index_among_equals(entries):
    values, groups = [key for key, _ in entries], [g for _, g in entries]
    model = Model(values, groups)
    for g in set(groups):
        waiting = [x for x, group in enumerate(groups) if group == g]
        for wanted in sorted(waiting, key=lambda x: (-values[x], x)):
            assert model.first_of(g) == wanted
            pop(model.queue, g)
        assert model.queue.heap_sizes[g] == 0


@given(st.lists(keys, min_size=1, max_size=40), st.lists(falls, max_size=80))
def test_order_holds_while_the_first_falls_again_and_again(values, drops):
    model = Model(values, [0] * len(values))
    waiting = set(range(len(values)))
    for drop in drops:
        x = model.first_of(0)
        assert x == model.best(waiting)
        model.lower_first(0, model.keys[x] - drop)
    while waiting:
        x = model.first_of(0)
        assert x == model.best(waiting)
        pop(model.queue, 0)
        waiting.remove(x)


@given(st.lists(st.tuples(keys, falls), min_size=1, max_size=60))
def test_keys_that_fell_while_unloaded_are_settled_anew(entries):
    model = Model([key for key, _ in entries], [0] * len(entries))
    waiting, fell = set(range(len(entries))), set()
    while waiting:
        if model.queue.heap_sizes[0] == 0:
            for x in set(model.unload(0)) - fell:
                model.keys[x] -= entries[x][1]
                fell.add(x)
            model.refill(0)
            continue
        x = int(model.queue.heap[0])
        assert x == model.best(waiting & fell)
        assert all(model.keys[y] <= model.keys[x] for y in waiting - fell)
        pop(model.queue, 0)
        waiting.remove(x)


def test_many_groups_share_the_buckets():
    model = Model([-0.1] * 5000 + [-0.2] * 5000, [*range(5000), *range(5000)])
    assert model.queue.heads.size <= 2**23
    assert [model.first_of(g) for g in (0, 17, 4999)] == [0, 17, 4999]


def test_room_suffices_when_everyone_falls_through_every_bucket():
    n = 5 * LINE
    model = Model([0.0] * n, [0] * n)
    for depth in range(1, 40):
        for _ in range(n):
            model.lower_first(0, -depth / 10)
    assert len({model.first_of(0), *(pop(model.queue, 0) or model.first_of(0) for _ in range(n - 1))}) == n


def test_queue_of_nothing_but_hopeless_candidates_goes_by_index():
    assert Model([-math.inf] * 3, [0, 0, 0]).first_of(0) == 0


def test_names_say_who_comes_first_among_equals():
    queue = make_queue(3, np.array([0]), 0.0, np.array([2, 0, 1], dtype=np.int32))
    for x in range(3):
        put(queue, 0, x, -0.25)
    size = unload(queue, 0)
    queue.heap_keys[:size] = -0.25
    refill(queue, 0, size)
    order = []
    for _ in range(3):
        order.append(int(queue.heap[0]))
        pop(queue, 0)
    assert order == [1, 2, 0]
