import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import graph_of, instances, many, points_of

from prune4rel.engines.ray.tiles import (
    Block,
    Layout,
    checked,
    cut,
    find_edges,
    find_neighbours_of,
    load_block,
    pack,
    project_block,
    survey_block,
    unpack,
)
from prune4rel.errors import InputError
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.graph import Edges, Graph
from prune4rel.neighbours.screen import choose_screen, whole
from prune4rel.neighbours.similarity import Threshold
from prune4rel.shards import Shards


class Whole:
    def __init__(self, array):
        self.array, self.rows = array, len(array)

    def read(self, start, stop):
        return self.array[start:stop]


def shards_of(rows):
    return Shards("embeddings", (Whole(rows),), rows.shape[1:], rows.dtype)


def tiled_graph(rows, block, threshold, screen):
    layout = Layout(len(rows), block)
    blocks = [load_block(shards_of(rows), *layout.span(number)) for number in range(layout.count)]
    np.testing.assert_array_equal(np.concatenate([each.squares for each in blocks]), points_of(rows).squared_norms)
    if screen.basis is not None:
        blocks = [each._replace(operand=project_block(each, screen)) for each in blocks]
    parts = [
        unpack(pack(find_edges(blocks[a], blocks[b], threshold, screen, "cpu"))) for a, b in sorted(layout.order(2))
    ]
    return Graph.from_upper(len(rows), parts)


def assert_same(one, other):
    for name in ("indptr", "indices", "weights"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)


@given(instances(), st.integers(1, 5), st.sampled_from([0.0, 0.5, 0.9]), st.booleans())
def test_tiles_make_the_graph_of_one_machine(instance, block, tau, strict):
    threshold = Threshold(tau, "shifted-cosine", strict)
    wanted = graph_of(CpuBackend(instance.points), threshold)
    assert_same(tiled_graph(instance.rows, block, threshold, whole(instance.rows.shape[1])), wanted)


@pytest.mark.parametrize("screening", ["none", "projection"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_behind_a_screen(screening, dtype):
    rows = many(300, dim=64).rows.astype(dtype)
    threshold = Threshold(0.95, "shifted-cosine")
    points = points_of(rows)
    sample = points.unit(slice(None))
    screen = choose_screen(sample, threshold.cosine, screening, check_cost=1.0)
    assert (screen.basis is None) == (screening == "none")
    wanted = graph_of(CpuBackend(points), threshold)
    assert_same(tiled_graph(rows, 77, threshold, screen), wanted)


def test_neighbours_of_some_rows():
    rows = many(200).rows
    points, threshold = points_of(rows), Threshold(0.9, "shifted-cosine")
    some = np.array([3, 50, 199])
    blocks = [load_block(shards_of(rows), *span) for span in ((100, 160), (160, 200))]
    mine = Block(0, rows[some], points.squared_norms[some], None)
    found = find_neighbours_of(mine, blocks, threshold, whole(4))
    wanted = CpuBackend(points).of(some, threshold, max_edges=np.inf)
    inside = wanted.j >= 100
    other = some[found.i] != found.j
    for name in Edges._fields:
        np.testing.assert_array_equal(getattr(found, name)[other], getattr(wanted, name)[inside])


def test_a_part_of_a_block_is_cut_out_with_all_it_has():
    rows = many(50).rows
    block = load_block(shards_of(rows), 10, 30)
    block = block._replace(operand=2 * block.rows)
    for start, stop in ((10, 30), (0, 99), (12, 14), (25, 40)):
        part = cut(block, start, stop)
        inside = slice(max(10, start), min(30, stop))
        assert part.start == inside.start
        np.testing.assert_array_equal(part.rows, rows[inside])
        np.testing.assert_array_equal(part.squares, points_of(rows).squared_norms[inside])
        np.testing.assert_array_equal(part.operand, 2 * rows[inside])


def test_survey_measures_and_checks():
    rows = many(50).rows
    found = survey_block(load_block(shards_of(rows), 10, 30), np.array([12, 29]))
    np.testing.assert_array_equal(found.squares, points_of(rows).squared_norms[10:30])
    np.testing.assert_array_equal(found.sample, rows[[12, 29]])
    broken = rows.copy()
    broken[17, 1] = np.nan
    with pytest.raises(InputError, match="embeddings: row 17 holds NaN"):
        load_block(shards_of(broken), 10, 30)
    assert survey_block(load_block(shards_of(rows), 10, 31), np.array([12])).sha256 != found.sha256


def test_rows_are_counted_in_the_whole():
    with pytest.raises(InputError, match="probabilities: row 101 sums to 2"):
        checked(100, labels=[0, 1], probabilities=[[0.5, 0.5], [1.0, 1.0]])


@given(st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_packing_keeps_every_bit_and_finds_damage(count, seed):
    rng = np.random.default_rng(seed)
    edges = Edges(
        np.sort(rng.integers(0, 2**31, count, dtype=np.int32)),
        rng.integers(0, 2**31, count, dtype=np.int32),
        rng.random(count, dtype=np.float32),
    )
    content = pack(edges)
    for name, array in unpack(content)._asdict().items():
        np.testing.assert_array_equal(array, getattr(edges, name), strict=True)


def test_edges_travel_small():
    """About seven bytes a pair, of the twelve it has in memory."""
    rng = np.random.default_rng(0)
    i = np.repeat(np.arange(5000, dtype=np.int32), 10)
    j = np.concatenate([np.sort(rng.integers(6000, 12000, 10)) for _ in range(5000)]).astype(np.int32)
    weight = rng.uniform(0.9, 1, i.size).astype(np.float32)
    assert len(pack(Edges(i, j, weight))) < 7 * i.size
