import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.similarity import to_dense, to_graph

from prune4rel.neighbours.graph import EdgeBudget, Edges, Graph, TooManyEdges, strongest


def test_budget_can_be_used_up_to_the_last_edge_and_no_further():
    budget = EdgeBudget(5)
    budget.take(2)
    budget.take(3)
    with pytest.raises(TooManyEdges):
        budget.take(1)


def test_exhausted_budget_stops_everyone():
    budget = EdgeBudget(float("inf"))
    budget.exhaust()
    with pytest.raises(TooManyEdges):
        budget.take(0)


@st.composite
def symmetric_weights(draw):
    n = draw(st.integers(1, 10))
    dense = np.eye(n)
    for i in range(n):
        for j in range(i):
            dense[i, j] = dense[j, i] = draw(st.sampled_from([0.0, 0.25, 0.5, 0.75]))
    return dense


def edges_of(pairs, dense):
    i, j = (np.array([pair[k] for pair in pairs], dtype=np.int32) for k in range(2))
    return Edges(i, j, dense[i, j].astype(np.float32))


def upper_parts(dense, size):
    """Edges i < j by blocks of rows, then blocks of columns, as the backends deliver them."""
    n = len(dense)
    blocks = [(a, b) for a in range(0, n, size) for b in range(0, n, size)]
    for top, left in blocks:
        window = [(i, j) for i in range(top, min(n, top + size)) for j in range(left, min(n, left + size))]
        yield edges_of([(i, j) for i, j in window if i < j and dense[i, j] > 0], dense)


@given(symmetric_weights(), st.integers(1, 10), st.integers(1, 4))
def test_mirrored_upper_half_is_the_whole_graph_in_order(dense, size, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRUNE4REL_THREADS", str(threads))
        graph = Graph.from_upper(len(dense), list(upper_parts(dense, size)))
    wanted = to_graph(dense)
    np.testing.assert_array_equal(graph.indptr, wanted.indptr, strict=True)
    np.testing.assert_array_equal(graph.indices, wanted.indices, strict=True)
    np.testing.assert_array_equal(graph.weights, wanted.weights, strict=True)
    np.testing.assert_array_equal(graph.degrees, (dense > 0).sum(axis=1) - 1)
    assert len(graph) == len(dense)


def test_graph_without_edges():
    graph = Graph.from_upper(3, [])
    assert graph.degrees.tolist() == [0, 0, 0]
    assert graph.nbytes == 4 * 8
    assert Graph.from_strongest(3, []).degrees.tolist() == [0, 0, 0]


@given(symmetric_weights(), st.integers(1, 10))
def test_strongest_edges_of_every_example_survive_and_no_others(dense, k):
    n = len(dense)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j and dense[i, j] > 0]
    kept = strongest(edges_of(pairs, dense), k)
    wanted = [
        (i, j)
        for i in range(n)
        for j in sorted(sorted((j for a, j in pairs if a == i), key=lambda j: (-dense[i, j], j))[:k])
    ]
    assert list(zip(kept.i.tolist(), kept.j.tolist(), strict=True)) == wanted
    np.testing.assert_array_equal(kept.weight, [dense[pair] for pair in wanted])
    graph = Graph.from_strongest(n, [kept])
    either = np.eye(n)
    for i, j in wanted:
        either[i, j] = either[j, i] = dense[i, j]
    np.testing.assert_array_equal(to_dense(graph), either)
    assert all(np.all(np.diff(graph.indices[a:b]) > 0) for a, b in zip(graph.indptr, graph.indptr[1:], strict=False))
