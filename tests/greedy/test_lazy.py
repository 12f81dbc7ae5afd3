import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.instances import ETAS, SIMILARITIES, TAUS, instances, many
from tests.oracles import similarity
from tests.oracles.prune4rel import exact_log_gains, greedy, log_gains, optimum

from prune4rel.greedy.lazy import GAINS, MANY, lazy_greedy
from prune4rel.neighbours.graph import Graph
from prune4rel.progress import Progress


def assert_same_picks(picks, wanted):
    assert picks.indices.tolist() == wanted.indices
    np.testing.assert_allclose(picks.gains, wanted.gains, rtol=1e-6)
    assert picks.objective == pytest.approx(wanted.objective, rel=1e-9)


@given(
    instances(),
    st.sampled_from((*TAUS, 1.0)),
    st.sampled_from(SIMILARITIES),
    st.sampled_from(ETAS),
    st.sampled_from(GAINS),
    st.booleans(),
    st.data(),
)
def test_picks_are_those_of_the_textbook_loop_in_exact_arithmetic(instance, tau, scale, eta, gain, balanced, data):
    dense = similarity.weights(instance.rows, tau, scale)
    confidence = instance.confidence / eta
    groups = instance.labels if balanced else None
    size = data.draw(st.integers(1, len(instance)))
    initial = data.draw(st.permutations(range(len(instance))))[: data.draw(st.integers(0, size))]
    wanted = greedy(dense, confidence, size, gain=gain, groups=groups, initial=initial, measure=exact_log_gains)
    assume(wanted.clear)
    first = np.array(initial, dtype=np.int64)
    picks = lazy_greedy(similarity.to_graph(dense), confidence, size, gain=gain, groups=groups, initial=first)
    assert_same_picks(picks, wanted)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("eta", ETAS)
def test_the_two_oracles_agree(gain, eta):
    instance = many(14, clusters=4)
    dense = similarity.weights(instance.rows, 0.8, "shifted-cosine")
    exact, fast = (
        greedy(dense, instance.confidence / eta, 14, gain=gain, measure=measure)
        for measure in (exact_log_gains, log_gains)
    )
    assert exact.indices == fast.indices
    np.testing.assert_allclose(exact.gains, fast.gains, rtol=1e-11)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("eta", "surest"), [(0.1, 0.35), (1.0, 1.0), (100.0, 1.0)])
@pytest.mark.parametrize("tau", [0.6, 0.9, 0.99])
def test_hundreds_of_picks_are_those_of_the_textbook_loop(gain, balanced, eta, surest, tau):
    instance = many(250)
    confidence = instance.confidence * surest / eta
    dense = similarity.fast_weights(instance.rows, tau, "shifted-cosine")
    groups = instance.labels if balanced else None
    wanted = greedy(dense, confidence, 250, gain=gain, groups=groups)
    assert wanted.clear
    assert_same_picks(lazy_greedy(similarity.to_graph(dense), confidence, 250, gain=gain, groups=groups), wanted)


@given(instances(n=st.integers(2, 30)), st.sampled_from(TAUS), st.sampled_from(ETAS), st.sampled_from(GAINS))
def test_gains_never_increase_and_coverage_gains_add_up_to_the_objective(instance, tau, eta, gain):
    graph = similarity.to_graph(similarity.fast_weights(instance.rows, tau, "shifted-cosine"))
    picks = lazy_greedy(graph, instance.confidence / eta, len(instance), gain=gain)
    assert (np.diff(picks.gains) <= 0).all()
    if gain == "coverage":
        assert picks.gains.sum() == pytest.approx(picks.objective, rel=1e-8)


