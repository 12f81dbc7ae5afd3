import numpy as np
import pytest
from tests.instances import assert_same_graph, graph_of, many, points_of

from prune4rel.engines.ray.backend import RayBackend, survey
from prune4rel.engines.ray.cluster import Cluster
from prune4rel.engines.ray.store import readable_by_tasks, shards_of
from prune4rel.engines.ray.tiles import Layout
from prune4rel.neighbours.backend import TooManyEdges
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.similarity import Threshold
from prune4rel.progress import Progress, no_advance

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
