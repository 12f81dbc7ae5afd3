import numpy as np
import pytest
from tests.instances import SIMILARITIES, assert_same_graph, graph_of, many, points_of
from tests.oracles import similarity as oracle

from prune4rel.errors import InputError
from prune4rel.neighbours import build
from prune4rel.neighbours.build import neighbourhood
from prune4rel.neighbours.cuda import TorchBackend
from prune4rel.neighbours.graph import TooManyEdges
from prune4rel.progress import Progress


def near(rows, *, tau=0.9, similarity="shifted-cosine", **options):
    return neighbourhood(points_of(rows), tau=tau, similarity=similarity, **options)


def on_torch(points, _device, **_):
    return TorchBackend.from_points(points, "cpu", tile=256, capacity=2**16)


@pytest.fixture
def spread(rng):
    return rng.normal(size=(400, 6)).astype(np.float32)


def test_estimate_of_a_small_set_is_exact(rng):
    rows = rng.integers(-2, 3, size=(40, 3)) + np.array([0, 0, 5])
    found = near(rows, tau=0.95)
    degrees = (oracle.weights(rows, 0.95, "shifted-cosine") > 0).sum(axis=1) - 1
    assert found.estimate.mean_degree == degrees.mean()
    assert found.estimate.isolated == (degrees == 0).mean()
    assert found.estimate.edges == degrees.sum()
    assert found.estimate.sampled_rows == found.estimate.n == 40


def test_estimate_of_a_large_set_is_close(rng):
    found = near(rng.normal(size=(4000, 4)).astype(np.float32), tau=0.98)
    graph = found.graph(max_bytes=np.inf, progress=Progress())
    assert found.estimate.sampled_rows == build.SAMPLE_ROWS
    assert found.estimate.mean_degree == pytest.approx(graph.degrees.mean(), rel=0.1)
    assert found.estimate.graph_bytes >= 0.9 * graph.nbytes


def test_estimate_takes_fewer_rows_where_they_have_too_many_neighbours(spread, monkeypatch):
    monkeypatch.setattr(build, "SAMPLE_EDGES", 2000)
    found = near(spread, tau=0.0)
    assert 1 <= found.estimate.sampled_rows < 400
    assert found.estimate.mean_degree == 399


def test_description_says_what_is_coming():
    text = near(many(50).rows, tau=0.9).estimate.describe()
    assert text.startswith("50 examples x 4: at tau = 0.9 about ")
    assert all(word in text for word in ("neighbours each", "have none", "for the graph", "to build it"))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("target", [3.0, 20.0, 35.0])
def test_auto_tau_meets_the_target_degree(spread, similarity, target):
    found = near(spread, tau="auto", similarity=similarity, target_degree=target)
    assert found.estimate.mean_degree == pytest.approx(target, rel=0.01)
    assert found.threshold.tau == round(found.threshold.tau, 6)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("many_edges", [False, True])
def test_finding_tau_tells_what_another_look_at_tau_would(spread, similarity, strict, many_edges, monkeypatch):
    if many_edges:
        monkeypatch.setattr(build, "SAMPLE_EDGES", 500)  # fewer rows are looked at, by both
    found = near(spread, tau="auto", similarity=similarity, strict=strict)
    again = near(spread, tau=found.threshold.tau, similarity=similarity, strict=strict)
    if not many_edges:
        assert found.estimate.mean_degree == again.estimate.mean_degree > 0
        assert found.estimate.isolated == again.estimate.isolated
        assert found.estimate.sampled_rows == again.estimate.sampled_rows
    assert found.estimate.mean_degree == pytest.approx(again.estimate.mean_degree, rel=0.5)
    assert found.estimate.screen_width == again.estimate.screen_width


def test_identical_rows_are_no_neighbours_beyond_one():
    found = near(np.ones((30, 4), dtype=np.float32), tau="auto", strict=True)
    assert found.threshold.tau == 1.0
    assert found.estimate.mean_degree == 0


def test_auto_tau_of_a_large_set_is_near_the_target(rng):
    found = near(rng.normal(size=(5000, 5)).astype(np.float32), tau="auto")
    degrees = found.graph(max_bytes=np.inf, progress=Progress()).degrees
    assert degrees.mean() == pytest.approx(20, rel=0.15)