@given(instances(n=st.integers(1, 20)), st.sampled_from(TAUS), st.sampled_from(GAINS), st.booleans(), st.data())
def test_going_on_from_the_first_picks_gives_the_rest(instance, tau, gain, balanced, data):
    graph = similarity.to_graph(similarity.fast_weights(instance.rows, tau, "shifted-cosine"))
    groups = instance.labels if balanced else None
    whole = lazy_greedy(graph, instance.confidence, len(instance), gain=gain, groups=groups)
    first = whole.indices[: data.draw(st.integers(0, len(instance)))]
    rest = lazy_greedy(graph, instance.confidence, len(instance), gain=gain, groups=groups, initial=first)
    np.testing.assert_array_equal(rest.indices, whole.indices)
    np.testing.assert_array_equal(rest.gains, whole.gains)


@given(instances(), st.sampled_from(TAUS), st.sampled_from(ETAS), st.data())
def test_coverage_greedy_reaches_its_guaranteed_share_of_the_optimum(instance, tau, eta, data):
    dense = similarity.weights(instance.rows, tau, "shifted-cosine")
    confidence = instance.confidence / eta
    size = data.draw(st.integers(1, len(instance)))
    picks = lazy_greedy(similarity.to_graph(dense), confidence, size, gain="coverage")
    assert picks.objective >= (1 - 1 / math.e) * optimum(dense, confidence, size) * (1 - 1e-12)


def clique(n, weight):
    return np.where(np.eye(n, dtype=bool), 1.0, np.float64(np.float32(weight)))


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("weight", [1.0, 0.98])
def test_saturated_clique_is_picked_in_order_of_confidence(rng, gain, weight):
    confidence = rng.permutation(np.linspace(0.2, 1, 600)) / 0.5
    picks = lazy_greedy(similarity.to_graph(clique(600, weight)), confidence, 600, gain=gain)
    assert picks.support.min() > 400
    np.testing.assert_array_equal(picks.indices, np.argsort(-confidence))


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("balanced", [False, True])
def test_saturated_cliques_of_different_density_alternate_as_in_the_textbook_loop(rng, gain, balanced):
    dense = np.zeros((300, 300))
    for start, stop, weight in ((0, 170, 1.0), (170, 250, 0.9), (250, 300, 0.6)):
        dense[start:stop, start:stop] = clique(stop - start, weight)
    shuffled = rng.permutation(300)
    dense = dense[np.ix_(shuffled, shuffled)]
    confidence = rng.uniform(0.3, 1, 300) / 0.25
    groups = rng.integers(4, size=300) if balanced else None
    wanted = greedy(dense, confidence, 300, gain=gain, groups=groups)
    picks = lazy_greedy(similarity.to_graph(dense), confidence, 300, gain=gain, groups=groups)
    assert picks.support.max() > 400
    assert wanted.clear
    assert_same_picks(picks, wanted)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_thousands_of_equal_pairs_go_by_index_whatever_the_threads(gain, threads, monkeypatch):
    monkeypatch.setenv("PRUNE4REL_THREADS", threads)
    n = 2 * MANY + 100
    partner = np.arange(n, dtype=np.int32) ^ 1
    graph = Graph(np.arange(n + 1), partner, np.full(n, 0.9, dtype=np.float32))
    picks = lazy_greedy(graph, np.full(n, 0.5), n, gain=gain)
    np.testing.assert_array_equal(picks.indices, np.r_[0:n:2, 1:n:2])


def test_no_confidence_at_all_goes_by_index():
    picks = lazy_greedy(similarity.to_graph(clique(5, 0.5)), np.zeros(5), 4, gain="coverage")
    assert picks.indices.tolist() == [0, 1, 2, 3]
    assert picks.gains.tolist() == [0, 0, 0, 0]


def test_progress_counts_every_pick_made_here():
    class Listener(Progress):
        def task(self, name, total):
            self.name, self.total = name, total
            return super().task(name, total)

    listener = Listener()
    lazy_greedy(
        similarity.to_graph(clique(9, 0.5)), np.ones(9), 7, gain="paper", initial=np.array([3]), progress=listener
    )
    assert (listener.name, listener.total) == ("picking", 6)
