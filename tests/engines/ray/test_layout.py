import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel.engines.ray.tiles import (
    MOST_SHARED,
    MOST_TILES,
    TILE_WORK,
    TILES_PER_SLOT,
    Layout,
    choose_block,
    evenness,
)


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 12))
def test_every_tile_once_and_few_blocks_at_a_time(n, block, at_once):
    layout = Layout(n, block)
    tiles = list(layout.order(at_once))
    assert sorted(tiles) == [(a, b) for a in range(layout.count) for b in range(a, layout.count)]
    assert len(tiles) == layout.tiles
    assert sum(map(layout.pairs, tiles)) == n * (n + 1) / 2
    assert [row for b in range(layout.count) for row in range(*layout.span(b))] == list(range(n))
    side = max(1, at_once // 2)
    for k in range(len(tiles) - side):
        some = {x for tile in tiles[k : k + side] for x in tile}
        assert len(some) <= 4 * side


def test_the_smallest_tiles_come_last():
    layout = Layout(50, 13)
    sizes = [layout.pairs(tile) for tile in layout.order(8)]
    assert max(sizes[-4:]) < min(sizes[:-4])


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 9))
def test_shares_are_alike_and_need_few_blocks(n, block, slots):
    layout = Layout(n, block)
    shares = layout.shares(slots)
    assert [row for share in shares for row in range(*share)] == list(range(n))
    longest = max(stop - start for start, stop in shares)
    assert all(stop - start == longest for start, stop in shares[:-1])
    assert longest <= MOST_SHARED * block
    for start, stop in shares:
        held = [row for number in layout.blocks_of(start, stop) for row in range(*layout.span(number))]
        assert set(range(start, stop)) <= set(held)
        assert len(held) <= stop - start + 2 * block


@given(st.integers(1, 40), st.integers(2, 40))
def test_loads_are_those_of_a_cache(count, at_once):
    """The formula, beside a cache that drops what was unused for longest."""
    layout = Layout(count, 1)
    held, loads = [], 0
    for tile in layout.order(at_once):
        for block in dict.fromkeys(tile):
            loads += block not in held
            held = [*[b for b in held if b != block][-(max(2, at_once) - 1) :], block]
    assert loads <= 2.2 * layout.loads(at_once) + 2
    assert layout.loads(at_once) <= loads * 1.5 + 2


@pytest.mark.parametrize("slots", [1, 2, 64])
@pytest.mark.parametrize("n", [100, 50_000, 10**7, 10**9])
def test_blocks_are_neither_too_small_nor_too_many(n, slots):
    for device in ("cpu", "cuda"):
        layout = Layout(n, choose_block(n, 512, slots=slots, device=device))
        assert layout.tiles <= 1.1 * MOST_TILES
        assert layout.block >= 1024


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 8, 64])
def test_work_is_shared_out_evenly_in_few_tiles(slots):
    layout = Layout(100_000, choose_block(100_000, 512, slots=slots, device="cpu"))
    done = [0.0] * slots
    for tile in layout.order(10**6):
        done.sort()
        done[0] += layout.pairs(tile)
    assert sum(done) / slots >= 0.85 * max(done)
    least = math.ceil(100_000 / math.sqrt(TILE_WORK["cpu"] / (2 * 512)))  # blocks of which a tile takes seconds
    assert layout.tiles <= max(1.5 * TILES_PER_SLOT * slots, least * (least + 1) / 2)


@given(st.integers(1, 12), st.integers(1, 9))
def test_evenness_is_that_of_workers_who_take_the_next_tile(count, slots):
    ends = [0.0] * slots
    layout = Layout(100 * count, 100)
    for first, second in layout.order(10**6):
        who = min(range(slots), key=lambda worker: ends[worker])
        ends[who] += 0.5 if first == second else 1.0
    assert evenness(count, slots) == pytest.approx(sum(ends) / slots / max(ends))


def test_memory_limits_blocks():
    block = choose_block(10**9, 768, slots=64, device="cuda", memory=2**40, row=1544)
    assert 64 * 6 * 1544 * block <= 2**39