def test_auto_tau_of_a_small_set_aims_at_a_tenth_of_it(spread):
    found = near(spread[:50], tau="auto")
    assert found.estimate.mean_degree == pytest.approx(4.9, abs=0.1)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_auto_tau_and_graph_are_the_same_on_every_backend(spread, similarity, kind, monkeypatch):
    rows = spread.astype(kind)
    here = near(rows, tau="auto", similarity=similarity)
    monkeypatch.setattr(build, "_make_backend", on_torch)
    there = near(rows, tau="auto", similarity=similarity)
    assert isinstance(there.backend, TorchBackend)
    assert there.threshold == here.threshold
    assert_same_graph(graph_of(there.backend, there.threshold), graph_of(here.backend, here.threshold))


def test_auto_tau_takes_fewer_rows_where_they_have_too_many_neighbours(monkeypatch):
    monkeypatch.setattr(build, "SAMPLE_EDGES", 2000)
    rows = np.ones((400, 2), dtype=np.float32)
    assert near(rows, tau="auto").threshold.tau == 1.0


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_auto_tau_of_a_handful(spread, n, similarity):
    found = near(spread[:n], tau="auto", similarity=similarity)
    assert 0 <= found.threshold.tau <= 1
    assert found.estimate.n == n
    if similarity == "shifted-cosine":
        assert found.estimate.mean_degree >= (n > 1) * 1.0


def test_auto_tau_of_opposite_rows_is_zero():
    found = near(np.array([[1, 0], [-1, 0]], dtype=np.float32), tau="auto")
    assert found.threshold.tau == 0
    assert found.estimate.mean_degree == 1


def test_auto_tau_looks_past_all_zero_rows():
    corners = np.eye(10) - 0.1
    found = near(np.concatenate([np.zeros((10, 10)), corners]), tau="auto")
    assert found.threshold.tau == pytest.approx(4 / 9, abs=1e-6)
    assert found.estimate.mean_degree == 4.5


@pytest.mark.parametrize("backend", ["cpu", "torch"])
@pytest.mark.parametrize("n", [2, 30, 520])
def test_auto_tau_of_identical_rows_makes_one_clique(n, backend, rng, monkeypatch):
    if backend == "torch":
        monkeypatch.setattr(build, "_make_backend", on_torch)
    found = near(np.tile(rng.normal(size=19).astype(np.float32), (n, 1)), tau="auto")
    assert found.threshold.tau == 1.0
    assert found.estimate.mean_degree == n - 1


@pytest.mark.parametrize("degree", [0, -3, float("nan")])
def test_target_degree_out_of_range_is_refused(spread, degree):
    with pytest.raises(InputError, match="target_degree must be above 0"):
        near(spread, tau="auto", target_degree=degree)


def test_unknown_screening_is_refused(spread):
    with pytest.raises(InputError, match=r"screening must be one of auto, none, projection, not 'fast'"):
        near(spread, screening="fast")


def test_screening_never_changes_the_graph():
    rows = many(500, dim=96).rows
    found = [near(rows, tau=0.95, screening=mode) for mode in ("none", "projection", "auto")]
    assert [each.backend.screen.basis is None for each in found][:2] == [True, False]
    graphs = [graph_of(each.backend, each.threshold) for each in found]
    assert_same_graph(graphs[1], graphs[0])
    assert_same_graph(graphs[2], graphs[0])


def test_graph_beyond_the_bytes_allowed_is_refused(spread):
    found = near(spread, tau=0.9)
    with pytest.raises(TooManyEdges):
        found.graph(max_bytes=1000, progress=Progress())


@pytest.mark.parametrize("block", [1, 7, 512])
def test_strongest_graph_keeps_what_either_end_keeps(block):
    rows = many(60).rows
    found = near(rows, tau=0.8)
    dense = oracle.weights(rows, 0.8, "shifted-cosine") - np.eye(60)
    either = np.eye(60)
    for i in range(60):
        for j in sorted(np.flatnonzero(dense[i]), key=lambda j, i=i: (-dense[i, j], j))[:3]:
            either[i, j] = either[j, i] = dense[i, j]
    graph, dropped = found.strongest(3, progress=Progress(), block=block)
    np.testing.assert_array_equal(oracle.to_dense(graph), either)
    assert dropped == np.count_nonzero(dense) - (np.count_nonzero(either) - 60) > 0


def test_strongest_graph_of_a_high_degree_is_the_whole_graph(spread):
    found = near(spread, tau=0.9)
    whole = graph_of(found.backend, found.threshold)
    graph, dropped = found.strongest(int(whole.degrees.max()), progress=Progress())
    assert_same_graph(graph, whole)
    assert dropped == 0
