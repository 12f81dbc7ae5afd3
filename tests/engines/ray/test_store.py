import numpy as np
import pytest
from tests.instances import many, points_of

from prune4rel.engines.ray.cluster import Cluster
from prune4rel.engines.ray.store import (
    StoreCache,
    blocks_in_store,
    in_memory,
    operands_in_store,
    readable_by_tasks,
    shards_of,
)
from prune4rel.engines.ray.tiles import Layout, cut, load_block, project_block
from prune4rel.neighbours.screen import choose_screen


def test_the_one_unused_for_longest_makes_room():
    made = []
    held = StoreCache(lambda number: made.append(number) or str(number), capacity=2, each=10)
    assert [held[k] for k in (0, 1, 0, 2, 0, 1)] == ["0", "1", "0", "2", "0", "1"]
    assert made == [0, 1, 2, 1]
    assert (held.made, held.bytes_made) == (4, 40)
    held.clear()
    assert held[1] == "1"
    assert held.made == 5


def test_the_first_ones_are_made_while_something_else_is_done():
    made = []
    held = StoreCache(lambda number: made.append(number) or str(number), capacity=3, each=10)
    with held.filling(7):
        assert held[1] == "1"
    assert sorted(made) == [0, 1, 2]
    assert [held[k] for k in range(3)] == ["0", "1", "2"]
    with held.filling(3):
        pass
    assert held.made == 3


def test_what_cannot_be_made_ahead_is_told_when_it_is_asked_for():
    def fail(number):
        raise OSError(f"no room for {number}")

    held = StoreCache(fail, capacity=3, each=10)
    with held.filling(2):
        pass
    with pytest.raises(OSError, match="no room for 1"):
        held[1]


@pytest.fixture
def cluster(here):
    return Cluster(here)


def test_arrays_come_within_reach_in_pieces(cluster, monkeypatch):
    monkeypatch.setattr("prune4rel.engines.ray.store.PIECE_BYTES", 64)
    rows = np.arange(60, dtype=np.float32).reshape(20, 3)
    shards = readable_by_tasks(cluster, shards_of(rows, "embeddings"))
    assert [part.rows for part in shards.parts] == [5, 5, 5, 5]
    np.testing.assert_array_equal(shards.read(3, 17), rows[3:17])
    assert readable_by_tasks(cluster, shards) == shards
    assert in_memory(shards_of(rows, "embeddings"))
    assert not in_memory(shards)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("reach", [False, True])
def test_blocks_hold_the_rows_whoever_reads_them(cluster, tmp_path, kind, reach):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).integers(-9, 9, (10, 4)).astype(kind))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    shards = shards_of(rows, "embeddings")
    whole = None if reach else load_block(shards, 0, 10)
    blocks = blocks_in_store(cluster, readable_by_tasks(cluster, shards), Layout(10, 4), whole)
    last = cluster.get(blocks[2])
    assert last.start == 8
    assert last.rows.dtype == (np.float16 if kind is np.float16 else np.float32)
    np.testing.assert_array_equal(last.rows, rows[8:])
    np.testing.assert_array_equal(last.squares, (rows[8:].astype(float) ** 2).sum(axis=1))
    assert blocks.bytes_made == 4 * (4 * last.rows.itemsize + 8)


@pytest.mark.parametrize("reach", [False, True])
def test_operands_are_those_of_the_rows_whoever_makes_them(cluster, reach):
    rows = many(300, dim=64).rows
    screen = choose_screen(points_of(rows).unit(slice(None)), 0.9, "projection", check_cost=1.0)
    layout, shards = Layout(300, 128), shards_of(rows, "embeddings")
    whole = load_block(shards, 0, 300)
    at_hand_or_not = None if reach else whole
    blocks = blocks_in_store(cluster, readable_by_tasks(cluster, shards), layout, at_hand_or_not)
    operands = operands_in_store(cluster, blocks, layout, at_hand_or_not, screen, cluster.put(screen))
    for number in range(3):
        wanted = project_block(cut(whole, *layout.span(number)), screen)
        np.testing.assert_array_equal(cluster.get(operands[number]), wanted)
    assert operands.bytes_made == 3 * 128 * screen.width * 4
