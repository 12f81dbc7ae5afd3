import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.instances import ETAS, SIMILARITIES, TAUS, graph_of, instances, many
from tests.oracles import similarity
from tests.oracles.prune4rel import exact_log_gains, greedy

from prune4rel.greedy import streaming
from prune4rel.greedy.lazy import lazy_greedy
from prune4rel.greedy.streaming import streaming_greedy
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.cuda import TorchBackend
from prune4rel.neighbours.graph import Edges, TooManyEdges
from prune4rel.neighbours.similarity import Threshold
from prune4rel.progress import Progress


@pytest.fixture(params=[(256, 8192), (1, 1), (4, 16)], ids=["usual pools", "pools of one", "small pools"])
def pools(request, monkeypatch):
    monkeypatch.setattr(streaming, "FIRST_POOL", request.param[0])
    monkeypatch.setattr(streaming, "LARGEST_POOL", request.param[1])


class Shelf:
    """A backend that has the whole graph at hand, and remembers how many rows each look-up asked for."""

    def __init__(self, graph):
        self.graph = graph
        self.asked = []

    def of(self, rows, _threshold, *, max_edges):
        self.asked.append(len(rows))
        parts = [slice(self.graph.indptr[x], self.graph.indptr[x + 1]) for x in rows]
        i = np.repeat(np.arange(len(rows), dtype=np.int32), self.graph.degrees[rows])
        if i.size > max_edges:
            raise TooManyEdges
        j, weight = (np.concatenate([array[p] for p in parts]) for array in (self.graph.indices, self.graph.weights))
        return Edges(i, j, weight)


def shelf_of(instance, tau=0.9):
    return Shelf(graph_of(CpuBackend(instance.points), Threshold(tau)))


def assert_same_picks(picks, wanted):
    np.testing.assert_array_equal(picks.indices, wanted.indices)
    np.testing.assert_array_equal(picks.gains, wanted.gains)
    np.testing.assert_array_equal(picks.support, wanted.support)


@given(
    instance=instances(),
    tau=st.sampled_from((*TAUS, 1.0)),
    scale=st.sampled_from(SIMILARITIES),
    strict=st.booleans(),
    eta=st.sampled_from(ETAS),
    balanced=st.booleans(),
    pool=st.integers(1, 4),
    data=st.data(),
)
def test_picks_are_those_of_the_papers_algorithms_in_exact_arithmetic(
    instance, tau, scale, strict, eta, balanced, pool, data
):
    confidence = instance.confidence / eta
    groups = instance.labels if balanced else None
    size = data.draw(st.integers(1, len(instance)))
    initial = data.draw(st.permutations(range(len(instance))))[: data.draw(st.integers(0, size))]
    dense = similarity.weights(instance.rows, tau, scale, strict=strict)
    wanted = greedy(dense, confidence, size, gain="paper", groups=groups, initial=initial, measure=exact_log_gains)
    assume(wanted.clear)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "FIRST_POOL", pool)
        patch.setattr(streaming, "LARGEST_POOL", 2 * pool)
        picks = streaming_greedy(
            Shelf(similarity.to_graph(dense)),
            Threshold(tau, scale, strict),
            confidence,
            size,
            groups=groups,
            initial=np.array(initial, dtype=np.int64),
        )
    assert picks.indices.tolist() == wanted.indices
    np.testing.assert_allclose(picks.gains, wanted.gains, rtol=1e-6)
    assert picks.objective == pytest.approx(wanted.objective, rel=1e-9)


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("max_edges", [2**27, 300], ids=["room", "hardly any room"])
def test_streaming_equals_the_graph(balanced, eta, max_edges):
    instance = many(400)
    shelf = shelf_of(instance)
    confidence = instance.confidence / eta
    groups = instance.labels if balanced else None
    wanted = lazy_greedy(shelf.graph, confidence, 300, gain="paper", groups=groups)
    found = streaming_greedy(shelf, Threshold(0.9), confidence, 300, groups=groups, max_edges=max_edges)
    assert_same_picks(found, wanted)


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize("balanced", [False, True])
def test_going_on_from_a_start_equals_the_graph(balanced, rng):
    instance = many(400, seed=3)
    shelf = shelf_of(instance, 0.95)
    options = {"groups": instance.labels if balanced else None, "initial": rng.permutation(400)[:60]}
    wanted = lazy_greedy(shelf.graph, instance.confidence, 200, gain="paper", **options)
    assert_same_picks(streaming_greedy(shelf, Threshold(0.95), instance.confidence, 200, **options), wanted)


@pytest.mark.parametrize("max_edges", [2**27, 3000], ids=["room", "hardly any room"])
@pytest.mark.parametrize(
    "backend",
    [
        lambda points: CpuBackend(points, tile=64, workers=2),
        lambda points: TorchBackend.from_points(points, "cpu", tile=64, capacity=2**12),
    ],
    ids=["cpu", "torch"],
)
def test_real_backends_stream_the_same_picks(backend, max_edges):
    instance = many(400, dim=30)
    wanted = lazy_greedy(shelf_of(instance).graph, instance.confidence, 100, gain="paper")
    found = streaming_greedy(backend(instance.points), Threshold(0.9), instance.confidence, 100, max_edges=max_edges)
    assert_same_picks(found, wanted)


def test_saturated_clique_is_picked_in_order_of_confidence(rng):
    confidence = rng.permutation(np.linspace(0.2, 1, 600)) / 0.5
    shelf = Shelf(similarity.to_graph(np.ones((600, 600))))
    picks = streaming_greedy(shelf, Threshold(0.0), confidence, 600)
    assert picks.support.min() > 400
    np.testing.assert_array_equal(picks.indices, np.argsort(-confidence))


def test_no_confidence_at_all_goes_by_index():
    picks = streaming_greedy(shelf_of(many(300)), Threshold(0.9), np.zeros(300), 290)
    np.testing.assert_array_equal(picks.indices, np.arange(290))


def test_neighbours_of_all_examples_are_never_looked_up_for_a_few_picks(rng):
    shelf = shelf_of(many(2000), 0.99)
    streaming_greedy(shelf, Threshold(0.99), rng.random(2000), 10)
    assert sum(shelf.asked) < 500


def test_pools_shrink_until_their_edges_fit():
    shelf = Shelf(similarity.to_graph(np.ones((400, 400))))
    streaming_greedy(shelf, Threshold(0.5), many(400).confidence, 3, max_edges=1000)
    assert shelf.asked[:4] == [12, 6, 3, 1]


def test_pick_that_falls_level_with_a_lower_index_outside_the_pool_waits_for_it(monkeypatch):
    monkeypatch.setattr(streaming, "FIRST_POOL", 2)
    dense = np.eye(4)
    dense[0, 3] = dense[3, 0] = dense[1, 2] = dense[2, 1] = 0.75
    confidence = np.array([0.5, 0.5, 0.9, 0.9])
    picks = streaming_greedy(Shelf(similarity.to_graph(dense)), Threshold(0.5), confidence, 4, initial=np.array([3]))
    assert picks.indices.tolist() == [3, 2, 0, 1]


def test_progress_counts_every_pick_made_here():
    seen = []

    class Listener(Progress):
        def task(self, name, total):
            seen.append((name, total))
            return super().task(name, total)

    start = np.array([4])
    streaming_greedy(shelf_of(many(50)), Threshold(0.9), np.ones(50), 20, initial=start, progress=Listener())
    assert seen == [("picking", 19)]
