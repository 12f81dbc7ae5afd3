import numpy as np
import pytest
from tests.instances import assert_same_graph, graph_of, many, points_of

from prune4rel.engines.ray.backend import RayBackend, edges_on_torch, survey
from prune4rel.engines.ray.cluster import Cluster
from prune4rel.engines.ray.store import readable_by_tasks, shards_of
from prune4rel.engines.ray.tiles import Block, Layout, find_edges
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.graph import TooManyEdges
from prune4rel.neighbours.screen import FLOAT16, choose_screen
from prune4rel.neighbours.similarity import Threshold
from prune4rel.progress import Progress, no_advance


@pytest.mark.parametrize("screening", ["none", "projection"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("inside", [False, True])
def test_pytorch_finds_the_same_edges(screening, dtype, inside):
    rows = many(150, dim=64).rows.astype(dtype)
    points, threshold = points_of(rows), Threshold(0.95, "shifted-cosine")
    screen = choose_screen(points.unit(slice(None)), threshold.cosine, screening, check_cost=1.0, rounding=FLOAT16)
    squares = points.squared_norms
    blocks = [Block(0, rows[:80], squares[:80], None), Block(80, rows[80:], squares[80:], None)]
    first, last = (blocks[0], blocks[0]) if inside else blocks
    wanted = find_edges(first, last, threshold, screen, "cpu")
    parts = edges_on_torch(blocks[:1] if inside else blocks, screen, threshold, "cpu")
    i, j, weight = (np.concatenate([part[k] for part in parts]) for k in range(3))
    order = np.lexsort((wanted.j, wanted.i))
    np.testing.assert_array_equal(i, wanted.i[order])
    np.testing.assert_array_equal(j, wanted.j[order])
    np.testing.assert_array_equal(weight, wanted.weight[order])
    assert i.size > 100


THRESHOLD = Threshold(0.9, "shifted-cosine")
ROWS = many(2500, dim=8).rows


@pytest.fixture(params=["near", "within reach"])
def backend(here, request):
    """Rows in the driver's memory, or where tasks read them."""
    cluster = Cluster(here)
    shards = shards_of(ROWS, "embeddings")
    if request.param != "near":
        shards = readable_by_tasks(cluster, shards)
    return RayBackend(survey(cluster, shards, Layout(len(ROWS), 900), Progress(), allow_zero=False), "cpu")


def test_the_graph_is_that_of_one_machine(backend):
    done = []
    parts = backend.upper(THRESHOLD, max_edges=np.inf, advance=done.append)
    wanted = graph_of(CpuBackend(points_of(ROWS)), THRESHOLD)
    assert_same_graph(type(wanted).from_upper(len(ROWS), parts), wanted)
    assert sum(done) == len(ROWS) * (len(ROWS) + 1) / 2
    assert backend.work.tiles == 6
    assert backend.surveyed.blocks.made == 3


@pytest.mark.parametrize("rows", [[0, 899, 900, 2499], [7]], ids=str)
def test_rows_are_looked_up_wherever_they_are(backend, rows):
    some = np.array(rows)
    found = backend.of(some, THRESHOLD, max_edges=np.inf)
    wanted = CpuBackend(points_of(ROWS)).of(some, THRESHOLD, max_edges=np.inf)
    for name in ("i", "j", "weight"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_too_many_edges_stop_the_work(backend):
    with pytest.raises(TooManyEdges):
        backend.upper(THRESHOLD, max_edges=10, advance=no_advance)
    with pytest.raises(TooManyEdges):
        backend.of(np.arange(200), THRESHOLD, max_edges=10)


def test_few_blocks_are_held_where_there_is_little_room(backend):
    backend.surveyed.blocks.capacity = 2
    parts = backend.upper(THRESHOLD, max_edges=np.inf, advance=no_advance)
    wanted = graph_of(CpuBackend(points_of(ROWS)), THRESHOLD)
    assert_same_graph(type(wanted).from_upper(len(ROWS), parts), wanted)
    assert backend.surveyed.blocks.made > 3
