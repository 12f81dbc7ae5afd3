import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import SIMILARITIES, TAUS, assert_same_graph, graph_of, instances, many, points_of
from tests.oracles import similarity as oracle
from threadpoolctl import threadpool_info

from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.graph import TooManyEdges
from prune4rel.neighbours.screen import choose_screen
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import no_advance


@given(
    instances(n=st.integers(1, 12)),
    st.sampled_from((*TAUS, 1.0)),
    st.sampled_from(SIMILARITIES),
    st.booleans(),
    st.integers(1, 16),
    st.integers(1, 3),
)
def test_graph_is_that_of_exact_arithmetic(instance, tau, similarity, strict, tile, workers):
    graph = graph_of(CpuBackend(instance.points, tile=tile, workers=workers), Threshold(tau, similarity, strict))
    dense = oracle.weights(instance.rows, tau, similarity, strict=strict)
    np.testing.assert_array_equal(oracle.to_dense(graph), dense)
    assert graph.indices.size == len(oracle.edges(instance.rows, tau, similarity, strict=strict))


@pytest.mark.parametrize("dim", [2, 60, 200])
@pytest.mark.parametrize(("tile", "workers"), [(3, 1), (7, 2), (64, 3), (150, 1), (199, 2), (200, 5), (4096, 2)])
def test_tile_size_and_workers_change_no_bit(dim, tile, workers):
    points = many(200, dim=dim, seed=dim).points
    threshold = Threshold(0.9)
    assert_same_graph(
        graph_of(CpuBackend(points, tile=tile, workers=workers), threshold), graph_of(CpuBackend(points), threshold)
    )


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("tau", [0.6, 0.9, 0.975, 1.0])
def test_projection_changes_no_bit(similarity, tau):
    points = many(400, dim=120).points
    threshold = Threshold(tau, similarity)
    screen = choose_screen(points.unit(slice(None)), threshold.cosine, "projection", check_cost=12.0)
    assert screen.basis is not None
    plain = CpuBackend(points, tile=50)
    assert_same_graph(graph_of(plain.with_screen(screen), threshold), graph_of(plain, threshold))


def test_half_precision_rows_give_the_graph_of_the_same_values_in_single_precision():
    rows = many(200, dim=20).rows.astype(np.float16)
    threshold = Threshold(0.9)
    half, single = points_of(rows), points_of(rows.astype(np.float32))
    assert half.rows.dtype == np.float16
    assert_same_graph(graph_of(CpuBackend(half), threshold), graph_of(CpuBackend(single), threshold))


@pytest.mark.parametrize("scale", [1e-40, 1e-25, 1e25, 1e36])
def test_tiny_and_huge_rows_have_the_neighbours_of_ordinary_ones(scale):
    rows = np.sign(many(60, dim=6).rows)
    threshold = Threshold(0.8)
    scaled = graph_of(CpuBackend(points_of((rows * scale).astype(np.float32))), threshold)
    plain = graph_of(CpuBackend(points_of(rows)), threshold)
    np.testing.assert_array_equal(scaled.indices, plain.indices)
    np.testing.assert_allclose(scaled.weights, plain.weights, rtol=1e-6)


def test_all_zero_rows_are_isolated_even_at_tau_zero():
    rows = np.array([[0, 0], [1, 0], [0, 0], [0, 1]], dtype=np.float32)
    points = Points(rows, (rows**2).sum(axis=1).astype(np.float64))
    assert graph_of(CpuBackend(points), Threshold(0.0)).degrees.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("tile", [5, 64, 1024])
def test_neighbours_of_some_rows_are_those_rows_of_the_graph(tile):
    backend = CpuBackend(many(150).points, tile=tile, workers=2)
    threshold = Threshold(0.9)
    graph = graph_of(backend, threshold)
    rows = np.array([149, 3, 77, 4, 0])
    edges = backend.of(rows, threshold, max_edges=np.inf)
    spans = [slice(graph.indptr[x], graph.indptr[x + 1]) for x in rows]
    np.testing.assert_array_equal(edges.i, np.repeat(np.arange(5), graph.degrees[rows]))
    np.testing.assert_array_equal(edges.j, np.concatenate([graph.indices[span] for span in spans]))
    np.testing.assert_array_equal(edges.weight, np.concatenate([graph.weights[span] for span in spans]))


@pytest.mark.parametrize("workers", [1, 3])
def test_more_edges_than_allowed_stop_the_search(workers):
    backend = CpuBackend(many(100).points, tile=8, workers=workers)
    threshold = Threshold(0.9)
    pairs = graph_of(backend, threshold).indices.size // 2
    assert sum(part.i.size for part in backend.upper(threshold, max_edges=pairs, advance=no_advance)) == pairs
    with pytest.raises(TooManyEdges):
        backend.upper(threshold, max_edges=pairs - 1, advance=no_advance)
    with pytest.raises(TooManyEdges):
        backend.of(np.arange(100), threshold, max_edges=pairs)


def test_progress_adds_up_to_all_pairs():
    backend = CpuBackend(many(400).points, tile=8, workers=1)
    looked_at = []
    backend.upper(Threshold(0.99), max_edges=np.inf, advance=looked_at.append)
    assert sum(looked_at) == pytest.approx(400 * 401 / 2, rel=0.05)
    looked_at.clear()
    backend.of(np.arange(7), Threshold(0.99), max_edges=np.inf, advance=looked_at.append)
    assert sum(looked_at) == 7 * 400


def test_blas_gets_its_threads_back():
    before = [pool["num_threads"] for pool in threadpool_info()]
    graph_of(CpuBackend(many(50).points), Threshold(0.9))
    assert [pool["num_threads"] for pool in threadpool_info()] == before
