import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import SIMILARITIES, TAUS, assert_same_graph, graph_of, instances, many, points_of
from tests.oracles import similarity as oracle

from prune4rel import machine
from prune4rel.neighbours import products
from prune4rel.neighbours.build import neighbourhood
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.products import Bfloat16Products, Float32Products, fastest
from prune4rel.neighbours.screen import choose_screen, whole
from prune4rel.neighbours.similarity import Points, Threshold


def coarse(points, screen=None, **options):
    return CpuBackend(points, screen, products=Bfloat16Products, **options)


@given(
    instances(n=st.integers(1, 12)),
    st.sampled_from((*TAUS, 1.0)),
    st.sampled_from(SIMILARITIES),
    st.booleans(),
    st.integers(1, 16),
    st.integers(1, 3),
)
def test_bfloat16_gives_the_graph_of_exact_arithmetic(instance, tau, similarity, strict, tile, workers):
    graph = graph_of(coarse(instance.points, tile=tile, workers=workers), Threshold(tau, similarity, strict))
    dense = oracle.weights(instance.rows, tau, similarity, strict=strict)
    np.testing.assert_array_equal(oracle.to_dense(graph), dense)


@pytest.mark.parametrize("mode", ["none", "projection"])
@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("tau", [0.05, 0.6, 0.9, 0.975])
def test_bfloat16_changes_no_bit(kind, tau, mode):
    points = points_of(many(400, dim=120).rows.astype(kind))
    threshold = Threshold(tau, "cosine")
    backend = coarse(points, tile=50)
    sample = points.unit(slice(None))
    screen = choose_screen(sample, threshold.cosine, mode, check_cost=12.0, rounding=backend.rounding)
    assert (screen.basis is None) == (mode == "none")
    screened = backend.with_screen(screen)
    assert isinstance(screened.products, Bfloat16Products)
    assert_same_graph(graph_of(screened, threshold), graph_of(CpuBackend(points), threshold))


def test_neighbours_of_some_rows_are_the_same():
    points, threshold, rows = many(150).points, Threshold(0.9), np.array([149, 3, 77, 4, 0])
    found = coarse(points, tile=64).of(rows, threshold, max_edges=np.inf)
    for one, other in zip(found, CpuBackend(points).of(rows, threshold, max_edges=np.inf), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("limit", [-0.5, -0.0, 0.0, 1e-3, 0.3, 0.7])
def test_what_attains_the_limit_attains_it_in_bits_too(rng, limit):
    points = points_of(rng.normal(size=(60, 20)).astype(np.float32))
    made = Bfloat16Products(points, whole(20))
    rows, scratch = made.operand(slice(0, 60)), np.empty(60 * 30, dtype=np.float32)
    product, lowest = made.tile(rows, made.operand(slice(30, 60)), limit, scratch)
    exact = (rows @ rows[30:].T).float().numpy()
    assert (product >= lowest)[exact >= limit].all()
    assert not (product >= lowest)[exact < limit - 0.01].any()


def test_pytorch_gets_its_threads_back():
    torch.set_num_threads(2)
    graph_of(coarse(many(50).points), Threshold(0.9))
    assert torch.get_num_threads() == 2


def test_bfloat16_is_taken_for_much_work_where_the_processor_has_it(monkeypatch):
    small, large = (Points(np.broadcast_to(np.float32(1), (n, 512)), np.ones(n)) for n in (1000, 100_000))
    for able in (False, True):
        monkeypatch.setattr(products, "multiplies_bfloat16", lambda able=able: able)
        assert fastest(small) == Float32Products.of
        assert fastest(large) == (Bfloat16Products if able else Float32Products.of)


@pytest.mark.parametrize(("flags", "able"), [("fpu avx512_bf16", True), ("amx_bf16", True), ("fpu avx2", False)])
def test_linux_tells_what_the_processor_has(monkeypatch, flags, able):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: f"flags : {flags}\n")
    machine.multiplies_bfloat16.cache_clear()
    try:
        assert machine.multiplies_bfloat16() is able
        machine.multiplies_bfloat16.cache_clear()
        monkeypatch.setitem(sys.modules, "torch", None)
        assert not machine.multiplies_bfloat16()
    finally:
        machine.multiplies_bfloat16.cache_clear()


def test_a_whole_graph_is_the_same_either_way(monkeypatch):
    points = many(600, dim=100).points
    graphs = []
    for kind in (Float32Products.of, Bfloat16Products):
        monkeypatch.setattr("prune4rel.neighbours.build.fastest", lambda _, kind=kind: kind)
        near = neighbourhood(points, tau="auto", similarity="cosine", target_degree=10)
        graphs.append(graph_of(near.backend, near.threshold))
    assert_same_graph(*graphs)


def test_cells_are_multiplied_in_float32(monkeypatch):
    monkeypatch.setattr("prune4rel.neighbours.build.fastest", lambda _: Bfloat16Products)
    near = neighbourhood(many(600, dim=100).points, tau=0.9, similarity="cosine", share=0.9)
    assert isinstance(near.backend.exact.products, Float32Products)
