import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import SIMILARITIES, TAUS, assert_same_graph, graph_of, instances, many, points_of
from tests.oracles import similarity as oracle

from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.cuda import TorchBackend
from prune4rel.neighbours.graph import TooManyEdges
from prune4rel.neighbours.screen import FLOAT16, choose_screen
from prune4rel.neighbours.similarity import Points, Threshold
from prune4rel.progress import no_advance

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")
)
pytestmark = pytest.mark.parametrize("device", ["cpu", CUDA])


def backend_of(points, device, *, tile=16, capacity=256):
    return TorchBackend.from_points(points, device, tile=tile, capacity=capacity)


@given(
    instance=instances(n=st.integers(1, 12)),
    tau=st.sampled_from((*TAUS, 1.0)),
    similarity=st.sampled_from(SIMILARITIES),
    strict=st.booleans(),
    tile=st.integers(1, 16),
    capacity=st.integers(1, 150),
)
def test_graph_is_that_of_exact_arithmetic(device, instance, tau, similarity, strict, tile, capacity):
    backend = backend_of(instance.points, device, tile=tile, capacity=capacity)
    graph = graph_of(backend, Threshold(tau, similarity, strict))
    dense = oracle.weights(instance.rows, tau, similarity, strict=strict)
    np.testing.assert_array_equal(oracle.to_dense(graph), dense)
    assert graph.indices.size == len(oracle.edges(instance.rows, tau, similarity, strict=strict))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("tau", [0.6, 0.9, 0.975, 1.0])
@pytest.mark.parametrize("dim", [2, 60, 513])
def test_graph_is_that_of_the_cpu_backend_bit_for_bit(device, dim, tau, similarity):
    points = many(200, dim=dim, seed=dim).points
    threshold = Threshold(tau, similarity)
    backend = backend_of(points, device, tile=64, capacity=2**13)
    assert_same_graph(graph_of(backend, threshold), graph_of(CpuBackend(points), threshold))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("dim", [5, 64, 129, 512])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_equal_rows_are_neighbours_at_tau_one(device, rng, dim, similarity, kind):
    rows = np.repeat(rng.normal(size=(25, dim)).astype(kind), 2, axis=0)
    graph = graph_of(backend_of(points_of(rows), device), Threshold(1.0, similarity))
    np.testing.assert_array_equal(graph.indices, np.arange(50) ^ 1)
    assert (graph.weights == 1).all()


@pytest.mark.parametrize(("tile", "capacity"), [(3, 1), (7, 40), (64, 64), (64, 500), (512, 2**20)])
def test_tile_size_and_capacity_change_no_bit(device, tile, capacity):
    points = many(65, dim=12).points
    threshold = Threshold(0.9)
    backend = backend_of(points, device, tile=tile, capacity=capacity)
    assert_same_graph(graph_of(backend, threshold), graph_of(CpuBackend(points), threshold))


@pytest.mark.parametrize("tau", [0.6, 0.9, 0.975])
def test_projection_changes_no_bit(device, tau):
    points = many(400, dim=120).points
    threshold = Threshold(tau)
    screen = choose_screen(points.unit(slice(None)), threshold.cosine, "projection", check_cost=400.0, rounding=FLOAT16)
    assert screen.basis is not None
    backend = backend_of(points, device, tile=128, capacity=2**15).with_screen(screen)
    assert_same_graph(graph_of(backend, threshold), graph_of(CpuBackend(points), threshold))


def test_half_precision_rows_give_the_graph_of_the_same_values_in_single_precision(device):
    rows = many(200, dim=20).rows.astype(np.float16)
    threshold = Threshold(0.9)
    half, single = (backend_of(points_of(rows.astype(kind)), device) for kind in (np.float16, np.float32))
    assert half.raw.dtype == torch.float16
    assert_same_graph(graph_of(half, threshold), graph_of(single, threshold))


@pytest.mark.parametrize("scale", [1e-40, 1e-25, 1e25, 1e36])
def test_tiny_and_huge_rows_have_the_neighbours_of_ordinary_ones(device, scale):
    rows = np.sign(many(60, dim=6).rows)
    threshold = Threshold(0.8)
    scaled = graph_of(backend_of(points_of((rows * scale).astype(np.float32)), device), threshold)
    plain = graph_of(CpuBackend(points_of(rows)), threshold)
    np.testing.assert_array_equal(scaled.indices, plain.indices)
    np.testing.assert_allclose(scaled.weights, plain.weights, rtol=1e-6)


def test_all_zero_rows_are_isolated_even_at_tau_zero(device):
    rows = np.array([[0, 0], [1, 0], [0, 0], [0, 1]], dtype=np.float32)
    points = Points(rows, (rows**2).sum(axis=1).astype(np.float64))
    assert graph_of(backend_of(points, device), Threshold(0.0)).degrees.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("tile", [2, 16, 512])
def test_neighbours_of_some_rows_are_those_of_the_cpu_backend(device, tile):
    points = many(150).points
    rows = np.array([149, 3, 77, 4, 0])
    found = backend_of(points, device, tile=tile, capacity=100).of(rows, Threshold(0.9), max_edges=np.inf)
    wanted = CpuBackend(points).of(rows, Threshold(0.9), max_edges=np.inf)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_more_edges_than_allowed_stop_the_search(device):
    backend = backend_of(many(100).points, device, capacity=2**12)
    threshold = Threshold(0.9)
    pairs = graph_of(backend, threshold).indices.size // 2
    assert sum(part.i.size for part in backend.upper(threshold, max_edges=pairs, advance=no_advance)) == pairs
    with pytest.raises(TooManyEdges):
        backend.upper(threshold, max_edges=pairs - 1, advance=no_advance)
    with pytest.raises(TooManyEdges):
        backend.of(np.arange(100), threshold, max_edges=pairs)


def test_progress_adds_up_to_all_pairs(device):
    backend = backend_of(many(400).points, device)
    looked_at = []
    backend.upper(Threshold(0.99), max_edges=np.inf, advance=looked_at.append)
    assert sum(looked_at) == pytest.approx(400 * 401 / 2, rel=0.05)
    looked_at.clear()
    backend.of(np.arange(7), Threshold(0.99), max_edges=np.inf, advance=looked_at.append)
    assert sum(looked_at) == 7 * 400


def test_precision_settings_are_put_back(device):
    matmul = torch.backends.cuda.matmul
    before = torch.get_float32_matmul_precision(), matmul.allow_fp16_reduced_precision_reduction
    torch.set_float32_matmul_precision("high")
    matmul.allow_fp16_reduced_precision_reduction = True
    try:
        graph_of(backend_of(many(20).points, device), Threshold(0.9))
        assert torch.get_float32_matmul_precision() == "high"
        assert matmul.allow_fp16_reduced_precision_reduction
    finally:
        torch.set_float32_matmul_precision(before[0])
        matmul.allow_fp16_reduced_precision_reduction = before[1]
