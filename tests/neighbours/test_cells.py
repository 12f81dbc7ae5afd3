from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import assert_same_graph, graph_of, many, points_of

from prune4rel.errors import InputError
from prune4rel.neighbours.build import neighbourhood
from prune4rel.neighbours.cells import (
    CpuCells,
    Known,
    LikelyCells,
    check_share,
    choose_cells,
    cut_for,
    find_centres,
    in_order,
    nearest_centres,
    sort_rows,
)
from prune4rel.neighbours.cells_cuda import TorchCells, in_cells
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.cuda import TorchBackend
from prune4rel.neighbours.graph import Edges, TooManyEdges
from prune4rel.neighbours.similarity import Threshold
from prune4rel.progress import Progress, no_advance

torch = pytest.importorskip("torch")
DEVICES = [
    "numpy",
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device")),
]
THRESHOLD = Threshold(0.93)


def backend_of(points, device, *, tile=64, capacity=2**13):
    if device == "numpy":
        return CpuBackend(points, tile=tile)
    return TorchBackend.from_points(points, device, tile=tile, capacity=capacity)


def in_cells_of(exact, cells):
    return (CpuCells if isinstance(exact, CpuBackend) else TorchCells)(exact, cells)


def clusters(n=400, dim=16):
    return many(n, dim=dim, clusters=40).points


def trained(points, cut, count=12):
    centres = find_centres(points.unit(slice(None)), count, nearest_centres)
    return LikelyCells(centres, cut, 1.0, 1.0)


def seen_by_definition(points, cells):
    """(n, n) whether one of two rows looks into the cell of the other."""
    cosines = points.unit(slice(None)) @ cells.centres.T
    own = cosines.argmax(axis=1)
    looks = cosines >= cells.cut
    return looks[:, own] | looks[:, own].T


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cut", [-2.0, 0.5, 0.8, 0.95, 2.0])
def test_a_pair_is_found_if_one_looks_into_the_cell_of_the_other(device, cut):
    points = clusters()
    cells = trained(points, cut)
    graph = graph_of(in_cells_of(backend_of(points, device), cells), THRESHOLD)
    everything = graph_of(CpuBackend(points), THRESHOLD)
    i = np.repeat(np.arange(len(points)), everything.degrees)
    seen = seen_by_definition(points, cells)[i, everything.indices]
    if device == "numpy":
        np.testing.assert_array_equal(graph.indices, everything.indices[seen])
        np.testing.assert_array_equal(graph.weights, everything.weights[seen])
        return
    found = np.zeros((len(points), len(points)), dtype=bool)  # in half precision, what lies at the edge may fall off it
    found[np.repeat(np.arange(len(points)), graph.degrees), graph.indices] = True
    surely, perhaps = (seen_by_definition(points, replace(cells, cut=cut + by)) for by in (0.002, -0.002))
    found = found[i, everything.indices]
    assert graph.indices.size == found.sum()
    assert np.mean(found < surely[i, everything.indices]) < 0.01
    assert np.mean(found > perhaps[i, everything.indices]) < 0.01


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("tile", "capacity"), [(3, 8), (16, 50), (64, 2**13), (4096, 2**20)])
def test_looking_everywhere_gives_the_exact_graph_bit_for_bit(device, tile, capacity):
    points = clusters(200)
    everywhere = in_cells_of(backend_of(points, device, tile=tile, capacity=capacity), trained(points, -2.0))
    assert_same_graph(graph_of(everywhere, THRESHOLD), graph_of(CpuBackend(points), THRESHOLD))


@pytest.mark.parametrize("device", DEVICES)
def test_more_edges_than_allowed_stop_the_search(device):
    points = clusters(200)
    backend = in_cells_of(backend_of(points, device), trained(points, -2.0))
    pairs = graph_of(backend, THRESHOLD).indices.size // 2
    assert sum(part.i.size for part in backend.upper(THRESHOLD, max_edges=pairs, advance=no_advance)) == pairs
    with pytest.raises(TooManyEdges):
        backend.upper(THRESHOLD, max_edges=pairs - 1, advance=no_advance)


@pytest.mark.parametrize("device", DEVICES)
def test_progress_ends_at_all_pairs(device):
    points = clusters(200)
    backend = in_cells_of(backend_of(points, device), trained(points, 0.5))
    told = []
    backend.upper(THRESHOLD, max_edges=np.inf, advance=told.append)
    assert sum(told) == pytest.approx(200 * 201 / 2)


@pytest.mark.parametrize("device", DEVICES)
def test_single_rows_are_looked_up_everywhere(device):
    points = clusters(200)
    rows = np.array([3, 199, 0])
    found = in_cells_of(backend_of(points, device), trained(points, 2.0)).of(rows, THRESHOLD, max_edges=np.inf)
    wanted = CpuBackend(points).of(rows, THRESHOLD, max_edges=np.inf)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("share", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_the_share_that_is_reported_is_the_share_that_is_found(share, device):
    points = many(3000, dim=24, clusters=60, seed=2).points
    exact = CpuBackend(points)
    threshold = Threshold(0.9)
    rows = np.arange(0, 3000, 5)
    known = Known(rows, exact.of(rows, threshold, max_edges=np.inf))
    if device == "torch":
        backend = in_cells(TorchBackend.from_points(points, "cpu"), known, share, 0)
    else:
        backend = CpuCells(exact, choose_cells(points, known, share, nearest_centres))
    found = graph_of(backend, threshold).indices.size / graph_of(exact, threshold).indices.size
    assert backend.cells.found == pytest.approx(found, abs=0.03)
    assert found > share - 0.03
    assert 0 < backend.cells.looked_at <= 1


@pytest.mark.parametrize("workers", ["1", "3"])
def test_cells_are_the_same_on_any_number_of_threads(monkeypatch, workers):
    points = many(3000, dim=24, clusters=60).points
    one = neighbourhood(points, tau=0.95, similarity="shifted-cosine", share=0.9, seed=4)
    monkeypatch.setenv("PRUNE4REL_THREADS", workers)
    other = neighbourhood(points, tau=0.95, similarity="shifted-cosine", share=0.9, seed=4)
    np.testing.assert_array_equal(one.backend.cells.centres, other.backend.cells.centres)
    graphs = [near.graph(max_bytes=np.inf, progress=Progress()) for near in (one, other)]
    assert_same_graph(*graphs)
    assert one.estimate.found == one.backend.cells.found


def test_another_seed_gives_other_cells():
    points = many(3000, dim=24, clusters=60).points
    cells = [
        neighbourhood(points, tau=0.95, similarity="cosine", share=0.9, seed=seed).backend.cells for seed in (0, 1)
    ]
    assert not np.array_equal(cells[0].centres, cells[1].centres)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_edges_come_in_order_and_once(pairs):
    pairs = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
    parts = [
        Edges(np.array([i], np.int32), np.array([j], np.int32), np.array([i + 10 * j], np.float32)) for i, j in pairs
    ]
    found = in_order(parts, 10)
    listed = [(i, j, w) for part in found for i, j, w in zip(*(column.tolist() for column in part), strict=True)]
    assert listed == [(i, j, i + 10.0 * j) for i, j in sorted(set(pairs))]


def test_rows_lie_in_their_nearest_cell_and_look_where_the_centre_is_near():
    points = clusters(100)
    cells = trained(points, 0.7)
    cosines = points.unit(slice(None)) @ cells.centres.T
    by_cell = sort_rows(points, cells)
    for cell in range(12):
        members = by_cell.members[by_cell.first[cell] : by_cell.first[cell + 1]]
        looking = by_cell.looking[by_cell.begin[cell] : by_cell.begin[cell + 1]]
        np.testing.assert_array_equal(members, np.flatnonzero(cosines.argmax(axis=1) == cell))
        np.testing.assert_array_equal(looking, np.flatnonzero(cosines[:, cell] >= np.float32(0.7)))


def test_centres_are_unit_vectors_also_where_nobody_is_near():
    rows = points_of(np.float32([[1, 0], [1, 0], [1, 0], [0, 1]])).unit(slice(None))
    centres = find_centres(rows, 3, nearest_centres)
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 1, rtol=1e-6)


def test_settled_numbers_are_judged_on_other_rows():
    """Even rows reach 1, odd ones 0: what odd ones settle holds for all even ones, and the other way for none."""
    rows = np.repeat(np.arange(100, dtype=np.int32), 10)
    cut, found = cut_for(np.float32(rows % 2 == 0), rows, 0.9)
    assert cut == 0.0
    assert found == 0.5


def test_without_known_neighbours_nothing_is_looked_at():
    assert cut_for(np.empty(0, np.float32), np.empty(0, np.int32), 0.9) == (1.0, 1.0)


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5, float("nan"), "much", None])
def test_a_share_lies_between_0_and_1(share):
    with pytest.raises(InputError, match="ann_share"):
        check_share(share)


def test_the_estimate_offers_the_shortcut_where_the_exact_way_is_long():
    estimate = neighbourhood(clusters(100), tau=0.9, similarity="cosine").estimate
    assert "--ann" not in estimate.describe()
    long = replace(estimate, seconds=601.0, approximate_seconds=60.0)
    assert "--ann (neighbours='approximate') would find about 97% of the neighbours" in long.describe()
    assert "--ann" not in replace(long, approximate_seconds=500.0).describe()
    assert "--ann" not in replace(long, seconds=599.0).describe()
